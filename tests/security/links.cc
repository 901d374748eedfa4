// links [TRIES [SEED]]: writes one word of 8 bytes into a block that is free, then goes on with malloc and
// free.
//
// Every word of small blocks, some of larger ones; values that an attacker without the secret, or chance,
// would write. No malloc may then return memory outside the heap, over a live block, or change what is not
// its own. Tries run in a child until one ends it; the parent says how it ended and starts the next.
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <numeric>

#include "../battery/battery.h"
#include "children.h"
#include "maps.h"

namespace battery {
namespace {

enum Stage { kBefore, kWrite, kAfter };

// What the child leaves for its parent.
struct Shared {
  std::atomic<size_t> next;  // number of the try under way
  std::atomic<int> stage;
  std::atomic<size_t> drawn;  // tries whose damaged block was handed out again
};
Shared* shared;

// ---- Live blocks --------------------------------------------------------------------------------------

struct Block {
  char* from;
  size_t size;
  uint64_t seed;
};

constexpr size_t kMost = 256;
Block live[kMost];
size_t live_count;
uint64_t seeds;

alignas(4096) char static_room[8192];
uint64_t static_before[sizeof(static_room) / 8];

[[noreturn]] void bad(const char* what, const void* at, size_t size) {
  end(kCorrupt, "corrupt: %s: %p of %zu bytes", what, at, size);
}

size_t mark_words(const Block& block, uint64_t* at[3]) {
  size_t count = 0;
  uint64_t* words = reinterpret_cast<uint64_t*>(block.from);
  for (const size_t i : {size_t{0}, size_t{1}, block.size / 8 - 1}) {
    if (i < block.size / 8 && (count == 0 || at[count - 1] != words + i)) at[count++] = words + i;
  }
  return count;
}

void mark(const Block& block) {
  uint64_t* at[3];
  const size_t count = mark_words(block, at);
  for (size_t i = 0; i < count; ++i) *at[i] = block.seed + i;
}

void check_mark(const Block& block) {
  uint64_t* at[3];
  const size_t count = mark_words(block, at);
  for (size_t i = 0; i < count; ++i) {
    if (*at[i] != block.seed + i) bad("a live block changed", block.from, block.size);
  }
}

// Regions of Hummock begin with their headers; a block may begin there only if it is longer than a region.
bool among_headers(const char* p, size_t size) {
  static const bool hummock = ::dlsym(RTLD_DEFAULT, "hummock_malloc") != nullptr;
  return hummock && size < 16 * MiB && reinterpret_cast<uintptr_t>(p) % (32 * MiB) < 64 * KiB;
}

void take(size_t size) {
  char* p;
  if (size == 8) {  // a class of its own, which only realloc reaches
    p = static_cast<char*>(call::realloc(call::malloc(64), 8));
  } else {
    p = static_cast<char*>(call::malloc(size));
  }
  if (p == nullptr) end(kFailed, "no memory for %zu bytes", size);
  if (!may_be_heap(p, size) || among_headers(p, size)) bad("outside the heap", p, size);
  if (reinterpret_cast<uintptr_t>(p) % std::min<size_t>(16, size) != 0) bad("not aligned", p, size);
  for (size_t i = 0; i < live_count; ++i) {
    if (p < live[i].from + live[i].size && live[i].from < p + size) bad("over a live block", p, size);
  }
  live[live_count++] = {p, size, ++seeds << 8};
  mark(live[live_count - 1]);
}

void release(size_t index) {
  const Block block = live[index];
  check_mark(block);
  live[index] = live[--live_count];
  call::free(block.from);
}

// ---- What is tried ------------------------------------------------------------------------------------

constexpr size_t kClasses = 1 + 16 + 8 * 8 + 5;
size_t class_sizes[kClasses];

struct Place {
  size_t size;
  size_t word;
};
Place places[4096];
size_t place_count;

void list_places(Random& random) {
  size_t count = 0;
  class_sizes[count++] = 8;
  for (size_t size = 16; size <= 256; size += 16) class_sizes[count++] = size;
  for (size_t base = 256; base < 64 * KiB; base *= 2) {
    for (size_t i = 1; i <= 8; ++i) class_sizes[count++] = base + base / 8 * i;
  }
  for (const size_t size : {100 * KiB, 300 * KiB, 1 * MiB, 3 * MiB, 40 * MiB}) class_sizes[count++] = size;
  for (const size_t size : class_sizes) {
    const size_t words = size / 8;
    for (size_t w = 0; w < std::min<size_t>(words, size <= 128 ? 16 : 8); ++w) {
      places[place_count++] = {size, w};
    }
    if (words <= 16) continue;
    for (int i = 0; i < 4; ++i) places[place_count++] = {size, random.between(8, words - 3)};
    places[place_count++] = {size, words - 2};
    places[place_count++] = {size, words - 1};
  }
}

enum Scenario { kOwn, kRemote, kOwnerEnded, kMixed, kScenarios };

struct Try {
  Place place;
  size_t value;  // which
  Scenario scenario;
};

uint64_t address(const void* p) {
  return reinterpret_cast<uintptr_t>(p);
}

uint64_t word_of(const char* block, size_t index, size_t size) {
  uint64_t word;
  memcpy(&word, block + 8 * (index < size / 8 ? index : 0), 8);
  return word;
}

constexpr size_t kValues = 31;

// What may be written into the word of `victim` that the place names; `other` is another free block.
uint64_t value_of(size_t which, const char* victim, const char* other, Place place, const char* stack,
                  Random& random) {
  const uint64_t old = word_of(victim, place.word, place.size);
  const uint64_t here = address(victim);
  const uint64_t header = here / (32 * MiB) * (32 * MiB) + here / (64 * KiB) % 512 * 128;
  const Block& someone = live[random.below(live_count)];
  const uint64_t values[] = {
      address(stack),
      address(static_room) + 1024,
      address(stdout) / 16 * 16,
      address(reinterpret_cast<const void*>(&list_places)) / 16 * 16,
      address(someone.from),
      address(someone.from) + someone.size / 2 / 16 * 16,
      address(other),
      header,
      here,
      here + 1,
      here - 16,
      here + place.size,
      0,
      1,
      8,
      16,
      64,
      ~uint64_t{0},
      random.next(),
      // What a write of some bytes makes of the word that stands there.
      old ^ random.between(1, 255),
      old ^ 16,
      old ^ 32,
      old ^ 64,
      old ^ 128,
      old ^ (uint64_t{1} << random.between(8, 63)),
      old + 16,
      old + place.size,
      old - place.size,
      // What stands in other free blocks.
      word_of(other, place.word, place.size),
      word_of(other, 0, place.size),
      word_of(other, 1, place.size),
  };
  static_assert(std::size(values) == kValues);
  // A stamp that is copied to where none stands would stay there, for a link of a later try to lead to.
  const bool plants = place.word > 1 && which >= kValues - 3;
  return plants ? 0 : values[which];
}

size_t how_many(size_t size) {
  return size <= 4 * KiB ? 24 : size <= 64 * KiB ? 12 : size <= 4 * MiB ? 6 : 4;
}

struct Freed {
  char* blocks[kMost];
  size_t count = 0;
};

// Every other block, in some order, by who the scenario says.
void free_some(const Try& what, Freed& freed, Random& random) {
  const auto free_half = [&] {
    for (size_t i = live_count / 2; i > 0; --i) {
      const size_t index = random.below(live_count);
      freed.blocks[freed.count++] = live[index].from;
      release(index);
    }
  };
  if (what.scenario == kRemote) {
    on_thread(free_half);
  } else {
    free_half();
  }
  if (what.scenario != kMixed) return;
  take(what.place.size);  // one goes out again, another one comes back
  const char* again = live[live_count - 1].from;
  freed.count =
      static_cast<size_t>(std::remove(freed.blocks, freed.blocks + freed.count, again) - freed.blocks);
  if (freed.count > 2) return;
  freed.blocks[freed.count++] = live[0].from;
  release(0);
}

void go_on(const Try& what, const char* victim, Random& random) {
  const size_t count = how_many(what.place.size);
  if (random.below(2) == 0) {
    release(random.below(live_count));
    release(random.below(live_count));
  }
  if (random.below(4) == 0) on_thread([] { release(0); });
  bool drawn = false;
  for (size_t i = 0; i < count + 8; ++i) {
    take(what.place.size);
    drawn |= live[live_count - 1].from == victim;
    if (i % 4 == 3) release(random.below(live_count));
  }
  shared->drawn += drawn;
}

void try_one(const Try& what, Random& random) {
  alignas(64) char stack[256];
  memset(stack, 's', sizeof(stack));
  shared->stage = kBefore;
  const auto take_many = [&] {
    for (size_t i = how_many(what.place.size); i > 0; --i) take(what.place.size);
  };
  if (what.scenario == kOwnerEnded) {
    on_thread(take_many);
  } else {
    take_many();
  }
  Freed freed;
  free_some(what, freed, random);
  const size_t chosen = random.below(freed.count);
  char* victim = freed.blocks[chosen];
  const char* other = freed.blocks[(chosen + 1) % freed.count];
  shared->stage = kWrite;
  const uint64_t value = value_of(what.value, victim, other, what.place, stack + 64, random);
  memcpy(victim + 8 * what.place.word, &value, 8);
  shared->stage = kAfter;
  go_on(what, victim, random);
  for (const char c : stack) {
    if (c != 's') bad("the stack changed", stack, sizeof(stack));
  }
  if (memcmp(static_room, static_before, sizeof(static_room)) != 0) {
    bad("a static variable changed", static_room, sizeof(static_room));
  }
  while (live_count > 0) release(random.below(live_count));
}

Try number(size_t n) {
  const size_t place = n % place_count;
  const size_t rest = n / place_count;
  const size_t value = rest % kValues;
  return {places[place], value, static_cast<Scenario>((rest / kValues + place + value) % kScenarios)};
}

// ---- In the parent -------------------------------------------------------------------------------------

struct Counts {
  size_t told = 0, gone = 0, bad = 0, crashes = 0, failed = 0;
};

void say(size_t n, const Try& what, const char* how) {
  static unsigned said;
  if (said++ >= 20) return;
  fprintf(stderr, "try %zu: word %zu of %zu bytes, value %zu, scenario %d: %s\n", n, what.place.word,
          what.place.size, what.value, what.scenario, how);
}

void count(const Ending& ending, size_t n, const Try& what, Counts& counts) {
  if (ending.signal == 0) {
    ++(ending.code == kCorrupt ? counts.bad : counts.failed);
    say(n, what, ending.text);
  } else if (ending.told()) {
    ++counts.told;
  } else if (ending.signal == SIGSEGV && shared->stage == kWrite) {
    ++counts.gone;  // the memory has gone back to the system
  } else {
    ++counts.crashes;
    char how[32];
    snprintf(how, sizeof(how), "signal %d", ending.signal);
    say(n, what, how);
  }
}

constexpr size_t kTriesOfAChild = 2000;  // then a fresh heap

size_t spread_step(size_t total) {  // reaches every number, spread evenly all along
  size_t step = total / 1000 * 618 + 1;
  while (std::gcd(step, total) != 1) ++step;
  return step;
}

// The tries from the next one on, until enough; one that ends the process is the last.
void try_on(size_t tries, size_t seed, Try (*what)(size_t)) {
  const size_t stop = std::min(tries, shared->next + kTriesOfAChild);
  for (; shared->next < stop; ++shared->next) {
    Random random(seed * 1000003 + shared->next);
    for (int i = 0; i < 4; ++i) random.next();
    try_one(what(shared->next), random);
  }
}

size_t combinations() {
  return place_count * kValues * kScenarios;
}

// The tries in an order that is the same each time and jumps far.
Try nth(size_t n) {
  static const size_t step = spread_step(combinations());
  return number(n * step % combinations());
}

}  // namespace
}  // namespace battery

int main(int argc, char** argv) {
  using namespace battery;
  leave_no_cores();
  shared = new (shared_memory(sizeof(Shared))) Shared{};
  const size_t seed = argc > 2 ? strtoul(argv[2], nullptr, 10) : 1;
  Random places_random(seed);
  list_places(places_random);
  const size_t tries = argc > 1 ? strtoul(argv[1], nullptr, 10) : combinations();
  Counts counts;
  while (shared->next < tries) {
    const Ending ending = in_child([=] { try_on(tries, seed, nth); });
    if (ending.code == kPassed) continue;
    count(ending, shared->next, nth(shared->next), counts);
    ++shared->next;
  }
  printf("%zu words of %zu sizes, %zu values, %d ways to free: %zu combinations\n", place_count, kClasses,
         kValues, kScenarios, combinations());
  printf(
      "= tries %zu\n= told %zu\n= handed_out_again %zu\n= memory_gone %zu\n= bad_memory %zu\n= crashes %zu\n"
      "= failed %zu\n",
      tries, counts.told, shared->drawn.load(), counts.gone, counts.bad, counts.crashes, counts.failed);
  return 0;
}
