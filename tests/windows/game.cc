// Loads hummock_bi.dll as the engine does, and uses it as a game may. Usage: game SCENARIO
#include "game_threads.h"

#include <initializer_list>

namespace {

// ---- What each function promises ----------------------------------------------------------------

void interface_of_the_engine() {
  CHECK(dll.size(nullptr) == 0 && dll.size_a(nullptr, 64) == 0);
  dll.free(nullptr);
  dll.free_a(nullptr);
  for (size_t size = 0; size < 200000; size = size * 2 + 1) {
    void* block = dll.alloc(size);
    CHECK(block != nullptr && dll.size(block) >= size);
    CHECK(reinterpret_cast<uintptr_t>(block) % 16 == 0);
    memset(block, 0x5a, dll.size(block));
    dll.free(block);
  }
  for (size_t align = 0; align <= (1 << 20); align = align * 2 + (align == 0)) {
    void* block = dll.alloc_a(100, align);
    CHECK(block != nullptr && dll.size_a(block, align) >= 100);
    CHECK(align == 0 || reinterpret_cast<uintptr_t>(block) % align == 0);
    memset(block, 0x5a, 100);
    dll.free_a(block);
  }
  void* odd = dll.alloc_a(100, 24);  // no power of two
  CHECK(reinterpret_cast<uintptr_t>(odd) % 32 == 0);
  dll.free_a(odd);
  CHECK(dll.alloc(SIZE_MAX) == nullptr && dll.alloc(SIZE_MAX / 2) == nullptr);
  CHECK(dll.alloc_a(SIZE_MAX - 8, 16) == nullptr && dll.alloc_a(16, SIZE_MAX) == nullptr);
  SetLastError(1234);
  void* large = dll.alloc(1 << 20);
  void* huge = dll.alloc(20 << 20);
  CHECK(large != nullptr && huge != nullptr);
  memset(huge, 1, 20 << 20);
  dll.free(huge);
  dll.free(large);
  CHECK(GetLastError() == 1234);
}

// ---- Figures ------------------------------------------------------------------------------------

// Bytes of the process's memory that hold memory, as the system counts them.
size_t committed_by_system() {
  size_t sum = 0;
  MEMORY_BASIC_INFORMATION piece;
  for (char* at = nullptr; VirtualQuery(at, &piece, sizeof piece) == sizeof piece;) {
    if (piece.State == MEM_COMMIT && piece.Type == MEM_PRIVATE) sum += piece.RegionSize;
    char* next = static_cast<char*>(piece.BaseAddress) + piece.RegionSize;
    if (next <= at) break;
    at = next;
  }
  return sum;
}

void honest_figures() {
  constexpr size_t kBlocks = 3000;
  constexpr size_t kSize = 20000;
  constexpr size_t kAll = kBlocks * kSize;
  static void* blocks[kBlocks];
  const size_t system_before = committed_by_system();
  const size_t before = dll.total_committed();
  for (void*& block : blocks) {
    block = dll.alloc(kSize);
    CHECK(block != nullptr);
    memset(block, 0x77, kSize);
  }
  const size_t full = dll.total_committed();
  const size_t system_full = committed_by_system();
  CHECK(full >= before + kAll && full <= before + kAll + kAll / 4);
  CHECK(dll.total_reserved() >= full);
  const size_t grown = system_full - system_before;
  CHECK(grown + (4 << 20) >= full - before && full - before + (4 << 20) >= grown);
  for (void* block : blocks) dll.free(block);
  CHECK(dll.flush_cache(0) == 0);
  const size_t freed_to = dll.total_committed();
  const size_t gave = dll.flush_cache(1 << 20);
  CHECK(gave >= (1 << 20) && dll.total_committed() + gave == freed_to);
  dll.flush_cache_all();
  const size_t left = dll.total_committed();
  CHECK(left < before + (6 << 20));
  const size_t system_left = committed_by_system();
  CHECK(system_left < system_before + (8 << 20));
  CHECK(dll.flush_cache(1 << 20) == 0);  // nothing is left to give
  void* again = dll.alloc(kAll / 4);     // given back does not mean gone
  CHECK(again != nullptr);
  memset(again, 0x11, kAll / 4);
  dll.free(again);
  printf("committed: %zu before, %zu in use, %zu after the flush; the system: %zu, %zu, %zu\n", before, full,
         left, system_before, system_full, system_left);
}

// ---- Where slots are short ------------------------------------------------------------------------

// Where the upper half of the addresses begins that a 32-bit program may have; 64-bit ones: 4 GiB.
constexpr uint64_t kHigh = sizeof(void*) == 8 ? uint64_t{1} << 32 : uint64_t{1} << 31;

// A game in a full address space: what is handed out stands in its upper half.
void high_addresses() {
  constexpr size_t kTaken = 40 << 20;  // more than a region: none is left with room below
  static void* taken[512];
  size_t count = 0;
  while (count < 512) {
    void* block = dll.alloc(kTaken);  // nobody touches it
    CHECK(block != nullptr);
    taken[count++] = block;
    if (reinterpret_cast<uintptr_t>(block) >= kHigh) break;
  }
  CHECK(reinterpret_cast<uintptr_t>(taken[count - 1]) >= kHigh);
  void* small = dll.alloc(100000);
  printf("%zu blocks below, then %p and %p\n", count - 1, taken[count - 1], small);
  CHECK(reinterpret_cast<uintptr_t>(small) >= kHigh);
  threads_stress();
  dll.free(small);
  for (size_t i = 0; i < count; ++i) dll.free(taken[i]);
}

// For 32 bits. There is no more room at all: null, and when some is given back, it is served again.
void no_room() {
  static void* taken[4096];
  size_t count = 0;
  for (size_t size : {size_t{100} << 20, size_t{20} << 20, size_t{8} << 20, size_t{1} << 20, size_t{50000}}) {
    while (count < 4096 && (taken[count] = dll.alloc(size)) != nullptr) ++count;
  }
  CHECK(count > 20 && count < 4096);
  CHECK(dll.alloc(size_t{64} << 20) == nullptr);
  for (size_t i = 0; i < count; ++i) dll.free(taken[i]);
  void* block = dll.alloc(size_t{64} << 20);
  CHECK(block != nullptr);
  memset(block, 1, size_t{64} << 20);
  dll.free(block);
}

void use_up_thread_slots() {
  for (int i = 0; i < 70; ++i) CHECK(TlsAlloc() != TLS_OUT_OF_INDEXES);
}

void use_up_exit_slots() {
  while (FlsAlloc(nullptr) != FLS_OUT_OF_INDEXES) {
  }
}

// ---- Loading and unloading ------------------------------------------------------------------------

void unload_and_load() {
  size_t first = 0;
  for (int i = 0; i < 10; ++i) {
    if (i != 0) dll = load("hummock_bi");
    run_threads(use_and_leave);
    void* block = dll.alloc(50 << 20);
    CHECK(block != nullptr);
    dll.free(block);
    CHECK(FreeLibrary(dll.module));
    CHECK(GetModuleHandleA("hummock_bi.dll") == nullptr);
    if (i == 1) first = committed_by_system();  // Wine itself may grow until then
  }
  const size_t last = committed_by_system();
  printf("committed after unloading: %zu, eight times later %zu\n", first, last);
  CHECK(last < first + (2 << 20));
}

HANDLE allocated;
HANDLE unloaded;

DWORD WINAPI live_through_unloading(void*) {
  dll.free(dll.alloc(100));
  SetEvent(allocated);
  WaitForSingleObject(unloaded, INFINITE);
  return 0;  // its end must not call into what is no more
}

void unload_under_threads() {
  allocated = CreateEventA(nullptr, FALSE, FALSE, nullptr);
  unloaded = CreateEventA(nullptr, TRUE, FALSE, nullptr);
  unsigned char* kept = static_cast<unsigned char*>(dll.alloc(1000));
  memset(kept, 9, 1000);
  HANDLE threads[kThreads];
  for (HANDLE& thread : threads) {
    thread = CreateThread(nullptr, 0, live_through_unloading, nullptr, 0, nullptr);
    WaitForSingleObject(allocated, INFINITE);
  }
  CHECK(FreeLibrary(dll.module));
  SetEvent(unloaded);
  CHECK(WaitForMultipleObjects(kThreads, threads, TRUE, INFINITE) == WAIT_OBJECT_0);
  CHECK(is_filled(kept, 9, 1000));  // what is in use stays
}

// With background:on a thread of the allocator's own runs in the library, which stays for it.
void background() {
  dll.free(dll.alloc(100));
  CHECK(FreeLibrary(dll.module));
  Sleep(400);
  CHECK(GetModuleHandleA("hummock_bi.dll") != nullptr);
  void* block = dll.alloc(1 << 20);
  memset(block, 1, 1 << 20);
  dll.free(block);
}

// ---- Ends -----------------------------------------------------------------------------------------

DWORD WINAPI never_ends(void*) {
  for (;;) stress(nullptr);
}

// The process ends while threads allocate: they are stopped wherever they are.
void exit_under_load() {
  for (int i = 0; i < kThreads; ++i) CreateThread(nullptr, 0, never_ends, nullptr, 0, nullptr);
  Sleep(200);
  ExitProcess(0);
}

void crash() {
  dll.free(dll.alloc(100));
  *static_cast<volatile int*>(nullptr) = 1;
}

void double_free() {
  void* block = dll.alloc(100);
  dll.free(block);
  dll.free(block);
  for (int i = 0; i < 2000; ++i) dll.alloc(100);  // before one could be handed out twice
}

void huge_pages_late() {
  void* block = dll.alloc(100);
  dll.enable_huge_pages();
  dll.free(block);
  for (int i = 0; i < 3; ++i) dll.alloc(15 << 20);
  dll.flush_cache(5 << 20);
}

struct Scenario {
  const char* name;
  void (*run)();
  void (*before)() = nullptr;
};

const Scenario kScenarios[] = {
    {"interface", interface_of_the_engine},
    {"figures", honest_figures},
    {"stress", threads_stress},
    {"threads", threads_come_and_go},
    {"late", calls_after_detach},
    {"far_slot", threads_stress, use_up_thread_slots},
    {"no_exit_slot", threads_come_and_go, use_up_exit_slots},
    {"high_addresses", high_addresses},
    {"no_room", no_room},
    {"reload", unload_and_load},
    {"background", background},
    {"fibers", fibers},
    {"unload", unload_under_threads},
    {"exit", exit_under_load},
    {"crash", crash},
    {"double_free", double_free},
    {"huge_pages", huge_pages_late},
};

}  // namespace

int main(int count, char** arguments) {
  printf("begins\n");
  fflush(stdout);
  for (const Scenario& scenario : kScenarios) {
    if (count != 2 || strcmp(arguments[1], scenario.name) != 0) continue;
    if (scenario.before != nullptr) scenario.before();
    dll = load("hummock_bi");
    scenario.run();
    printf("%s: passed\n", scenario.name);
    return 0;
  }
  printf("usage: game SCENARIO\n");
  return 2;
}
