// Many threads, threads that end, blocks that outlive them; memory given back.
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <mutex>

#include "robust.h"

namespace battery {
namespace {

constexpr size_t kStack = 64 * KiB;

void in_sequence() {
  const auto work = [] { exercise(1, 60); };
  for (int i = 0; i < 100; ++i) on_thread(work, kStack);
  const size_t before = resident();
  for (int i = 0; i < 10000; ++i) on_thread(work, kStack);
  check_resident(before, 8 * MiB, "after 10,000 threads");
}

void alive_at_once() {
  constexpr int kThreads = 2000;
  static pthread_barrier_t all_there;
  static std::atomic<void*> blocks[kThreads];
  static std::atomic<int> numbers;
  pthread_barrier_init(&all_there, nullptr, kThreads + 1);
  auto work = [] {
    const int mine = numbers++;
    char* own = filled(500, mine);
    blocks[mine] = filled(100, 'b');
    pthread_barrier_wait(&all_there);
    check_filled(own, 500, mine);
    call::free(blocks[(mine + 1) % kThreads].exchange(nullptr));  // another thread's
    exercise(static_cast<uint64_t>(mine), 30);
    check_filled(own, 500, mine);
    call::free(own);
  };
  std::deque<Thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, kStack);
  pthread_barrier_wait(&all_there);
  for (Thread& thread : threads) thread.join();
  exercise(2);
}

// Blocks of threads that have ended, used and freed by the main thread: their memory serves it.
void orphaned_blocks() {
  static char* blocks[500];
  const auto fill = [] {
    for (size_t i = 0; i < 500; ++i) blocks[i] = filled(200 + i * 20, static_cast<int>(i));
  };
  const auto check_and_free = [] {
    for (size_t i = 0; i < 500; ++i) {
      check_filled(blocks[i], 200 + i * 20, static_cast<int>(i));
      call::free(blocks[i]);
    }
  };
  size_t before = 0;
  for (int i = 0; i < 400; ++i) {
    if (i == 20) before = resident();
    on_thread(fill, kStack);
    if (i % 2 == 0) check_and_free();
    if (i % 2 != 0) on_thread(check_and_free, kStack);
  }
  check_resident(before, 24 * MiB, "after 400 rounds of 2.6 MB of orphans");
}

// ---- Producer and consumer ------------------------------------------------------------------------

class Queue {
 public:
  void put(char* block) {
    for (;;) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (count_ == kRoom) continue;
      blocks_[(first_ + count_++) % kRoom] = block;
      return;
    }
  }
  char* take() {
    for (;;) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (count_ == 0) continue;
      --count_;
      return blocks_[first_++ % kRoom];
    }
  }

 private:
  static constexpr size_t kRoom = 1000;
  std::mutex mutex_;
  char* blocks_[kRoom] = {};
  size_t first_ = 0, count_ = 0;
};

void producer_consumer() {
  constexpr int kBlocks = 200000;
  static Queue queue;
  auto consume = [] {
    Random random(9);
    for (int i = 0; i < kBlocks; ++i) {
      char* block = queue.take();
      check_filled(block, random.between(1, 600), i % 250);
      call::free(block);
    }
  };
  const size_t before = resident();
  Thread consumer(consume);
  Random random(9);
  for (int i = 0; i < kBlocks; ++i) queue.put(filled(random.between(1, 600), i % 250));
  check_resident(before, 16 * MiB, "while at most 1,000 blocks of 600 bytes wait");
  consumer.join();
}

// Several threads trade blocks in a ring, so that each owns what others free.
void trading_ring() {
  constexpr int kThreads = 8;
  static std::atomic<char*> places[64];
  static std::atomic<uint64_t> seeds;
  auto work = [] {
    Random random(++seeds);
    for (int i = 0; i < 30000; ++i) {
      const size_t size = random.between(24, i % 100 == 0 ? 100 * KiB : 1500);
      char* mine = filled(size, 'x');
      memcpy(mine, &size, sizeof(size));
      char* theirs = places[random.below(64)].exchange(mine);
      if (theirs == nullptr) continue;
      size_t its_size;
      memcpy(&its_size, theirs, sizeof(its_size));
      check_filled(theirs + sizeof(its_size), its_size - sizeof(its_size), 'x');
      call::free(theirs);
    }
  };
  std::deque<Thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work);
  for (Thread& thread : threads) thread.join();
  for (auto& place : places) call::free(place.load());
}

void exit_while_others_free() {
  for (int i = 0; i < 30; ++i) {
    const int child = fork();
    if (child == 0) {
      static std::atomic<int> running;
      auto work = [] {
        for (uint64_t seed = 0;; ++seed) {
          exercise(seed, 100);
          ++running;
        }
      };
      static std::deque<Thread> threads;
      for (int t = 0; t < 4; ++t) threads.emplace_back(work);
      while (running < 8) sched_yield();
      exit(kPassed);
    }
    expect_success(child, "exit");
  }
}

// ---- Memory given back ------------------------------------------------------------------------------

// 500 MB of small blocks, all freed again. The table of them is outside the allocator and resident
// before the first look.
size_t peak_of_small_blocks() {
  constexpr size_t kPeak = 500'000'000;
  constexpr size_t kMost = kPeak / 16;
  const size_t bytes = kMost * sizeof(char*) / 8;
  static char** table = static_cast<char**>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  CHECK(table != MAP_FAILED);
  exercise(1);
  const size_t before = resident();
  Random random(3);
  size_t count = 0;
  for (size_t used = 0; used < kPeak; ++count) {
    const size_t size = random.between(16, 400);
    table[count] = filled(size, 'p');
    used += size;
  }
  CHECK((count + 1) * sizeof(char*) < bytes);
  for (size_t i = 0; i < count; ++i) call::free(table[i]);
  return before;
}

// Goes on allocating a little, as a program does, until little more is resident than before: for so many
// rounds of a millisecond or, on a busy machine, more.
void returned_while_working() {
  const size_t before = peak_of_small_blocks();
  const int most = has_ceilings() ? 5000 : 1000;
  Random random(4);
  int round = 0;
  for (; round < most && resident() > before + 16 * MiB; ++round) {
    char* p[50];
    for (char*& block : p) block = filled(random.between(16, 8000), 'l');
    for (char* block : p) call::free(block);
    usleep(1000);
  }
  dprintf(STDERR_FILENO, "note: after %d rounds ", round);
  check_resident(before, 16 * MiB, "after a peak of 500 MB");
}

void returned_by_trim() {
  const size_t before = peak_of_small_blocks();
  malloc_trim(0);
  check_resident(before, 16 * MiB, "after a peak of 500 MB and malloc_trim");
}

void returned_by_trim_of_other_thread() {
  const size_t before = peak_of_small_blocks();
  on_thread([] { malloc_trim(0); });
  check_resident(before, 16 * MiB, "after a peak of 500 MB and malloc_trim by another thread");
}

// Rounds of one size each, freed last first and first first: what a size leaves behind would stay.
void returned_of_each_size() {
  constexpr size_t kRound = 100 * MiB;
  static char* p[kRound / 700];
  exercise(1);
  const size_t before = resident();
  for (size_t size :
       {size_t{700}, 3 * KiB, 8 * KiB, 10 * KiB, 20 * KiB, 30 * KiB, 60 * KiB, 200 * KiB, 2 * MiB}) {
    for (int round = 0; round < 2; ++round) {
      const size_t count = kRound / size;
      for (size_t i = 0; i < count; ++i) p[i] = filled(size, 's');
      for (size_t i = 0; i < count; ++i) call::free(p[round == 0 ? i : count - 1 - i]);
    }
    malloc_trim(0);
    dprintf(STDERR_FILENO, "%zu bytes: ", size);
    check_resident(before, 16 * MiB, "after 100 MiB of them and malloc_trim");
  }
}

constexpr char kFamily[] = "threads";
constexpr char kMemory[] = "memory given back";

constexpr Case kCases[] = {
    {.name = "threads_in_sequence",
     .family = kFamily,
     .what = "10,000 threads: at most 8 MiB more",
     .run = in_sequence},
    {.name = "threads_alive_at_once",
     .family = kFamily,
     .what = "2,000 threads, each frees another's block",
     .run = alive_at_once},
    {.name = "orphaned_blocks",
     .family = kFamily,
     .what = "blocks of ended threads are used and freed",
     .run = orphaned_blocks},
    {.name = "producer_consumer",
     .family = kFamily,
     .what = "one thread allocates, another frees",
     .run = producer_consumer},
    {.name = "trading_ring",
     .family = kFamily,
     .what = "eight threads free each other's blocks",
     .run = trading_ring},
    {.name = "exit_while_others_free",
     .family = kFamily,
     .what = "exit() while four threads work",
     .run = exit_while_others_free},
    {.name = "returned_while_working",
     .family = kMemory,
     .what = "500 MB freed, a little work: 16 MiB more at most",
     .run = returned_while_working},
    {.name = "returned_by_trim",
     .family = kMemory,
     .what = "500 MB freed, malloc_trim: 16 MiB more at most",
     .run = returned_by_trim},
    {.name = "returned_by_trim_of_other_thread",
     .family = kMemory,
     .what = "the same from another thread",
     .run = returned_by_trim_of_other_thread},
    {.name = "returned_of_each_size",
     .family = kMemory,
     .what = "100 MiB of 700 bytes to 2 MiB, size by size, then malloc_trim",
     .run = returned_of_each_size},
};

}  // namespace

const Cases thread_cases{kCases};

}  // namespace battery
