// Threads that end and hand their blocks on, and threads that exchange blocks at random.
#include "blocks.h"
#include "clock.h"

namespace {

// A lane is a thread after another: each replaces random blocks of its set, then ends; the next goes on with
// the set, so most blocks are freed by a thread that did not allocate them.
class Server final : public Load {
 public:
  void set_up(Run& run) override { sets_ = arena_array<char*>(kSet * run.threads()); }

  void prepare(Worker& worker) override {
    for (size_t i = 0; i < kSet; ++i) mine(worker)[i] = make_block(worker, draw(worker));
  }

  void work(Worker& worker) override {
    bool more = true;
    auto generation = [&] {
      for (unsigned i = 0; i < kGeneration && more; i += kRound) {
        for (unsigned j = 0; j < kRound; ++j) replace(worker, mine(worker)[worker.rng.below(kSet)], j == 0);
        more = worker.more(kRound);
      }
    };
    while (more) run_in_new_thread(generation);
  }

  void clean(Worker& worker) override { drop_all(worker, mine(worker), kSet); }

 private:
  static constexpr size_t kSet = 5000;
  static constexpr unsigned kGeneration = 20000;
  static constexpr unsigned kRound = 50;

  char** mine(const Worker& worker) const { return sets_ + worker.index * kSet; }
  static size_t draw(Worker& worker) { return worker.rng.log_uniform(kLeast, worker.size); }

  static void replace(Worker& worker, char*& slot, bool timed) {
    if (!timed) {
      drop_block(worker, slot);
      slot = make_block(worker, draw(worker));
      return;
    }
    const size_t old_size = retire(slot), size = draw(worker);
    const uint64_t start = ticks();
    free(slot);
    slot = static_cast<char*>(malloc(size));
    worker.latency->add_ticks(ticks() - start);
    if (slot == nullptr) fail_memory(size);
    stamp(slot, size);
    worker.live_add(static_cast<int64_t>(size) - static_cast<int64_t>(old_size));
  }

  char** sets_ = nullptr;
};

// Many small sizes, few large ones.
size_t skewed_size(Rng& rng) {
  const size_t kind = rng.below(1000);
  if (kind < 850) return rng.log_uniform(kLeast, 512);
  if (kind < 980) return rng.log_uniform(512, 8192);
  if (kind < 999) return rng.log_uniform(8192, 65536);
  return rng.log_uniform(65536, 524288);
}

// Every thread has blocks of its own and swaps some with a table that all share; threads end and begin anew.
class Transfer final : public Load {
 public:
  void set_up(Run& run) override {
    own_ = arena_array<char*>(kOwn * run.threads());
    shared_ = arena_array<std::atomic<char*>>(kShared);
  }

  void work(Worker& worker) override {
    bool more = true;
    auto life = [&] {
      for (unsigned i = 0; i < kLife && more; i += kRound) {
        for (unsigned j = 0; j < kRound; ++j) step(worker);
        more = worker.more(kRound);
      }
    };
    while (more) run_in_new_thread(life);
  }

  void clean(Worker& worker) override { drop_all(worker, own_ + worker.index * kOwn, kOwn); }

  void finish(Run&) override {
    for (size_t i = 0; i < kShared; ++i) {
      char* block = shared_[i].load(std::memory_order_relaxed);
      if (block != nullptr) stamped_size(block);
      free(block);
    }
  }

 private:
  static constexpr size_t kOwn = 1000;
  static constexpr size_t kShared = 4096;
  static constexpr unsigned kLife = 50000;
  static constexpr unsigned kRound = 50;

  void step(Worker& worker) {
    char*& slot = own_[worker.index * kOwn + worker.rng.below(kOwn)];
    if (worker.rng.below(100) < 40) {
      slot = shared_[worker.rng.below(kShared)].exchange(slot, std::memory_order_acq_rel);
      return;
    }
    if (slot != nullptr) drop_block(worker, slot);
    slot = make_block(worker, skewed_size(worker.rng));
  }

  char** own_ = nullptr;
  std::atomic<char*>* shared_ = nullptr;
};

// Rounds: many blocks of growing sizes, then most of them freed. Blocks of the last rounds stay, so that new
// ones must fit between them.
class Rounds final : public Load {
 public:
  void set_up(Run& run) override {
    sizes_ = 0;
    for (size_t size = kLeast; size <= run.size(); size += size / 8 < 8 ? 8 : size / 8) ++sizes_;
    share_ = sizes_ * kEach;
    blocks_ = arena_array<char*>(share_ * kKept * run.threads());
  }

  void work(Worker& worker) override {
    uint64_t round = 0;
    do {
      char** blocks = blocks_ + (worker.index * kKept + round % kKept) * share_;
      drop_all(worker, blocks, share_);
      size_t next = 0;
      for (size_t size = kLeast; size <= worker.size; size += size / 8 < 8 ? 8 : size / 8)
        for (size_t i = 0; i < kEach; ++i) blocks[next++] = make_block(worker, size);
      for (size_t i = 0; i < next; ++i) {  // three of four
        if ((i + round) % 4 == 0) continue;
        drop_block(worker, blocks[i]);
        blocks[i] = nullptr;
      }
      ++round;
    } while (worker.more(share_));
  }

  void clean(Worker& worker) override {
    drop_all(worker, blocks_ + worker.index * kKept * share_, kKept * share_);
  }

 private:
  static constexpr size_t kEach = 50;
  static constexpr size_t kKept = 8;

  size_t sizes_ = 0;
  size_t share_ = 0;
  char** blocks_ = nullptr;
};

constexpr Workload kWorkloads[] = {
    {.name = "server",
     .group = "server",
     .title = "Server: threads that hand on their blocks",
     .description =
         "Each lane has 5,000 blocks of log-uniform sizes from 16 bytes to the size and replaces random "
         "ones; after 20,000 its thread ends and a new one goes on with the set.",
     .unit = "block replaced",
     .threads = {{2, 1, 4, 8}},
     .sizes = {{1024, 65536}},
     .quick = {.threads = {{2}}, .sizes = {{1024}}, .seconds = 0.12},
     .normal = {.threads = {{1, 2, 8}}, .sizes = {{1024}}, .seconds = 0.4, .settle = 1},
     .full = {.seconds = 1, .settle = 1},
     .run =
         [](Run& run) {
           if (run.size() < kLeast) fail(2, "--size: at least %zu", kLeast);
           Server load;
           run.execute(load);
         }},
    {.name = "transfer-stress",
     .group = "server",
     .title = "Random exchange of blocks between threads",
     .description =
         "Each thread has 1,000 blocks, many small and few large (to 512 KiB); 40 % of steps swap one "
         "with a table that all share, 60 % free one and make a new one; threads end after 50,000 steps "
         "and new ones go on.",
     .unit = "step",
     .threads = {{2, 4, 8}},
     .sizes = {},
     .quick = {.threads = {{4}}, .seconds = 0.12},
     .normal = {.threads = {{2, 8}}, .seconds = 0.4, .settle = 1},
     .full = {.seconds = 1, .settle = 1},
     .run =
         [](Run& run) {
           Transfer load;
           run.execute(load);
         }},
    {.name = "mixed-rounds",
     .group = "server",
     .title = "Mixed sizes in rounds",
     .description =
         "Each thread allocates 50 blocks of each of growing sizes from 16 bytes to the size, frees three "
         "of four, and repeats; what is left of a round is freed eight rounds later.",
     .unit = "block allocated and freed",
     .threads = {{1, 2, 4, 8}},
     .sizes = {{8192}},
     .quick = {.threads = {{2}}, .seconds = 0.12},
     .normal = {.threads = {{1, 2, 4}}, .seconds = 0.3},
     .full = {.seconds = 1, .settle = 1},
     .run =
         [](Run& run) {
           if (run.size() < kLeast) fail(2, "--size: at least %zu", kLeast);
           Rounds load;
           run.execute(load);
         }},
};

}  // namespace

Family server_family() {
  return family_of(kWorkloads);
}
