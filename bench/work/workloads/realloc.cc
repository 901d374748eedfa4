// Blocks that grow and shrink by realloc.
#include "blocks.h"

namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

char* resize(char* block, size_t size) {
  char* moved = static_cast<char*>(realloc(block, size));
  if (moved == nullptr) fail_memory(size);
  return moved;
}

// An array that grows by the eighth part, at least 64 bytes, as vectors and lists of many languages do.
class ArrayGrowth final : public Load {
 public:
  void work(Worker& worker) override {
    uint64_t steps = 0;
    do {
      steps = grow(worker);
    } while (worker.more(steps));
  }

 private:
  static uint64_t grow(Worker& worker) {
    uint64_t* array = nullptr;
    size_t room = 0;
    uint64_t steps = 0;
    while (room < worker.size) {
      const size_t step = (room / 8 < 64 ? 64 : room / 8) & ~size_t{7};
      const size_t next = room + step < worker.size ? room + step : worker.size;
      array = reinterpret_cast<uint64_t*>(resize(reinterpret_cast<char*>(array), next));
      for (size_t at = room / 8; at < next / 8; ++at) array[at] = at;
      worker.live_add(static_cast<int64_t>(next - room));
      for (int i = 0; i < 4; ++i) {
        const size_t at = worker.rng.below(next / 8);
        if (array[at] != at) fail_broken(reinterpret_cast<char*>(array));
      }
      room = next;
      ++steps;
    }
    free(array);
    worker.live_add(-static_cast<int64_t>(room));
    return steps;
  }
};

// Strings to which a few letters are appended at a time; each block is as long as its string.
class Strings final : public Load {
 public:
  void set_up(Run& run) override { strings_ = arena_array<String>(kStrings * run.threads()); }

  void work(Worker& worker) override {
    String* strings = strings_ + worker.index * kStrings;
    constexpr unsigned kRound = 16;
    do {
      for (unsigned i = 0; i < kRound; ++i) append(worker, strings[worker.rng.below(kStrings)]);
    } while (worker.more(kRound));
  }

  void clean(Worker& worker) override {
    for (size_t i = 0; i < kStrings; ++i) end(worker, strings_[worker.index * kStrings + i]);
  }

 private:
  static constexpr size_t kStrings = 2000;
  struct String {
    char* text;
    size_t length;
  };

  static void append(Worker& worker, String& string) {
    if (string.length > worker.size) end(worker, string);
    const size_t more = worker.rng.between(1, 48);
    string.text = resize(string.text, string.length + more + 1);
    if (string.length != 0 && (string.text[0] != 'a' || string.text[string.length - 1] != 'a'))
      fail_broken(string.text);
    memset(string.text + string.length, 'a', more);
    string.length += more;
    string.text[string.length] = 0;
    worker.live_add(static_cast<int64_t>(more));
  }

  static void end(Worker& worker, String& string) {
    free(string.text);
    worker.live_add(-static_cast<int64_t>(string.length));
    string = {};
  }

  String* strings_ = nullptr;
};

// Blocks set to random sizes of a range, up or down.
class Resize final : public Load {
 public:
  Resize(size_t low, size_t high, size_t count) : low_(low), high_(high), count_(count) {}

  void set_up(Run& run) override { blocks_ = arena_array<char*>(count_ * run.threads()); }

  void prepare(Worker& worker) override {
    for (size_t i = 0; i < count_; ++i) mine(worker)[i] = make_block(worker, draw(worker));
  }

  void work(Worker& worker) override {
    char** blocks = mine(worker);
    do {
      char*& block = blocks[worker.rng.below(count_)];
      const size_t old_size = stamped_size(block), size = draw(worker);
      const char last_kept = block[kLeast / 2];
      block = resize(block, size);
      if (block[kLeast / 2] != last_kept) fail_broken(block);
      Stamp kept;
      memcpy(&kept, block, sizeof kept);
      if (kept.size != old_size) fail_broken(block);
      stamp(block, size);
      worker.live_add(static_cast<int64_t>(size) - static_cast<int64_t>(old_size));
    } while (worker.more(1));
  }

  void clean(Worker& worker) override { drop_all(worker, mine(worker), count_); }

 private:
  char** mine(const Worker& worker) const { return blocks_ + worker.index * count_; }
  size_t draw(Worker& worker) const { return worker.rng.log_uniform(low_, high_); }

  size_t low_, high_, count_;
  char** blocks_ = nullptr;
};

template <size_t kLow, size_t kHigh, size_t kCount>
void run_resize(Run& run) {
  Resize load(kLow, kHigh, kCount);
  run.execute(load);
}

constexpr Workload resizing(const char* name, const char* title, const char* description, Plan quick,
                            void (*run)(Run&)) {
  return {.name = name,
          .group = "realloc",
          .title = title,
          .description = description,
          .unit = "realloc",
          .threads = {{1, 2, 4}},
          .sizes = {},
          .quick = quick,
          .normal = {.threads = {{1, 2}}, .seconds = 0.3},
          .full = {.seconds = 1, .settle = 1},
          .run = run};
}

constexpr Workload kWorkloads[] = {
    {.name = "realloc-array",
     .group = "realloc",
     .title = "An array grows to the size",
     .description =
         "Each thread grows an array from nothing to the size by an eighth at a time, fills it and "
         "checks a few elements after each step, frees it, and begins again.",
     .unit = "realloc",
     .threads = {{1, 2}},
     .sizes = {{80 * kMiB, 64 * kKiB}},
     .quick = {.threads = {{1}}, .sizes = {{80 * kMiB}}, .seconds = 0.12},
     .normal = {.threads = {{1, 2}}, .seconds = 0.4},
     .full = {.seconds = 2, .settle = 1},
     .run =
         [](Run& run) {
           if (run.size() < 1024) fail(2, "--size: at least 1K");
           ArrayGrowth load;
           run.execute(load);
         }},
    {.name = "realloc-strings",
     .group = "realloc",
     .title = "Strings grow by appending",
     .description =
         "Each thread has 2,000 strings; 1 to 48 letters are appended to a random one by realloc to its "
         "exact length. A string longer than the size is freed and begins again.",
     .unit = "realloc",
     .threads = {{1, 2, 4}},
     .sizes = {{1000, 16000}},
     .quick = {.threads = {{1}}, .sizes = {{1000}}, .seconds = 0.1},
     .normal = {.threads = {{1, 2}}, .seconds = 0.3},
     .full = {.seconds = 1, .settle = 1},
     .run =
         [](Run& run) {
           Strings load;
           run.execute(load);
         }},
    resizing("realloc-tiny", "Reallocs, 16 to 256 bytes",
             "Each thread sets random ones of 4,000 blocks to random sizes of 16 to 256 bytes; contents are "
             "checked.",
             {}, run_resize<16, 256, 4000>),
    resizing("realloc-small", "Reallocs, 16 bytes to 4 KiB",
             "Each thread sets random ones of 4,000 blocks to random sizes of 16 bytes to 4 KiB.",
             {.threads = {{1}}, .seconds = 0.1}, run_resize<16, 4 * kKiB, 4000>),
    resizing("realloc-medium", "Reallocs, 1 to 64 KiB",
             "Each thread sets random ones of 1,000 blocks to random sizes of 1 to 64 KiB.", {},
             run_resize<kKiB, 64 * kKiB, 1000>),
    resizing("realloc-large", "Reallocs, 64 KiB to 4 MiB",
             "Each thread sets random ones of 40 blocks to random sizes of 64 KiB to 4 MiB.", {},
             run_resize<64 * kKiB, 4 * kMiB, 40>),
};

}  // namespace

Family realloc_family() {
  return family_of(kWorkloads);
}
