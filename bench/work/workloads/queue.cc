// Blocks allocated by one thread and freed by another.
#include "blocks.h"
#include "ring.h"

namespace {

constexpr size_t kBatch = 256;

// The first half of the threads produces, the other consumes. Producer p fills the rings p × consumers …;
// paired, only the one to its own consumer.
class Queue final : public Load {
 public:
  Queue(bool paired, size_t batch) : paired_(paired), batch_(batch) {}

  void set_up(Run& run) override {
    producers_ = run.threads() / 2;
    consumers_ = paired_ ? producers_ : run.threads() - producers_;
    rings_ = make_rings(producers_ * consumers_);
    producing_.store(producers_);
  }

  void work(Worker& worker) override {
    if (worker.index < producers_) {
      produce(worker);
      producing_.fetch_sub(1, std::memory_order_release);
    } else if (worker.index - producers_ < consumers_) {
      consume(worker);
    }
  }

 private:
  Ring& ring(size_t producer, size_t consumer) { return rings_[producer * consumers_ + consumer]; }

  void produce(Worker& worker) {
    char* blocks[kBatch];
    size_t consumer = paired_ ? worker.index : 0;
    Patience patience;
    do {
      for (size_t i = 0; i < batch_; ++i)
        blocks[i] = make_block(worker, worker.rng.log_uniform(kLeast, worker.size));
      // A consumer runs until no producer does, so that this ends.
      for (size_t done = 0; done < batch_;) {
        const size_t put = ring(worker.index, consumer).put(blocks + done, batch_ - done);
        done += put;
        put == 0 ? patience.wait() : patience.done();
        if (!paired_) consumer = (consumer + 1) % consumers_;
      }
    } while (worker.more(batch_));
  }

  void consume(Worker& worker) {
    const size_t consumer = worker.index - producers_;
    const size_t first = paired_ ? consumer : 0, last = paired_ ? consumer + 1 : producers_;
    Patience patience;
    for (;;) {
      const bool ending = producing_.load(std::memory_order_acquire) == 0;
      size_t taken = 0;
      for (size_t producer = first; producer < last; ++producer)
        taken += empty(worker, ring(producer, consumer));
      if (taken == 0 && ending) return;
      taken == 0 ? patience.wait() : patience.done();
    }
  }

  size_t empty(Worker& worker, Ring& ring) {
    char* blocks[kBatch];
    const size_t count = ring.take(blocks, batch_);
    for (size_t i = 0; i < count; ++i) drop_block(worker, blocks[i]);
    return count;
  }

  bool paired_;
  size_t batch_;
  size_t producers_ = 0;
  size_t consumers_ = 0;
  Ring* rings_ = nullptr;
  std::atomic<size_t> producing_{0};
};

template <bool kPaired, size_t kEach>
void run_queue(Run& run) {
  if (run.threads() < 2) fail(2, "--threads: at least 2, one that allocates and one that frees");
  if (kPaired && run.threads() % 2 != 0) fail(2, "--threads: an even number, since threads work in pairs");
  if (run.size() < kLeast) fail(2, "--size: at least %zu", kLeast);
  Queue load(kPaired, kEach);
  run.execute(load);
}

// Threads in a circle: each passes mid-sized blocks to the next, which frees them.
class Circle final : public Load {
 public:
  void set_up(Run& run) override {
    rings_ = make_rings(run.threads());
    working_.store(run.threads());
  }

  void work(Worker& worker) override {
    Ring& out = rings_[(worker.index + 1) % worker.threads];
    Ring& in = rings_[worker.index];
    Patience patience;
    do {
      char* block = make_block(worker, worker.rng.log_uniform(1024, worker.size));
      while (out.put(&block, 1) == 0) {
        empty(worker, in) == 0 ? patience.wait() : patience.done();
      }
      empty(worker, in);
    } while (worker.more(1));
    working_.fetch_sub(1, std::memory_order_release);
    for (;;) {
      const bool ending = working_.load(std::memory_order_acquire) == 0;
      if (empty(worker, in) != 0)
        patience.done();
      else if (ending)
        return;
      else
        patience.wait();
    }
  }

 private:
  static size_t empty(Worker& worker, Ring& ring) {
    char* blocks[16];
    const size_t count = ring.take(blocks, 16);
    for (size_t i = 0; i < count; ++i) drop_block(worker, blocks[i]);
    return count;
  }

  Ring* rings_ = nullptr;
  std::atomic<unsigned> working_{0};
};

constexpr Workload queue(const char* name, const char* title, const char* description, Threads threads,
                         Plan quick, void (*run)(Run&)) {
  return {.name = name,
          .group = "cross-thread",
          .title = title,
          .description = description,
          .unit = "block passed",
          .threads = threads,
          .sizes = {{1024}},
          .quick = quick,
          .normal = {.seconds = 0.3},
          .full = {.seconds = 1, .settle = 1},
          .run = run};
}

constexpr Workload kWorkloads[] = {
    queue("queue-1to1", "Producer and consumer, one block at a time",
          "Pairs of threads: one allocates blocks of log-uniform sizes from 16 bytes to the size and passes "
          "each "
          "through a ring of 1,024 to the other, which checks and frees it.",
          {{2, 4}}, {}, run_queue<true, 1>),
    queue("queue-1to1-batch", "Producer and consumer, 256 blocks at a time",
          "As one at a time, but blocks are passed 256 together.", {{2, 4}},
          {.threads = {{2}}, .seconds = 0.1}, run_queue<true, kBatch>),
    queue("queue-ntom", "Producers and consumers, one block at a time",
          "Half of the threads allocate, the other half free; blocks go from each to all in turn.", {{4, 8}},
          {.threads = {{4}}, .seconds = 0.12}, run_queue<false, 1>),
    queue("queue-ntom-batch", "Producers and consumers, 256 blocks at a time",
          "As one at a time, but blocks are passed 256 together.", {{4, 8}}, {}, run_queue<false, kBatch>),
    {.name = "cross-mid",
     .group = "cross-thread",
     .title = "Mid sizes freed by another thread",
     .description =
         "Threads in a circle: each allocates blocks of log-uniform sizes from 1 KiB to the size, passes "
         "them to the next thread, and checks and frees what comes from the last.",
     .unit = "block passed",
     .threads = {{2, 4, 8}},
     .sizes = {{65536}},
     .quick = {.threads = {{2}}, .seconds = 0.1},
     .normal = {.threads = {{2, 4}}, .seconds = 0.3},
     .full = {.seconds = 1, .settle = 1},
     .run =
         [](Run& run) {
           if (run.size() < 1024) fail(2, "--size: at least 1K");
           Circle load;
           run.execute(load);
         }},
};

}  // namespace

Family queue_family() {
  return family_of(kWorkloads);
}
