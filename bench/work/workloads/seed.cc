// The grid of threads and sizes, the small-block benchmarks, and constant load.
#include <unistd.h>

#include "blocks.h"
#include "clock.h"

namespace {

constexpr size_t kKiB = 1024;

// ---- Grid: random sizes up to the size, one block at a time ------------------------------------------

class Grid final : public Load {
 public:
  void work(Worker& worker) override {
    constexpr unsigned kRound = 32;
    do {
      for (unsigned i = 0; i < kRound; ++i) {
        const size_t size = worker.rng.between(1, worker.size);
        char* block = take(size);
        block[0] = block[size - 1] = 1;
        free(block);
      }
    } while (worker.more(kRound));
  }
};

// ---- Small blocks, 100,000 slots a thread -------------------------------------------------------------

constexpr size_t kSizes = 1 << 20;
constexpr size_t kSlots = 100000;

// kSizes sizes from 16 to `most`.
const uint8_t* random_sizes(Run& run, size_t most) {
  uint8_t* sizes = arena_array<uint8_t>(kSizes);
  Rng rng(run.options.seed);
  for (size_t i = 0; i < kSizes; ++i) sizes[i] = static_cast<uint8_t>(rng.between(16, most));
  return sizes;
}

class Sweeps final : public Load {
 public:
  explicit Sweeps(uint64_t sweeps) : sweeps_(sweeps) {}

  void set_up(Run& run) override {
    sizes_ = random_sizes(run, 79);
    slots_ = arena_array<char*>(kSlots * run.threads());
    run.live_is_at_least(kSlots * run.threads() * 48);
  }

  void work(Worker& worker) override {
    char** slots = slots_ + worker.index * kSlots;
    const uint8_t* sizes = sizes_;
    size_t next = 0;
    const auto fill = [&](char*& slot) {
      slot = take(sizes[next]);
      *slot = static_cast<char>(sizes[next]);
      next = (next + 1) % kSizes;
    };
    for (size_t i = 0; i < kSlots; ++i) fill(slots[i]);
    for (uint64_t sweep = 0; sweep < sweeps_; ++sweep) {
      for (size_t i = 0; i < kSlots; ++i) {
        if (*slots[i] < 16) fail_broken(slots[i]);
        free(slots[i]);
        fill(slots[i]);
      }
    }
    for (size_t i = 0; i < kSlots; ++i) free(slots[i]);
    worker.more(2 * kSlots * (sweeps_ + 1));
  }

 private:
  uint64_t sweeps_;
  const uint8_t* sizes_ = nullptr;
  char** slots_ = nullptr;
};

void run_sweeps(Run& run) {
  const uint64_t operations = run.operations_or(60200000);
  const uint64_t sweeps = operations / (2 * kSlots);
  Sweeps load(sweeps > 1 ? sweeps - 1 : 1);
  const Run::Span span = run.execute(load, 0, true);
  Json& rows = run.rows().open('{');
  rows.key("threads").number(run.threads());
  rows.key("ops_per_second_a_thread")
      .number(static_cast<double>(span.operations) / span.seconds / run.threads());
  rows.key("ops_per_cpu_second").number(static_cast<double>(span.operations) / span.cpu_seconds);
  rows.close('}');
}

class FifoRing final : public Load {
 public:
  explicit FifoRing(uint64_t blocks) : blocks_(blocks) {}

  void set_up(Run& run) override {
    sizes_ = random_sizes(run, 255);
    ring_ = arena_array<char*>(kRing * run.threads());
    run.live_is_at_least(kRing * run.threads() * 136);
  }

  void work(Worker& worker) override {
    char** ring = ring_ + worker.index * kRing;
    size_t place = 0;
    for (uint64_t i = 0; i < blocks_; ++i) {
      const size_t size = sizes_[i % kSizes];
      char*& slot = ring[place];
      place = place + 1 == kRing ? 0 : place + 1;
      if (slot != nullptr && *slot != 0x2a) fail_broken(slot);
      free(slot);
      slot = take(size);
      memset(slot, 0x2a, size < 33 ? size : 33);
    }
    worker.more(blocks_);
  }

  void clean(Worker& worker) override {
    char** ring = ring_ + worker.index * kRing;
    for (size_t i = 0; i < kRing; ++i) free(ring[i]);
  }

 private:
  static constexpr size_t kRing = 10000;

  uint64_t blocks_;
  const uint8_t* sizes_ = nullptr;
  char** ring_ = nullptr;
};

// ---- Constant load: the same work, however many threads share it ---------------------------------------

class ConstantLoad final : public Load {
 public:
  void set_up(Run& run) override {
    if (slots_ == nullptr) slots_ = arena_array<char*>(kSlots + run.threads());
  }

  void prepare(Worker& worker) override {
    for (size_t i = 0; i < own(worker); ++i) mine(worker)[i] = make_block(worker, draw(worker));
  }

  void work(Worker& worker) override {
    char** slots = mine(worker);
    const size_t count = own(worker);
    for (uint64_t i = 0; i < each_; ++i) {
      char*& slot = slots[worker.rng.below(count)];
      drop_block(worker, slot);
      slot = make_block(worker, draw(worker));
    }
    worker.more(each_);
  }

  void clean(Worker& worker) override { drop_all(worker, mine(worker), own(worker)); }

  void share(uint64_t each) { each_ = each; }

 private:
  // Of all threads: the same memory is in use, however many share it.
  static constexpr size_t kSlots = 4096;

  static size_t own(const Worker& worker) { return kSlots / worker.threads + 1; }
  char** mine(const Worker& worker) const { return slots_ + worker.index * own(worker); }
  static size_t draw(Worker& worker) { return worker.rng.log_uniform(kLeast, worker.size); }

  uint64_t each_ = 0;
  char** slots_ = nullptr;
};

constexpr unsigned kRepeats = 3;  // of which the fastest counts

void run_constant_load(Run& run) {
  if (run.size() < kLeast) fail(2, "--size: at least %zu", kLeast);
  const uint64_t work = run.operations_or(400000);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  const uint64_t processors = online < 1 ? 1 : static_cast<uint64_t>(online);
  Run::Span best[16] = {};
  ConstantLoad load;
  for (unsigned repeat = 0; repeat < kRepeats; ++repeat) {
    unsigned step = 0;
    for (unsigned threads = 1; threads <= run.threads(); threads *= 2, ++step) {
      load.share(work * (threads < processors ? threads : processors) / threads);
      const Run::Span span = run.execute(load, threads, true);
      if (repeat == 0 || span.seconds < best[step].seconds) best[step].seconds = span.seconds;
      if (repeat == 0 || span.cpu_seconds < best[step].cpu_seconds) best[step].cpu_seconds = span.cpu_seconds;
      best[step].operations = span.operations;
    }
  }
  const auto cpu_each = [&](unsigned step) {
    return best[step].cpu_seconds / static_cast<double>(best[step].operations);
  };
  Json& rows = run.rows();
  unsigned step = 0;
  for (unsigned threads = 1; threads <= run.threads(); threads *= 2, ++step) {
    rows.open('{');
    rows.key("threads").number(threads);
    rows.key("seconds").number(best[step].seconds);
    rows.key("ratio").number(best[step].seconds / best[0].seconds);
    rows.key("cpu_ratio").number(cpu_each(step) / cpu_each(0));
    rows.close('}');
  }
}

constexpr Workload kWorkloads[] = {
    {.name = "big-brain",
     .group = "grid",
     .title = "Grid of threads and sizes",
     .description =
         "Each thread allocates a block of a random size up to the size, writes its first and last byte "
         "and frees it; operations of all threads are summed.",
     .unit = "block allocated and freed",
     .threads = {{1, 2, 4, 8, 16, 32, 64}},
     .sizes = {{16, 32, 64, 128, 256, 512, kKiB, 2 * kKiB, 4 * kKiB, 8 * kKiB, 16 * kKiB, 32 * kKiB,
                64 * kKiB, 128 * kKiB, 256 * kKiB}},
     .quick = {.threads = {{1, 2, 4}}, .sizes = {{64, 4 * kKiB, 256 * kKiB}}, .seconds = 0.08},
     .normal = {.threads = {{1, 2, 8, 64}},
                .sizes = {{16, 256, 4 * kKiB, 32 * kKiB, 256 * kKiB}},
                .seconds = 0.2},
     .full = {.seconds = 1},
     .run =
         [](Run& run) {
           run.live_is_at_least(run.threads() * run.size());
           Grid load;
           run.execute(load);
         }},
    {.name = "small-sweeps",
     .group = "small",
     .title = "100,000 small blocks a thread, replaced in sweeps",
     .description =
         "Sizes 16 to 79, shared by all threads; each thread fills 100,000 slots, frees and fills each "
         "again in 300 sweeps, and frees all: 60,200,000 operations a thread (--ops sets another number).",
     .unit = "allocation or free",
     .threads = {{1, 2, 3, 4, 5}},
     .sizes = {},
     .quick = {.threads = {{1, 2}}, .seconds = 0.15, .operations = 3200000},
     .normal = {.threads = {{1, 2, 3, 4, 5}}, .seconds = 0.8, .operations = 20200000},
     .full = {.seconds = 1.5, .operations = 60200000, .settle = 1},
     .run = run_sweeps},
    {.name = "small-ring",
     .group = "small",
     .title = "Small blocks through a ring of 10,000",
     .description =
         "10 million blocks a thread (--ops sets another number) of 16 to 255 bytes pass through a ring of "
         "10,000: 33 bytes of each are written, the oldest is checked and freed.",
     .unit = "block allocated and freed",
     .threads = {{1, 2, 4}},
     .sizes = {},
     .quick = {.threads = {{1}}, .seconds = 0.12, .operations = 3000000},
     .normal = {.threads = {{1, 2}}, .seconds = 0.35, .operations = 10000000},
     .full = {.seconds = 0.35, .operations = 10000000, .settle = 1},
     .run =
         [](Run& run) {
           FifoRing load(run.operations_or(10000000));
           run.execute(load, 0, true);
         }},
    {.name = "constant-load",
     .group = "scaling",
     .title = "Constant load on more and more threads",
     .description =
         "1, 2, 4 … threads share as much work as the processors can do at once (--ops for each "
         "processor): replacing random ones of 4,096 blocks in all. Without contention each takes as "
         "long as one thread; the rows give t(T) / t(1), and the same of the CPU time of an operation.",
     .unit = "block replaced",
     .threads = {{64, 8}},
     .sizes = {{32752}},
     .quick = {.threads = {{8}}, .seconds = 0.3, .operations = 100000},
     .normal = {.threads = {{64}}, .seconds = 0.8, .operations = 400000},
     .full = {.threads = {{64}}, .seconds = 3, .operations = 2000000, .settle = 1},
     .run = run_constant_load},
};

}  // namespace

Family seed_family() {
  return family_of(kWorkloads);
}
