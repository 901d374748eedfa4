// race [TRIALS]: two threads free one block at the same moment. Each trial in a child of its own.
//
// Prints a line a size and a pair of threads, then totals. told: one of the two frees ended the process with
// a message. later: a call after both did. not told: nothing did. twice: and then blocks overlapped.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "../battery/battery.h"
#include "children.h"

namespace battery {
namespace {

constexpr size_t kSizes[] = {16,       64,         100,        1000,    4096,    20000,
                             64 * KiB, 100 * 1000, 400 * 1000, 1 * MiB, 3 * MiB, 40 * MiB};

// What the child leaves for its parent, and for the next one.
struct Shared {
  std::atomic<bool> both_returned;
  std::atomic<unsigned> slow_rounds;  // in all trials
};
Shared* shared;

// ---- In the child ------------------------------------------------------------------------------------

struct Piece {
  char* from;
  size_t size;
};

constexpr size_t kMost = 128;
Piece handed_out[kMost];
std::atomic<size_t> pieces;

// The first and last word are written, so that what is no memory shows at once.
void take(size_t size, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    char* p = static_cast<char*>(call::malloc(size));
    if (p == nullptr) end(kFailed, "no memory for %zu bytes", size);
    p[0] = p[size - 1] = 'r';
    handed_out[pieces++] = {p, size};
  }
}

void check_apart() {
  const size_t count = pieces;
  std::sort(handed_out, handed_out + count, [](const Piece& a, const Piece& b) { return a.from < b.from; });
  for (size_t i = 1; i < count; ++i) {
    if (handed_out[i - 1].from + handed_out[i - 1].size > handed_out[i].from) {
      end(kCorrupt, "corrupt: handed out twice: %p", static_cast<void*>(handed_out[i].from));
    }
  }
}

struct Trial {
  size_t size;
  size_t number;
  void* block;
  std::atomic<unsigned> turn{0};
  std::atomic<int> returned{0};

  static constexpr unsigned kSpins = 256;

  // Who sleeps gets a processor soon after, also beside load; who yields it waits for all others.
  static void pause(unsigned& turns) {
    if (++turns % kSpins == 0) usleep(1);
  }
  static void wait_for_both(std::atomic<int>& count) {
    ++count;
    for (unsigned turns = 0; count < 2;) pause(turns);
  }

  // Both run when this returns: they have answered each other at once for some times. Beside much load that
  // takes long, and is done in the first trials only.
  void meet(bool first) {
    constexpr unsigned kGo = ~0u, kMostSlowRounds = 30'000;
    unsigned quick = 0;
    for (unsigned round = 0; first && round < 400 && quick < 8; ++round) {
      if (shared->slow_rounds >= kMostSlowRounds) break;
      turn = 2 * round + 1;
      unsigned waits = 0;
      while (turn % 2 != 0) pause(waits);
      quick = waits < kSpins ? quick + 1 : 0;
      if (quick == 0) ++shared->slow_rounds;
    }
    if (first) turn = kGo;
    for (unsigned waits = 0; !first && turn != kGo; pause(waits)) {
      const unsigned now = turn;
      if (now != kGo && now % 2 != 0) turn = now + 1;
    }
  }

  void free_and_take(bool first) {
    // One of the two comes a little later, by other distances each time.
    const size_t delay = first == (number % 2 == 0) ? number * 37 % 256 : 0;
    if (number % 4 >= 2) call::free(call::malloc(size));  // who asks for such blocks keeps others'
    meet(first);
    for (size_t i = 0; i < delay; ++i) asm volatile("" ::: "memory");
    call::free(block);
    wait_for_both(returned);  // a block that is taken between the two frees is freed rightly by the second
    shared->both_returned = true;
    take(size, size > 1 * MiB ? 2 : 8);
  }
};

enum Pair { kOwnerAndOther, kTwoOthers, kOwnerEnded };
constexpr const char* kPairNames[] = {"owner and another ", "two others        ", "two, owner ended  "};

void child(size_t size, Pair pair, size_t number) {
  static Trial trial;
  trial.size = size;
  trial.number = number;
  const auto prepare = [=] {
    take(size, 1 + number / 4 % 2);  // in the same slab
    trial.block = call::malloc(size);
    // Where nothing is written, the block is as it was in a list of free blocks.
    if (number % 3 != 0) memset(trial.block, 'b', std::min<size_t>(size, 64));
  };
  if (pair == kOwnerEnded) {
    on_thread(prepare);
  } else {
    prepare();
  }
  auto one = [] { trial.free_and_take(true); };
  auto two = [] { trial.free_and_take(false); };
  Thread first(one);
  if (pair == kOwnerAndOther) {
    two();
  } else {
    Thread second(two);
    second.join();
  }
  first.join();
  take(size, size > 1 * MiB ? 4 : 64);
  check_apart();
}

// ---- In the parent -----------------------------------------------------------------------------------

struct Counts {
  unsigned told = 0, later = 0, not_told = 0, twice = 0, crashed = 0, failed = 0;

  void add(const Counts& more) {
    told += more.told, later += more.later, not_told += more.not_told;
    twice += more.twice, crashed += more.crashed, failed += more.failed;
  }
};

void show_once(const char* text) {
  static unsigned shown;
  if (shown++ < 5) fprintf(stderr, "%s\n", text);
}

void count(const Ending& ending, Counts& counts) {
  if (ending.code == kPassed) {
    ++counts.not_told;
  } else if (ending.signal == 0) {
    show_once(ending.text);
    ++(ending.code == kCorrupt ? counts.twice : counts.failed);
  } else if (ending.told()) {
    ++(shared->both_returned ? counts.later : counts.told);
  } else {
    char line[128];
    snprintf(line, sizeof(line), "ended by signal %d, %s both frees", ending.signal,
             shared->both_returned ? "after" : "during");
    show_once(line);
    ++counts.crashed;
  }
}

}  // namespace
}  // namespace battery

int main(int argc, char** argv) {
  using namespace battery;
  const size_t trials = argc > 1 ? strtoul(argv[1], nullptr, 10) : 2500;
  leave_no_cores();
  shared = new (shared_memory(sizeof(Shared))) Shared{};
  Counts all;
  for (const Pair pair : {kOwnerAndOther, kTwoOthers, kOwnerEnded}) {
    for (const size_t size : kSizes) {
      Counts counts;
      for (size_t i = 0; i < trials; ++i) {
        shared->both_returned = false;
        count(in_child([=] { child(size, pair, i); }), counts);
      }
      printf("%9zu bytes, %s: %u told, %u later, %u not told, %u twice, %u crashed, %u failed\n", size,
             kPairNames[pair], counts.told, counts.later, counts.not_told, counts.twice, counts.crashed,
             counts.failed);
      fflush(stdout);
      all.add(counts);
    }
  }
  printf("= told %u\n= told_later %u\n= not_told %u\n= handed_out_twice %u\n= crashes %u\n= failed %u\n",
         all.told, all.later, all.not_told, all.twice, all.crashed, all.failed);
  return 0;
}
