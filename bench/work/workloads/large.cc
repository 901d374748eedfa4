// Blocks of pages and of many pages, each page of them written.
#include "live.h"

namespace {

class LargeLive final : public Load {
 public:
  using Draw = size_t (*)(Worker&);
  LargeLive(size_t blocks, Draw draw) : blocks_(blocks), draw_(draw) {}

  void set_up(Run& run) override { live_.set_up(run, blocks_); }
  void prepare(Worker& worker) override { live_.fill(worker, draw_); }

  void work(Worker& worker) override {
    char** slots = live_.of(worker);
    do {
      char*& slot = slots[worker.rng.below(live_.share())];
      replace_timed(worker, slot, draw_(worker));
    } while (worker.more(1));
  }

  void clean(Worker& worker) override { live_.drop(worker); }

 private:
  size_t blocks_;
  Draw draw_;
  Live live_;
};

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

class Calloc final : public Load {
 public:
  void set_up(Run& run) override { slots_ = arena_array<char*>(kSlots * run.threads()); }

  void work(Worker& worker) override {
    char** slots = slots_ + worker.index * kSlots;
    size_t next = 0;
    do {
      char*& slot = slots[next];
      if (++next == kSlots) next = 0;
      if (slot != nullptr) drop_block(worker, slot);
      slot = make_zero(worker, worker.rng.log_uniform(kLeast, worker.size));
    } while (worker.more(1));
  }

  void clean(Worker& worker) override { drop_all(worker, slots_ + worker.index * kSlots, kSlots); }

 private:
  static constexpr size_t kSlots = 1000;

  static char* make_zero(Worker& worker, size_t size) {
    char* block = static_cast<char*>(calloc(size, 1));
    if (block == nullptr) fail_memory(size);
    // A few bytes of each, all of some.
    bool zero = block[0] == 0 && block[size / 2] == 0 && block[size - 1] == 0;
    if (worker.rng.one_in(64))
      for (size_t i = 0; i < size; ++i) zero &= block[i] == 0;
    if (!zero) fail(3, "calloc gave a block that is not zero");
    memset(block, 0x55, size < 256 ? size : 256);
    stamp(block, size);
    worker.live_add(static_cast<int64_t>(size));
    return block;
  }

  char** slots_ = nullptr;
};

constexpr Workload kWorkloads[] = {
    {.name = "large-live",
     .group = "large",
     .title = "Large blocks, 64 KiB to the size",
     .description = "64 blocks live, of log-uniform sizes from 64 KiB to the size; random ones are freed and "
                    "replaced, one byte of each page is written. Each free + malloc is timed alone.",
     .unit = "block replaced",
     .threads = {{1, 2, 4}},
     .sizes = {{4 * kMiB}},
     .quick = {.threads = {{1}}, .seconds = 0.2},
     .normal = {.threads = {{1, 2, 4}}, .seconds = 0.4},
     .full = {.seconds = 2, .settle = 1},
     .run =
         [](Run& run) {
           if (run.size() < 64 * kKiB || run.size() >= 4096 * kMiB) fail(2, "--size: 64K to 4G");
           LargeLive load(64, [](Worker& worker) { return worker.rng.log_uniform(64 * kKiB, worker.size); });
           run.execute(load);
         }},
    {.name = "very-large",
     .group = "large",
     .title = "Blocks of 5 to 25 MiB",
     .description =
         "8 blocks live, of 5 to 25 MiB; random ones are freed and replaced, one byte of each page is "
         "written. Each free + malloc is timed alone.",
     .unit = "block replaced",
     .threads = {{1, 2}},
     .sizes = {},
     .quick = {.threads = {{1}}, .seconds = 0.2},
     .normal = {.threads = {{1, 2}}, .seconds = 0.5},
     .full = {.seconds = 2, .settle = 1},
     .run =
         [](Run& run) {
           LargeLive load(8, [](Worker& worker) { return worker.rng.between(5 * kMiB, 25 * kMiB); });
           run.execute(load);
         }},
    {.name = "calloc",
     .group = "basic",
     .title = "calloc",
     .description =
         "Each thread has 1,000 zeroed blocks of log-uniform sizes from 16 bytes to the size in a ring; "
         "the oldest is freed and replaced. Zeroes are checked: three bytes of each, all of every 64th.",
     .unit = "block replaced",
     .threads = {{1, 2, 4}},
     .sizes = {{65536, 1024}},
     .quick = {.threads = {{1}}, .sizes = {{65536}}, .seconds = 0.1},
     .normal = {.threads = {{1, 2}}, .seconds = 0.3},
     .full = {.seconds = 1, .settle = 1},
     .run =
         [](Run& run) {
           if (run.size() < kLeast) fail(2, "--size: at least %zu", kLeast);
           Calloc load;
           run.execute(load);
         }},
};

}  // namespace

Family large_family() {
  return family_of(kWorkloads);
}
