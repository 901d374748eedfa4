// Blocks cut down by realloc.
#include "blocks.h"

namespace {

constexpr size_t kFull = 20000;
constexpr size_t kWave = 3000000;  // blocks that stay until the next wave

char* cut_block(size_t size) {
  char* block = take(kFull);
  for (size_t at = 0; at < kFull; at += kPage) block[at] = 1;
  char* cut = static_cast<char*>(realloc(block, size));
  if (cut == nullptr) fail_memory(size);
  if (*cut != 1) fail_broken(cut);
  return cut;
}

class CutToOne final : public Load {
 public:
  explicit CutToOne(uint64_t total) : total_(total) {}

  void set_up(Run& run) override {
    wave_ = total_ < kWave ? total_ : kWave;
    blocks_ = arena_array<char*>(wave_);
    run.live_is_at_least(wave_ + kFull);
  }

  void work(Worker& worker) override {
    for (uint64_t done = 0; done < total_; done += wave_) {
      for (size_t i = 0; i < wave_; ++i) {
        free(blocks_[i]);
        blocks_[i] = cut_block(1);
      }
      worker.more(wave_);
    }
  }

  void clean(Worker&) override {
    for (size_t i = 0; i < wave_; ++i) free(blocks_[i]);
  }

 private:
  uint64_t total_;
  size_t wave_ = 0;
  char** blocks_ = nullptr;
};

class CutToSize final : public Load {
 public:
  explicit CutToSize(uint64_t total) : total_(total) {}

  void set_up(Run& run) override {
    blocks_ = arena_array<char*>(total_);
    run.live_is_at_least(total_ * run.size());
  }

  void work(Worker& worker) override {
    for (uint64_t i = 0; i < total_; ++i) {
      blocks_[i] = cut_block(worker.size);
      memset(blocks_[i], 2, worker.size);
    }
    worker.more(total_);
  }

  void clean(Worker& worker) override {
    const size_t resident = resident_bytes();
    Json& rows = worker.run->rows().open('{');
    rows.key("cut_to").number(static_cast<uint64_t>(worker.size));
    rows.key("blocks").number(total_);
    rows.key("payload").number(total_ * worker.size);
    rows.key("resident").number(static_cast<uint64_t>(resident));
    rows.close('}');
    for (uint64_t i = 0; i < total_; ++i) {
      if (blocks_[i][worker.size - 1] != 2) fail_broken(blocks_[i]);
      free(blocks_[i]);
    }
  }

 private:
  uint64_t total_;
  char** blocks_ = nullptr;
};

void one_thread(const Run& run) {
  if (run.threads() != 1) fail(2, "--threads: this workload has one thread");
}

constexpr Workload kWorkloads[] = {
    {.name = "mmtest",
     .group = "shrink",
     .title = "Blocks of 20,000 bytes cut to one byte",
     .description =
         "30 million times (--ops sets another number): a block of 20,000 bytes is allocated, a byte of "
         "each 4,096 is written, and it is cut to one byte. The last 3 million stay.",
     .unit = "block allocated and cut",
     .threads = {{1}},
     .sizes = {},
     .quick = {.seconds = 0.1, .operations = 1000000},
     .normal = {.seconds = 1.5, .operations = 30000000},
     .full = {.seconds = 1.5, .operations = 30000000, .settle = 1},
     .run =
         [](Run& run) {
           one_thread(run);
           CutToOne load(run.operations_or(30000000));
           run.execute(load, 0, true);
         }},
    {.name = "shrink",
     .group = "shrink",
     .title = "Blocks of 20,000 bytes cut to the size",
     .description =
         "100,000 times (--ops sets another number): a block of 20,000 bytes is allocated, a byte of each "
         "4,096 is written, it is cut to the size and filled. All stay; the row gives what is resident.",
     .unit = "block allocated and cut",
     .threads = {{1}},
     .sizes = {{5000, 1000, 2500, 9000, 10001, 15000}},
     .quick = {.sizes = {{9000}}, .seconds = 0.1, .operations = 10000},
     .normal = {.sizes = {{5000, 9000, 15000}}, .seconds = 0.3, .operations = 30000, .settle = 1},
     .full = {.seconds = 1, .operations = 100000, .settle = 1},
     .run =
         [](Run& run) {
           one_thread(run);
           if (run.size() > kFull) fail(2, "--size: at most %zu", kFull);
           CutToSize load(run.operations_or(100000));
           run.execute(load, 0, true);
         }},
};

}  // namespace

Family shrink_family() {
  return family_of(kWorkloads);
}
