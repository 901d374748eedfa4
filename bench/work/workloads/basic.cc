// One block at a time, and batches.
#include "blocks.h"

namespace {

class Pair final : public Load {
 public:
  void work(Worker& worker) override {
    constexpr unsigned kRound = 64;
    const size_t size = worker.size;
    do {
      for (unsigned i = 0; i < kRound; ++i) {
        char* block = take(size);
        block[0] = block[size - 1] = 1;
        free(block);
      }
    } while (worker.more(kRound));
  }
};

enum class Order { kFifo, kLifo, kRandom };

class Batch final : public Load {
 public:
  Batch(size_t count, Order order) : count_(count), order_(order) {}

  void set_up(Run& run) override {
    blocks_ = arena_array<char*>(count_ * run.threads());
    places_ = arena_array<uint32_t>(count_);
    Rng rng(run.options.seed);
    shuffle(rng, places_, count_);
    for (size_t i = 0; i < count_ && order_ != Order::kRandom; ++i)
      places_[i] = static_cast<uint32_t>(order_ == Order::kFifo ? i : count_ - 1 - i);
    run.live_is_at_least(count_ * run.threads() * run.size());
  }

  void work(Worker& worker) override {
    char** blocks = blocks_ + worker.index * count_;
    const size_t size = worker.size;
    do {
      for (size_t i = 0; i < count_; ++i) {
        blocks[i] = take(size);
        stamp(blocks[i], size);
      }
      for (size_t i = 0; i < count_; ++i) {
        char* block = blocks[places_[i]];
        if (retire(block) != size) fail_broken(block);
        free(block);
      }
    } while (worker.more(count_));
  }

 private:
  size_t count_;
  Order order_;
  char** blocks_ = nullptr;
  uint32_t* places_ = nullptr;
};

template <size_t kCount, Order kOrder>
void run_batch(Run& run) {
  if (run.size() < kLeast) fail(2, "--size: at least %zu", kLeast);
  Batch load(kCount, kOrder);
  run.execute(load);
}

constexpr const char kUnit[] = "block allocated and freed";
constexpr Sizes kBatchSizes = {{64, 16, 256, 1024, 8192}};

constexpr Workload batch(const char* name, const char* title, const char* description, Plan quick,
                         void (*run)(Run&)) {
  return {.name = name,
          .group = "basic",
          .title = title,
          .description = description,
          .unit = kUnit,
          .threads = {{1, 2, 4}},
          .sizes = kBatchSizes,
          .quick = quick,
          .normal = {.threads = {{1, 2}}, .sizes = {{64}}, .seconds = 0.3},
          .full = {.seconds = 1, .settle = 1},
          .run = run};
}

constexpr Plan kQuickBatch = {.threads = {{1}}, .sizes = {{64}}, .seconds = 0.1};

constexpr Workload kWorkloads[] = {
    {.name = "pair",
     .group = "basic",
     .title = "Pair",
     .description = "Each thread allocates a block of the size, writes its first and last byte and frees it.",
     .unit = kUnit,
     .threads = {{1, 2, 4}},
     .sizes = {{64, 16, 256, 1024, 8192, 65536, 1048576}},
     .quick = {.threads = {{1}}, .sizes = {{64}}, .seconds = 0.1},
     .normal = {.threads = {{1, 2}}, .sizes = {{16, 64, 1024, 8192, 65536, 1048576}}, .seconds = 0.2},
     .full = {.seconds = 1, .settle = 1},
     .run =
         [](Run& run) {
           Pair load;
           run.live_is_at_least(run.threads() * run.size());
           run.execute(load);
         }},
    batch("batch-1000-fifo", "Batch of 1,000, in order",
          "Each thread allocates 1,000 blocks, writes them, checks and frees them in the same order.",
          kQuickBatch, run_batch<1000, Order::kFifo>),
    batch("batch-1000-lifo", "Batch of 1,000, in reverse",
          "Each thread allocates 1,000 blocks, writes them, checks and frees them last first.", {},
          run_batch<1000, Order::kLifo>),
    batch("batch-1000-random", "Batch of 1,000, in random order",
          "Each thread allocates 1,000 blocks, writes them, checks and frees them in a random order.", {},
          run_batch<1000, Order::kRandom>),
    batch("batch-20000-fifo", "Batch of 20,000, in order",
          "Each thread allocates 20,000 blocks, writes them, checks and frees them in the same order.", {},
          run_batch<20000, Order::kFifo>),
    batch("batch-20000-lifo", "Batch of 20,000, in reverse",
          "Each thread allocates 20,000 blocks, writes them, checks and frees them last first.", {},
          run_batch<20000, Order::kLifo>),
    batch("batch-20000-random", "Batch of 20,000, in random order",
          "Each thread allocates 20,000 blocks, writes them, checks and frees them in a random order.",
          kQuickBatch, run_batch<20000, Order::kRandom>),
};

}  // namespace

Family basic_family() {
  return family_of(kWorkloads);
}
