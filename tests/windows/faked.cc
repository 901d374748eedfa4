// hummock_bi.dll's own objects over system calls that grant or refuse at will. Usage: faked SCENARIO
// The log stands in the working directory; what must be in it is checked by run_wine.py.
#include "faces/bohemia.h"
#include "fake_calls.h"
#include "pages/pages.h"

extern "C" BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, void* process_ends);

namespace {

void start() {
  fake::install();
  CHECK(DllMain(nullptr, DLL_PROCESS_ATTACH, nullptr));
}

void end() {
  CHECK(DllMain(nullptr, DLL_PROCESS_DETACH, reinterpret_cast<void*>(1)));
}

void* take(size_t size) {
  void* block = MemAlloc(size);
  CHECK(block != nullptr);
  memset(block, 0x33, size);
  return block;
}

hummock::pages::Totals totals() {
  return hummock::pages::totals();
}

// Large pages: regions come in one piece of 32 MiB, all committed, and nothing of them is purged.
void granted() {
  start();
  CHECK(fake::privilege_calls == 1);
  void* first = take(100);
  CHECK(fake::large_calls == 1 && fake::large_granted == 1);
  CHECK(totals().pinned == (32 << 20));
  CHECK(MemTotalCommitted() >= (32 << 20));
  void* blocks[12];  // three a region
  for (void*& block : blocks) block = take(10 << 20);
  CHECK(fake::large_granted == 4 && totals().pinned == size_t{128} << 20);
  for (void* block : blocks) MemFree(block);
  MemFree(first);
  CHECK(MemFlushCache(64 << 20) == 0);
  CHECK(MemTotalCommitted() >= (128 << 20));
  for (void*& block : blocks) block = take(10 << 20);  // what is there is used again
  CHECK(fake::large_granted == 4);
  end();
}

void unsupported() {
  fake::large_minimum = 0;
  start();
  CHECK(fake::privilege_calls == 0);
  take(100);
  CHECK(fake::large_calls == 0);
  end();
}

void option_off() {
  SetEnvironmentVariableA("HUMMOCK_HUGE_PAGES", "off");
  start();
  CHECK(fake::privilege_calls == 0);
  take(100);
  EnableHugePages();
  take(10 << 20);
  CHECK(fake::large_calls == 0 && fake::privilege_calls == 0);
  end();
}

// AdjustTokenPrivileges succeeds and grants nothing: only its error tells.
void denied_1300() {
  fake::privilege_error = ERROR_NOT_ALL_ASSIGNED;
  start();
  take(100);
  CHECK(fake::privilege_calls == 1 && fake::large_calls == 0);
  // The user was given the privilege meanwhile, and the game asks once more.
  fake::privilege_error = 0;
  EnableHugePages();
  CHECK(fake::privilege_calls == 2);
  for (int i = 0; i < 5; ++i) take(10 << 20);
  CHECK(fake::large_granted == 1 && totals().pinned == (32 << 20));
  end();
}

void denied_call() {
  fake::privilege_call = false;
  fake::privilege_error = ERROR_ACCESS_DENIED;
  start();
  take(100);
  CHECK(fake::large_calls == 0);
  end();
}

void denied_1314() {
  fake::large_error = ERROR_PRIVILEGE_NOT_HELD;
  start();
  take(100);
  CHECK(fake::large_calls == 1 && totals().pinned == 0);
  end();
}

// A refusal is expensive: further ones come after pauses that double.
void fragmented_1450() {
  fake::large_error = ERROR_NO_SYSTEM_RESOURCES;
  start();
  const uint64_t begun = GetTickCount64();
  for (int i = 0; i < 30; ++i) {  // ten regions, in longer than the first pause on any machine
    take(10 << 20);
    Sleep(10);
  }
  const uint64_t took = GetTickCount64() - begun;
  unsigned most = 2;
  for (uint64_t pause = 100, sum = 100; sum <= took; pause *= 2, sum += pause) ++most;
  CHECK(fake::large_calls >= 1 && fake::large_calls <= most);
  CHECK(totals().pinned == 0 && MemTotalCommitted() > (300 << 20));
  fake::large_error = 0;
  Sleep(static_cast<DWORD>(3 * took + 1200));
  const unsigned before = fake::large_granted;
  for (int i = 0; i < 4; ++i) take(10 << 20);
  CHECK(fake::large_granted > before);
  end();
}

void capped() {
  SetEnvironmentVariableA("HUMMOCK_HUGE_MAX", "64M");
  start();
  for (int i = 0; i < 20; ++i) take(10 << 20);
  CHECK(totals().pinned == (64 << 20) && fake::large_calls == 2);
  end();
}

void reserved() {
  SetEnvironmentVariableA("HUMMOCK_HUGE_RESERVE", "96M");
  start();
  CHECK(fake::large_granted == 1 && totals().pinned == (96 << 20));
  CHECK(MemTotalCommitted() >= (96 << 20) && MemTotalReserved() >= (96 << 20));
  for (int i = 0; i < 9; ++i) take(10 << 20);
  CHECK(fake::large_granted == 1);
  end();
}

// As much of it as is to be had, and the rest when the privilege was given and the game asks again.
void reserved_less() {
  SetEnvironmentVariableA("HUMMOCK_HUGE_RESERVE", "256M");
  fake::large_most = 64 << 20;
  start();
  CHECK(fake::large_granted == 1 && totals().pinned == (64 << 20));
  take(10 << 20);
  end();
}

void reserved_late() {
  SetEnvironmentVariableA("HUMMOCK_HUGE_RESERVE", "64M");
  fake::privilege_error = ERROR_NOT_ALL_ASSIGNED;
  start();
  take(10 << 20);
  CHECK(totals().pinned == 0);
  fake::privilege_error = 0;
  EnableHugePages();
  CHECK(fake::large_granted == 1 && totals().pinned == (64 << 20));
  end();
}

// Address space without memory behind it: the request fails, later ones succeed, nothing is lost.
void no_commit() {
  fake::large_minimum = 0;
  start();
  void* first = take(100);
  fake::commits_left = 0;
  CHECK(MemAlloc(1 << 20) == nullptr && MemAlloc(10 << 20) == nullptr);
  CHECK(MemAllocA(1 << 20, 1 << 20) == nullptr);
  int had = 0;
  while (MemAlloc(8192) != nullptr) ++had;  // what is committed already is used up
  CHECK(had < 64);
  MemFree(first);
  fake::commits_left = -1;
  for (int i = 0; i < 20; ++i) MemFree(take(1 << 20));
  take(10 << 20);
  for (int limit = 0; limit < 40; ++limit) {
    fake::commits_left = limit % 7;
    void* block = MemAlloc((limit % 9 + 1) * 700000);
    if (block != nullptr) memset(block, 0x44, MemSize(block));
    fake::commits_left = -1;
    MemFree(block);
    MemFlushCacheAll();
  }
  end();
}

struct Scenario {
  const char* name;
  void (*run)();
};

const Scenario kScenarios[] = {
    {"granted", granted},
    {"unsupported", unsupported},
    {"option_off", option_off},
    {"denied_1300", denied_1300},
    {"denied_call", denied_call},
    {"denied_1314", denied_1314},
    {"capped", capped},
    {"fragmented_1450", fragmented_1450},
    {"reserved", reserved},
    {"reserved_less", reserved_less},
    {"reserved_late", reserved_late},
    {"no_commit", no_commit},
};

}  // namespace

int main(int count, char** arguments) {
  printf("begins\n");
  fflush(stdout);
  for (const Scenario& scenario : kScenarios) {
    if (count != 2 || strcmp(arguments[1], scenario.name) != 0) continue;
    scenario.run();
    printf("%s: passed\n", scenario.name);
    return 0;
  }
  printf("usage: faked SCENARIO\n");
  return 2;
}
