// wrong [TRIALS [FIRST]]: random histories of right calls, then one wrong one, which must be told at once.
//
// Each trial, in a child, is drawn from its number: some hundred calls of all kinds by several threads, with
// a table of what is live; then free or realloc of an address that is no live block's start: of a freed
// block, inside one, inside a live one, near one, with other high bits, on the stack. A right call that is
// refused counts, too. The number of a trial that fails is printed; `wrong 1 NUMBER` does it again.
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "../battery/battery.h"
#include "children.h"

namespace battery {
namespace {

enum Stage { kHistory, kCall, kReturned };

// What the child leaves for its parent.
struct Shared {
  std::atomic<int> stage;
  char what[160];  // the wrong call, in words
};
Shared* shared;

// ---- The history ----------------------------------------------------------------------------------------

struct Block {
  char* from;
  size_t size;
};

constexpr size_t kMost = 1024;

class Table {
 public:
  void add(Block block) {
    if (count_ < kMost) blocks_[count_++] = block;
  }
  Block take_out(size_t index) {
    const Block block = blocks_[index];
    blocks_[index] = blocks_[--count_];
    return block;
  }
  void remove(const char* from) {
    for (size_t i = 0; i < count_; ++i) {
      if (blocks_[i].from == from) return void(take_out(i));
    }
  }
  bool has(const char* from) const {
    return std::any_of(blocks_, blocks_ + count_, [=](const Block& b) { return b.from == from; });
  }
  const Block& operator[](size_t index) const { return blocks_[index]; }
  size_t count() const { return count_; }

 private:
  Block blocks_[kMost];
  size_t count_ = 0;
};

Table live, freed;

size_t draw_size(Random& random) {
  switch (random.below(16)) {
    case 0:
      return random.between(64 * KiB, 4 * MiB);
    case 1:
    case 2:
      return random.between(8 * KiB, 64 * KiB);
    case 3:
    case 4:
      return random.between(1 * KiB, 8 * KiB);
    case 5:
      return random.below(64) == 0 ? random.between(30 * MiB, 70 * MiB) : random.below(17);
    default:
      return random.between(1, 1 * KiB);
  }
}

// A block was handed out. What is free there is no more a freed block's start.
void add(void* p, size_t size) {
  if (p == nullptr) end(kFailed, "no memory for %zu bytes", size);
  memset(p, 'h', std::min<size_t>(size, 64));
  freed.remove(static_cast<char*>(p));
  live.add({static_cast<char*>(p), size});
}

void allocate(size_t size, Random& random) {
  if (live.count() == kMost) return;
  switch (random.below(12)) {
    case 0:
      return add(call::calloc(1, size), size);
    case 1:
      return add(call::memalign(size_t{16} << random.below(9), size), size);
    case 2:
      return add(call::realloc(call::malloc(random.between(1, 200)), size + 1), size + 1);
    case 3:
      return add(call::new_one(size), size);
    default:
      return add(call::malloc(size), size);
  }
}

void release(Random& random) {
  if (live.count() == 0) return;
  const Block block = live.take_out(random.below(live.count()));
  call::free(block.from);
  freed.add(block);
}

void resize(size_t size, Random& random) {
  if (live.count() == 0) return;
  const Block block = live.take_out(random.below(live.count()));
  char* moved = static_cast<char*>(call::realloc(block.from, size + 1));
  if (moved != block.from) freed.add(block);
  add(moved, size + 1);
}

// `favourite` is the size of most blocks, so that one class is used much.
void step(size_t favourite, Random& random) {
  const size_t size = random.below(4) == 0 ? draw_size(random) : favourite;
  switch (random.below(16)) {
    case 0:
      return resize(size, random);
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      return release(random);
    default:
      return allocate(size, random);
  }
}

void history(size_t favourite, Random& random) {
  for (size_t runs = random.between(1, 6); runs > 0; --runs) {
    const size_t steps = favourite > 1 * MiB ? random.below(12) : random.below(120);
    const bool only_frees = random.below(3) == 0;
    const auto run = [&] {
      for (size_t i = 0; i < steps; ++i) {
        if (only_frees) {
          release(random);
        } else {
          step(favourite, random);
        }
      }
    };
    if (random.below(3) == 0) {
      on_thread(run);
    } else {
      run();
    }
    if (random.below(16) == 0) malloc_trim(0);
  }
  while (live.count() < 4) add(call::malloc(favourite), favourite);
  while (freed.count() < 2) release(random);
}

// ---- The wrong call ---------------------------------------------------------------------------------------

size_t inside(size_t size, Random& random) {
  const size_t offsets[] = {1,
                            8,
                            16,
                            32,
                            size / 2,
                            size / 2 / 16 * 16,
                            size - 1,
                            size / 16 * 16,
                            4 * KiB,
                            64 * KiB,
                            random.below(size + 1),
                            random.below(size + 1) / 16 * 16};
  const size_t offset = offsets[random.below(std::size(offsets))];
  return offset == 0 || offset >= size ? 1 : offset;
}

struct Wrong {
  char* pointer;
  const char* how;
};

// Near a block may begin one that the C library has: no table knows of it, and its free would be right.
bool may_begin_block(const char* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 8 == 0 && !freed.has(pointer);
}

Wrong near(char* pointer, const char* how) {
  return {may_begin_block(pointer) ? pointer + 4 : pointer, how};
}

// The region map finds an address and those some times 2 TiB away in the same place.
uintptr_t with_other_bit(uintptr_t address, Random& random) {
  const uintptr_t bit = uintptr_t{1} << random.between(36, 63);
  return random.below(2) == 0 ? address ^ bit : address - bit;
}

Wrong draw_pointer(char* local, Random& random) {
  static char variable[256];
  const Block& alive = live[random.below(live.count())];
  const Block& gone = freed[random.below(freed.count())];
  const auto bits = reinterpret_cast<uintptr_t>(alive.from);
  switch (random.below(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return {gone.from, "a freed block"};
    case 4:
    case 5:
    case 6:
      return {alive.from + inside(alive.size, random), "inside a live block"};
    case 7:
      return {gone.from + inside(gone.size, random), "inside a freed block"};
    case 8:
      return near(alive.from - (size_t{1} << random.below(7)), "just before a live block");
    case 9:
      return near(alive.from + call::usable(alive.from) + random.below(2) * 16, "just behind a live block");
    case 10:
      return {reinterpret_cast<char*>(with_other_bit(bits, random)),
              "a live block's address with another high bit"};
    default:
      return {(random.below(2) == 0 ? local : variable) + random.below(128), "a variable"};
  }
}

void trial(size_t number) {
  Random random(number * 2654435761 + 1);
  for (int i = 0; i < 8; ++i) random.next();
  const size_t favourite = std::max<size_t>(draw_size(random), 1);
  shared->stage = kHistory;
  history(favourite, random);
  alignas(16) char local[256];
  Wrong wrong;
  do {
    wrong = draw_pointer(local, random);
  } while (wrong.pointer == nullptr || live.has(wrong.pointer));
  const bool resizes = random.below(4) == 0;
  const bool other_thread = random.below(3) == 0;
  snprintf(shared->what, sizeof(shared->what), "%s of %s (%p) by %s; mostly blocks of %zu bytes",
           resizes ? "realloc" : "free", wrong.how, static_cast<void*>(wrong.pointer),
           other_thread ? "another thread" : "the main thread", favourite);
  const auto act = [=] {
    shared->stage = kCall;
    if (resizes) {
      call::realloc(wrong.pointer, 2 * favourite);
    } else {
      call::free(wrong.pointer);
    }
    shared->stage = kReturned;
  };
  if (other_thread) {
    on_thread(act);
  } else {
    act();
  }
}

// ---- In the parent
// ------------------------------------------------------------------------------------------

struct Counts {
  size_t told = 0, refused = 0, not_told = 0, crashes = 0, failed = 0;
};

void say(size_t number, const char* how, const char* text) {
  static unsigned said;
  if (said++ >= 40) return;
  printf("trial %zu: %s: %s\n", number, how, text);
  fflush(stdout);
}

void count(const Ending& ending, size_t number, Counts& counts) {
  const int stage = shared->stage;
  if (stage == kHistory) {
    const bool failed = ending.code == kFailed;
    say(number, "a right call", ending.text[0] != 0 ? ending.text : "crash");
    ++(failed ? counts.failed : ending.told() ? counts.refused : counts.crashes);
  } else if (stage == kReturned) {
    ++counts.not_told;
    say(number, "not told by the call", shared->what);
  } else if (ending.told()) {
    ++counts.told;
  } else {
    ++counts.crashes;
    say(number, "crash", shared->what);
  }
}

}  // namespace
}  // namespace battery

int main(int argc, char** argv) {
  using namespace battery;
  const size_t trials = argc > 1 ? strtoul(argv[1], nullptr, 10) : 20000;
  const size_t first = argc > 2 ? strtoul(argv[2], nullptr, 10) : 1;
  leave_no_cores();
  shared = new (shared_memory(sizeof(Shared))) Shared{};
  on_thread([] {});  // the C library keeps what a thread needs, and asks for no more in the children
  Counts counts;
  for (size_t number = first; number < first + trials; ++number) {
    count(in_child([=] { trial(number); }), number, counts);
  }
  printf("= told %zu\n= refused %zu\n= not_told %zu\n= crashes %zu\n= failed %zu\n", counts.told,
         counts.refused, counts.not_told, counts.crashes, counts.failed);
  return 0;
}
