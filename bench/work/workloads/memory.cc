// What stays in memory after everything, or most, is freed.
#include <unistd.h>

#include "blocks.h"

namespace {

constexpr size_t kKiB = 1024;

void write_row(Run& run, uint64_t round, const char* when, int64_t live) {
  Json& rows = run.rows().open('{');
  rows.key("round").number(round);
  rows.key("when").text(when);
  rows.key("live").number(static_cast<uint64_t>(live < 0 ? 0 : live));
  rows.key("resident").number(static_cast<uint64_t>(resident_bytes()));
  rows.close('}');
}

// Rounds of many blocks of other sizes each, all freed in random order. A row gives what is resident when a
// round is full, and when it is freed.
class Residue final : public Load {
 public:
  explicit Residue(uint64_t rounds) : rounds_(rounds) {}

  void set_up(Run& run) override {
    blocks_ = arena_array<char*>(most(run.size()));
    run.rows();
  }

  void work(Worker& worker) override {
    static constexpr size_t kHighest[] = {64, 1 * kKiB, 16 * kKiB, 256 * kKiB, 4096 * kKiB};
    for (uint64_t round = 0; round < rounds_; ++round) {
      size_t count = 0;
      const size_t highest = kHighest[round % 5];
      while (count < most(worker.size) &&
             worker.live.load(std::memory_order_relaxed) + static_cast<int64_t>(highest) <
                 static_cast<int64_t>(worker.size))
        blocks_[count++] = make_block(worker, worker.rng.log_uniform(kLeast, highest));
      write_row(*worker.run, round, "full", worker.live.load(std::memory_order_relaxed));
      for (; count > 0; --count, worker.more(1)) {
        char*& last = blocks_[count - 1];
        char*& victim = blocks_[worker.rng.below(count)];
        drop_block(worker, victim);
        victim = last;
      }
      write_row(*worker.run, round, "freed", 0);
    }
  }

 private:
  // Blocks of the smallest kind are 34 bytes on average.
  static size_t most(size_t bytes) { return bytes / 24; }

  uint64_t rounds_;
  char** blocks_ = nullptr;
};

// Threads allocate in turn and idle; the last thread frees nearly all of it. Rows give what is resident
// before, after, and how much still lives.
class IdleProducers final : public Load {
 public:
  void set_up(Run& run) override {
    each_ = run.size() / 256 / run.threads();  // log-uniform 16 to 1,024: 242 bytes on average
    blocks_ = arena_array<char*>(each_ * run.threads());
    run.rows();
    filled_.store(0);
    done_.store(false);
  }

  void work(Worker& worker) override {
    char** mine = blocks_ + worker.index * each_;
    for (size_t i = 0; i < each_; ++i) mine[i] = make_block(worker, worker.rng.log_uniform(kLeast, 1024));
    worker.more(each_);
    filled_.fetch_add(1, std::memory_order_acq_rel);
    if (worker.index + 1 != worker.threads) {
      while (!done_.load(std::memory_order_acquire)) pause();
      return;
    }
    while (filled_.load(std::memory_order_acquire) != worker.threads) pause();
    free_most(worker);
    done_.store(true, std::memory_order_release);
  }

  void clean(Worker& worker) override { drop_all(worker, blocks_ + worker.index * each_, each_); }

 private:
  static constexpr size_t kStays = 100;  // one block of so many

  static void pause() { usleep(200); }

  void free_most(Worker& worker) {
    const size_t count = each_ * worker.threads;
    int64_t live = 0;
    for (size_t i = 0; i < count; ++i) live += static_cast<int64_t>(stamped_size(blocks_[i]));
    write_row(*worker.run, 0, "full", live);
    for (size_t i = 0; i < count; ++i) {
      if (i % kStays == 0) continue;
      live -= static_cast<int64_t>(stamped_size(blocks_[i]));
      drop_block(worker, blocks_[i]);
      blocks_[i] = nullptr;
    }
    write_row(*worker.run, 0, "freed", live);
  }

  size_t each_ = 0;
  char** blocks_ = nullptr;
  std::atomic<unsigned> filled_{0};
  std::atomic<bool> done_{false};
};

constexpr Workload kWorkloads[] = {
    {.name = "residue",
     .group = "memory",
     .title = "What stays after all is freed",
     .description =
         "Rounds (10; --ops sets another number) of blocks, the size in all, of log-uniform sizes to 64 "
         "bytes, 1 KiB, 16 KiB, 256 KiB, 4 MiB in turn, freed in random order. Rows give resident memory "
         "when full and when freed; settled memory is what stays.",
     .unit = "block allocated and freed",
     .threads = {{1}},
     .sizes = {{64 << 20, 32 << 20, 256 << 20}},
     .quick = {.sizes = {{32 << 20}}, .seconds = 0.4, .operations = 5, .settle = 0.3},
     .normal = {.sizes = {{256 << 20}}, .seconds = 4, .operations = 10, .settle = 1},
     .full = {.seconds = 6, .operations = 20, .settle = 2},
     .run =
         [](Run& run) {
           if (run.threads() != 1) fail(2, "--threads: this workload has one thread");
           if (run.size() < (8 << 20)) fail(2, "--size: at least 8M");
           Residue load(run.operations_or(10));
           run.execute(load, 0, true);
         }},
    {.name = "idle-producers",
     .group = "memory",
     .title = "Idle threads whose blocks another frees",
     .description =
         "Threads allocate blocks, the size in all, of 16 bytes to 1 KiB, and idle; the last one frees 99 of "
         "100 of all. Rows give resident memory when full and when freed.",
     .unit = "block",
     .threads = {{4, 16}},
     .sizes = {{64 << 20}},
     .quick = {},
     .normal = {.seconds = 0.3, .operations = 1, .settle = 1},
     .full = {.seconds = 0.3, .operations = 1, .settle = 2},
     .run =
         [](Run& run) {
           if (run.size() < 256 * 1024 * run.threads()) fail(2, "--size: at least 256K a thread");
           IdleProducers load;
           run.execute(load, 0, true);
         }},
};

}  // namespace

Family memory_family() {
  return family_of(kWorkloads);
}
