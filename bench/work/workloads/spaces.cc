// Tables of the time to allocate and to free, size by size.
#include "blocks.h"
#include "clock.h"

namespace {

constexpr size_t kLargest = 4 << 20;
constexpr unsigned kRows = 19;  // 16 bytes to 4 MiB

struct Row {
  Latency allocate;
  Latency release;
};

void write_rows(Run& run, const Row* table) {
  Json& rows = run.rows();
  for (unsigned i = 0; i < kRows; ++i) {
    if (table[i].allocate.count() == 0) continue;
    rows.open('{');
    rows.key("size").number(static_cast<uint64_t>(kLeast << i));
    rows.key("malloc");
    table[i].allocate.write(rows);
    rows.key("free");
    table[i].release.write(rows);
    rows.close('}');
    run.latency().merge(table[i].allocate);
  }
}

char* timed_take(Latency& latency, size_t size) {
  const uint64_t start = ticks();
  char* block = static_cast<char*>(malloc(size));
  const uint64_t span = ticks() - start;
  if (block == nullptr) fail_memory(size);
  latency.add_ticks(span);
  return block;
}

void timed_free(Latency& latency, char* block) {
  const uint64_t start = ticks();
  free(block);
  latency.add_ticks(ticks() - start);
}

// Several blocks of one size are allocated, then freed, size after size.
class Sequential final : public Load {
 public:
  explicit Sequential(Row* table) : table_(table) {}

  void set_up(Run&) override { blocks_ = arena_array<char*>(kMost); }

  void work(Worker& worker) override {
    uint64_t done;
    do {
      done = 0;
      for (unsigned i = 0; i < kRows; ++i) done += one_size(worker, kLeast << i, table_[i]);
    } while (worker.more(done));
  }

 private:
  static constexpr size_t kMost = 64;

  uint64_t one_size(Worker& worker, size_t size, Row& row) {
    const size_t fit = (8 << 20) / size;  // 8 MiB at most
    const size_t count = fit < kMost ? fit : kMost;
    for (size_t i = 0; i < count; ++i) {
      blocks_[i] = timed_take(row.allocate, size);
      stamp(blocks_[i], size);
    }
    worker.live_add(static_cast<int64_t>(count * size));
    for (size_t i = 0; i < count; ++i) {
      if (retire(blocks_[i]) != size) fail_broken(blocks_[i]);
      timed_free(row.release, blocks_[i]);
    }
    worker.live_add(-static_cast<int64_t>(count * size));
    return count;
  }

  Row* table_;
  char** blocks_ = nullptr;
};

// Random blocks come and go while 70 % of a budget is in use.
class Churn final : public Load {
 public:
  explicit Churn(Row* table) : table_(table) {}

  void set_up(Run& run) override {
    most_ = run.size() / 10 * 7;
    room_ = run.size() / kLeast < 1000000 ? run.size() / kLeast : 1000000;
    blocks_ = arena_array<char*>(room_);
  }

  void prepare(Worker& worker) override { fill(worker); }

  void work(Worker& worker) override {
    do {
      drop_one(worker);
      fill(worker);
    } while (worker.more(1));
  }

  void clean(Worker& worker) override { drop_all(worker, blocks_, count_); }

 private:
  static unsigned row_of(size_t size) {  // the size rounded down to a power of two
    return 63 - static_cast<unsigned>(__builtin_clzll(size)) - 4;
  }

  void fill(Worker& worker) {
    while (count_ < room_) {
      const size_t size = worker.rng.log_uniform(kLeast, kLargest);
      if (in_use_ + size > most_) return;
      char* block = timed_take(table_[row_of(size)].allocate, size);
      stamp(block, size);
      blocks_[count_++] = block;
      in_use_ += size;
      worker.live_add(static_cast<int64_t>(size));
    }
  }

  void drop_one(Worker& worker) {
    const size_t victim = worker.rng.below(count_);
    char* block = blocks_[victim];
    blocks_[victim] = blocks_[--count_];
    blocks_[count_] = nullptr;
    const size_t size = retire(block);
    timed_free(table_[row_of(size)].release, block);
    in_use_ -= size;
    worker.live_add(-static_cast<int64_t>(size));
  }

  Row* table_;
  size_t most_ = 0;
  size_t room_ = 0;
  char** blocks_ = nullptr;
  size_t count_ = 0;
  size_t in_use_ = 0;
};

template <class Kind>
void run_table(Run& run) {
  if (run.threads() != 1) fail(2, "--threads: this workload has one thread");
  Row* table = arena_array<Row>(kRows);
  Kind load(table);
  run.execute(load);
  write_rows(run, table);
}

constexpr Workload kWorkloads[] = {
    {.name = "spaces-sequential",
     .group = "latency",
     .title = "Time to allocate and to free, size by size",
     .description =
         "For each power of two from 16 bytes to 4 MiB: up to 64 blocks are allocated, written, checked "
         "and freed, each malloc and free timed alone. Rows give the percentiles of each size.",
     .unit = "block allocated and freed",
     .threads = {{1}},
     .sizes = {},
     .quick = {.seconds = 0.2},
     .normal = {.seconds = 1},
     .full = {.seconds = 5},
     .run = run_table<Sequential>},
    {.name = "spaces-churn",
     .group = "latency",
     .title = "Time to allocate and to free, 70 % in use",
     .description =
         "Blocks of log-uniform sizes from 16 bytes to 4 MiB fill 70 % of the size; then random ones are "
         "freed and new ones allocated, each call timed alone. Rows by size, rounded down to a power of "
         "two.",
     .unit = "block freed and replaced",
     .threads = {{1}},
     .sizes = {{64 << 20, 512 << 20}},
     .quick = {.sizes = {{64 << 20}}, .seconds = 0.2},
     .normal = {.sizes = {{512 << 20}}, .seconds = 2},
     .full = {.seconds = 5, .settle = 1},
     .run =
         [](Run& run) {
           if (run.size() < (16 << 20)) fail(2, "--size: at least 16M");
           run_table<Churn>(run);
         }},
};

}  // namespace

Family spaces_family() {
  return family_of(kWorkloads);
}
