// Kinds of load from public contests of memory managers, made anew.
#include "blocks.h"
#include "clock.h"

namespace {

constexpr size_t kKiB = 1024;

// ---- Blocks grow a little from cycle to cycle: none fits where its predecessor stood --------------------

class Creep final : public Load {
 public:
  void set_up(Run& run) override { blocks_ = arena_array<char*>(kBlocks * run.threads()); }

  void work(Worker& worker) override {
    char** blocks = blocks_ + worker.index * kBlocks;
    uint64_t done;
    do {  // all sizes from the smallest up: parts would not compare
      done = 0;
      for (size_t base = kLeast; base <= worker.size; base += base / 16 + 1, done += kBlocks)
        for (size_t i = 0; i < kBlocks; ++i) replace(worker, blocks[worker.rng.below(kBlocks)], base);
    } while (worker.more(done));
  }

  void clean(Worker& worker) override { drop_all(worker, blocks_ + worker.index * kBlocks, kBlocks); }

 private:
  static constexpr size_t kBlocks = 1000;

  static void replace(Worker& worker, char*& slot, size_t base) {
    if (slot != nullptr) drop_block(worker, slot);
    slot = make_block(worker, base + worker.rng.below(base / 4 + 16));
  }

  char** blocks_ = nullptr;
};

// ---- An array grows while short strings take the memory behind it ---------------------------------------

class Fragmentation final : public Load {
 public:
  void set_up(Run& run) override {
    most_steps_ = run.size() / kLeastStep;
    strings_ = arena_array<char*>(most_steps_ * kStrings * run.threads());
  }

  void work(Worker& worker) override {
    uint64_t steps;
    do {
      steps = grow(worker);
    } while (worker.more(steps * (kStrings + 1)));
  }

 private:
  // Each time another step, so that no one layout decides how often the array must move.
  static constexpr size_t kLeastStep = 60000, kMostStep = 140000;
  static constexpr size_t kStrings = 100;

  size_t grow(Worker& worker) {
    char** strings = strings_ + worker.index * most_steps_ * kStrings;
    const size_t more = worker.rng.between(kLeastStep, kMostStep), steps = worker.size / more;
    char* array = nullptr;
    for (size_t step = 0; step < steps; ++step) {
      const size_t length = step * more;
      array = static_cast<char*>(realloc(array, length + more));
      if (array == nullptr) fail_memory(length + more);
      if (length != 0 && array[length - 1] != 9) fail_broken(array);
      memset(array + length, 9, more);
      worker.live_add(static_cast<int64_t>(more));
      for (size_t i = 0; i < kStrings; ++i)
        strings[step * kStrings + i] = make_block(worker, worker.rng.between(kLeast, 64));
    }
    free(array);
    worker.live_add(-static_cast<int64_t>(steps * more));
    drop_all(worker, strings, steps * kStrings);
    return steps;
  }

  size_t most_steps_ = 0;
  char** strings_ = nullptr;
};

// ---- Threads that build, copy and cut strings -----------------------------------------------------------

class StringThreads final : public Load {
 public:
  void set_up(Run& run) override { texts_ = arena_array<char*>(kTexts * run.threads()); }

  void work(Worker& worker) override {
    char** texts = texts_ + worker.index * kTexts;
    do {
      char*& slot = texts[worker.rng.below(kTexts)];
      free(slot);
      slot = build(worker);
    } while (worker.more(1));
  }

  void clean(Worker& worker) override {
    for (size_t i = 0; i < kTexts; ++i) free(texts_[worker.index * kTexts + i]);
  }

 private:
  static constexpr size_t kTexts = 1000;

  // Words are joined to a line, a copy of a part is kept.
  static char* build(Worker& worker) {
    const size_t words = worker.rng.between(2, 16);
    char* line = nullptr;
    size_t length = 0;
    for (size_t i = 0; i < words; ++i) {
      const size_t letters = worker.rng.between(1, 24);
      char* word = take(letters + 1);
      memset(word, 'w', letters);
      word[letters] = 0;
      line = static_cast<char*>(realloc(line, length + letters + 1));
      if (line == nullptr) fail_memory(length + letters + 1);
      memcpy(line + length, word, letters + 1);
      length += letters;
      free(word);
    }
    if (strlen(line) != length || line[0] != 'w') fail_broken(line);
    const size_t kept = worker.rng.between(1, length);
    char* part = take(kept + 1);
    memcpy(part, line, kept);
    part[kept] = 0;
    free(line);
    return part;
  }

  char** texts_ = nullptr;
};

// ---- Many short-lived threads ---------------------------------------------------------------------------

// Each lane starts thread after thread. A thread frees what its predecessor left, makes blocks, leaves a few.
class WildThreads final : public Load {
 public:
  void set_up(Run& run) override { left_ = arena_array<char*>(kLeft * run.threads()); }

  void work(Worker& worker) override {
    char** left = left_ + worker.index * kLeft;
    auto life = [&] {
      char* own[kOwn];
      drop_all(worker, left, kLeft);
      const size_t count = worker.rng.between(10, kOwn);
      for (size_t i = 0; i < count; ++i)
        own[i] = make_block(worker, worker.rng.log_uniform(kLeast, worker.size));
      const size_t leave = worker.rng.below(kLeft);
      for (size_t i = 0; i < count; ++i) {
        if (i < leave)
          left[i] = own[i];
        else
          drop_block(worker, own[i]);
      }
    };
    do {
      run_in_new_thread(life);
    } while (worker.more(1));
  }

  void clean(Worker& worker) override { drop_all(worker, left_ + worker.index * kLeft, kLeft); }

 private:
  static constexpr size_t kOwn = 300;
  static constexpr size_t kLeft = 10;
  char** left_ = nullptr;
};

// ---- A mixture of sizes, each block used before it goes --------------------------------------------------

size_t usual_size(Rng& rng) {
  const size_t kind = rng.below(256);
  if (kind < 128) return rng.between(kLeast, 64);
  if (kind < 240) return rng.between(64, kKiB);
  if (kind < 255) return rng.between(kKiB, 4 * kKiB);
  return rng.between(4 * kKiB, 256 * kKiB);
}

class AllocUseFree final : public Load {
 public:
  void set_up(Run& run) override { blocks_ = arena_array<char*>(kBlocks * run.threads()); }

  void work(Worker& worker) override {
    char** blocks = blocks_ + worker.index * kBlocks;
    do {
      char*& slot = blocks[worker.rng.below(kBlocks)];
      if (slot != nullptr) drop_block(worker, slot);
      const size_t size = usual_size(worker.rng);
      slot = make_block(worker, size);
      for (size_t at = sizeof(Stamp); at + 1 < size; at += 64) slot[at] = static_cast<char>(at);
    } while (worker.more(1));
  }

  void clean(Worker& worker) override { drop_all(worker, blocks_ + worker.index * kBlocks, kBlocks); }

 private:
  static constexpr size_t kBlocks = 2000;
  char** blocks_ = nullptr;
};

// ---- Small blocks among large ones -----------------------------------------------------------------------

// A few sizes from tiny to large by turns, so that blocks of all kinds stand between each other.
class Spread final : public Load {
 public:
  void set_up(Run& run) override { blocks_ = arena_array<char*>(kBlocks * run.threads()); }

  void work(Worker& worker) override {
    static constexpr size_t kTurns[] = {24, 3000, 100, 40000, 16, 700, 9000, 48, 150000, 320};
    char** blocks = blocks_ + worker.index * kBlocks;
    size_t turn = 0;
    do {
      char*& slot = blocks[worker.rng.below(kBlocks)];
      if (slot != nullptr) drop_block(worker, slot);
      const size_t base = kTurns[turn];
      turn = (turn + 1) % (sizeof kTurns / sizeof *kTurns);
      slot = make_block(worker, base + worker.rng.below(base / 2));
    } while (worker.more(1));
  }

  void clean(Worker& worker) override { drop_all(worker, blocks_ + worker.index * kBlocks, kBlocks); }

 private:
  static constexpr size_t kBlocks = 1000;
  char** blocks_ = nullptr;
};

template <class Kind>
void run_kind(Run& run) {
  if (run.size() != 0 && run.size() < kLeast) fail(2, "--size: at least %zu", kLeast);
  Kind load;
  run.execute(load);
}

constexpr Plan kNormal = {.threads = {{1, 2}}, .seconds = 0.3};
constexpr Plan kFull = {.seconds = 1, .settle = 1};

constexpr Workload kWorkloads[] = {
    {.name = "creep",
     .group = "challenge",
     .title = "Address-space creep",
     .description = "Each thread replaces random ones of 1,000 blocks; after each 1,000 the sizes grow by a "
                    "sixteenth, to the size, then begin small again.",
     .unit = "block replaced",
     .threads = {{1, 2, 4}},
     .sizes = {{65536}},
     .quick = {.threads = {{1}}, .seconds = 0.1},
     .normal = {.threads = {{1, 2}}, .seconds = 0.3, .settle = 1},
     .full = kFull,
     .run = run_kind<Creep>},
    {.name = "fragmentation",
     .group = "challenge",
     .title = "A growing array among short strings",
     .description =
         "Each thread grows an array by 100,000 bytes to the size; between the steps it allocates 100 "
         "strings of 16 to 64 bytes; then frees all and begins again.",
     .unit = "allocation",
     .threads = {{1, 2}},
     .sizes = {{8000000, 40000000}},
     .quick = {.threads = {{1}}, .sizes = {{8000000}}, .seconds = 0.1},
     .normal = {.threads = {{1}}, .seconds = 0.3},
     .full = kFull,
     .run =
         [](Run& run) {
           if (run.size() < 140000) fail(2, "--size: at least 140000");
           Fragmentation load;
           run.execute(load);
         }},
    {.name = "string-threads",
     .group = "challenge",
     .title = "Threads that build strings",
     .description =
         "Each thread joins 2 to 16 words by realloc to a line, keeps a copy of a part in place of a "
         "random one of 1,000, and frees the rest.",
     .unit = "string",
     .threads = {{2, 1, 4, 8}},
     .sizes = {},
     .quick = {.threads = {{2}}, .seconds = 0.1},
     .normal = {.threads = {{1, 2, 8}}, .seconds = 0.3},
     .full = kFull,
     .run = run_kind<StringThreads>},
    {.name = "wild-threads",
     .group = "challenge",
     .title = "Thread after thread",
     .description =
         "Each lane starts a thread after another; each frees what the last left, makes 10 to 300 blocks of "
         "log-uniform sizes from 16 bytes to the size, leaves up to 9 and frees the others.",
     .unit = "thread",
     .threads = {{2, 1, 4, 16}},
     .sizes = {{4096}},
     .quick = {.threads = {{2}}, .seconds = 0.12},
     .normal = {.threads = {{1, 4}}, .seconds = 0.4, .settle = 1},
     .full = kFull,
     .run = run_kind<WildThreads>},
    {.name = "alloc-use-free",
     .group = "challenge",
     .title = "Usual sizes, used",
     .description =
         "Each thread replaces random ones of 2,000 blocks and writes to each line of them: half to 64 "
         "bytes, most to 1 KiB, few to 4 KiB, one of 256 to 256 KiB.",
     .unit = "block replaced",
     .threads = {{1, 2, 4, 8, 16, 32, 64}},
     .sizes = {},
     .quick = {.threads = {{2}}, .seconds = 0.1},
     .normal = {.threads = {{1, 2, 16}}, .seconds = 0.3},
     .full = kFull,
     .run = run_kind<AllocUseFree>},
    {.name = "block-spread",
     .group = "challenge",
     .title = "Small blocks among large ones",
     .description =
         "Each thread replaces random ones of 1,000 blocks by turns of ten very different sizes, 16 bytes to "
         "220 KB.",
     .unit = "block replaced",
     .threads = {{1, 2, 4}},
     .sizes = {},
     .quick = {},
     .normal = kNormal,
     .full = kFull,
     .run = run_kind<Spread>},
};

}  // namespace

Family challenge_family() {
  return family_of(kWorkloads);
}
