#include "game_threads.h"

bool is_filled(const void* block, unsigned char value, size_t size) {
  const unsigned char* bytes = static_cast<const unsigned char*>(block);
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != value) return false;
  }
  return true;
}

static uint32_t next_random(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

// ---- Threads ------------------------------------------------------------------------------------

static constexpr int kSlots = 2048;
static void* exchanged[kSlots];  // blocks that threads leave for each other

static constexpr int kRounds = 60000;

DWORD WINAPI stress(void* number) {
  uint32_t state = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(number)) * 7919 + 1;
  for (int i = 0; i < kRounds; ++i) {
    const uint32_t r = next_random(&state);
    size_t size = r % 16 != 0 ? r % 500 + 2 : r % 1024 != 0 ? r % 60000 + 2 : r % 3000000 + 2;
    unsigned char* block =
        static_cast<unsigned char*>(r % 5 == 0 ? dll.alloc_a(size, size_t{1} << (r % 9)) : dll.alloc(size));
    CHECK(block != nullptr && dll.size(block) >= size);
    // Its first and last byte, by its address: who takes it over can tell that it is whole.
    const unsigned char tag = static_cast<unsigned char>(reinterpret_cast<uintptr_t>(block) >> 4);
    block[0] = tag;
    block[dll.size(block) - 1] = tag;
    void* other = InterlockedExchangePointer(&exchanged[next_random(&state) % kSlots], block);
    if (other == nullptr) continue;
    const unsigned char expected = static_cast<unsigned char>(reinterpret_cast<uintptr_t>(other) >> 4);
    unsigned char* bytes = static_cast<unsigned char*>(other);
    CHECK(bytes[0] == expected && bytes[dll.size(other) - 1] == expected);
    dll.free(other);
  }
  return 0;
}

void run_threads(DWORD(WINAPI* body)(void*)) {
  HANDLE threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    threads[i] =
        CreateThread(nullptr, 0, body, reinterpret_cast<void*>(static_cast<uintptr_t>(i)), 0, nullptr);
    CHECK(threads[i] != nullptr);
  }
  CHECK(WaitForMultipleObjects(kThreads, threads, TRUE, INFINITE) == WAIT_OBJECT_0);
  for (HANDLE thread : threads) CloseHandle(thread);
}

static void free_exchanged() {
  for (void*& block : exchanged) {
    dll.free(block);
    block = nullptr;
  }
}

void threads_stress() {
  const size_t before = dll.total_committed();
  for (int i = 0; i < 3; ++i) run_threads(stress);
  free_exchanged();
  dll.flush_cache_all();
  CHECK(dll.total_committed() < before + (24 << 20));
}

DWORD WINAPI use_and_leave(void*) {
  void* blocks[100];
  for (void*& block : blocks) {
    block = dll.alloc(500);
    memset(block, 1, 500);
  }
  for (void* block : blocks) dll.free(block);
  return 0;
}

// A thread leaves its caches behind at its end, whatever it never gave back itself.
void threads_come_and_go() {
  run_threads(use_and_leave);
  dll.flush_cache_all();
  const size_t before = dll.total_committed();
  for (int i = 0; i < 60; ++i) run_threads(use_and_leave);
  dll.flush_cache_all();
  const size_t after = dll.total_committed();
  printf("committed after 8 threads %zu, after 480 more %zu\n", before, after);
  CHECK(after < before + (1 << 20));
}

// ---- Calls when a thread's end is past ------------------------------------------------------------

static DWORD late_index;
static void* late_blocks[64];
static LONG late_calls;

// Called by the system at a thread's end, after or before Hummock's own such call.
static void WINAPI late(void* block) {
  dll.free(block);
  for (void*& each : late_blocks) {
    each = dll.alloc(300);
    CHECK(each != nullptr);
    memset(each, 3, 300);
  }
  for (void* each : late_blocks) dll.free(each);
  InterlockedIncrement(&late_calls);
}

static DWORD WINAPI leave_late_block(void*) {
  void* block = dll.alloc(300);
  FlsSetValue(late_index, block);
  return 0;
}

void calls_after_detach() {
  late_index = FlsAlloc(late);
  CHECK(late_index != FLS_OUT_OF_INDEXES);
  const auto one_thread = [] {
    HANDLE thread = CreateThread(nullptr, 0, leave_late_block, nullptr, 0, nullptr);
    CHECK(thread != nullptr && WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
    CloseHandle(thread);
  };
  one_thread();
  dll.flush_cache_all();
  const size_t before = dll.total_committed();
  for (int i = 0; i < 200; ++i) one_thread();
  CHECK(late_calls == 201);
  dll.flush_cache_all();
  CHECK(dll.total_committed() < before + (1 << 20));
}

// ---- Fibers ---------------------------------------------------------------------------------------

static void* main_fiber;

static void WINAPI allocate_and_return(void*) {
  for (;;) {
    void* block = dll.alloc(200);
    memset(block, 5, 200);
    dll.free(block);
    SwitchToFiber(main_fiber);
  }
}

static DWORD WINAPI delete_fiber(void* fiber) {
  dll.free(dll.alloc(200));
  DeleteFiber(fiber);
  dll.free(dll.alloc(200));
  return 0;
}

// A thread's first block may be asked for in a fiber that ends long before the thread, deleted by another.
static DWORD WINAPI use_fibers(void* other_deletes) {
  main_fiber = ConvertThreadToFiber(nullptr);
  void* fiber = CreateFiber(0, allocate_and_return, nullptr);
  CHECK(main_fiber != nullptr && fiber != nullptr);
  SwitchToFiber(fiber);
  unsigned char* kept = static_cast<unsigned char*>(dll.alloc(200));
  memset(kept, 7, 200);
  HANDLE thread =
      other_deletes != nullptr ? CreateThread(nullptr, 0, delete_fiber, fiber, 0, nullptr) : nullptr;
  if (thread == nullptr) DeleteFiber(fiber);
  for (int i = 0; i < 20000; ++i) {
    void* block = dll.alloc(static_cast<size_t>(i % 700 + 1));
    memset(block, 9, static_cast<size_t>(i % 700 + 1));
    dll.free(block);
  }
  if (thread != nullptr) WaitForSingleObject(thread, INFINITE);
  CHECK(is_filled(kept, 7, 200));
  dll.free(kept);
  return 0;
}

void fibers() {
  size_t before = 0;
  for (int i = 0; i < 40; ++i) {
    HANDLE thread = CreateThread(nullptr, 0, use_fibers, i % 2 != 0 ? &before : nullptr, 0, nullptr);
    CHECK(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
    CloseHandle(thread);
    dll.flush_cache_all();
    if (i == 3) before = dll.total_committed();
  }
  CHECK(dll.total_committed() < before + (1 << 20));
}
