// Blocks of several threads on one line of the processor's caches.
#include "blocks.h"

namespace {

// Each thread allocates a small block, writes to it many times and frees it. Passively: it first frees a
// block that the first thread allocated beside those of the other threads.
class FalseSharing final : public Load {
 public:
  explicit FalseSharing(bool passive) : passive_(passive) {}

  void set_up(Run& run) override { given_ = arena_array<char*>(run.threads()); }

  void prepare(Worker& worker) override {
    if (worker.index != 0 || !passive_) return;
    for (unsigned i = 0; i < worker.threads; ++i) given_[i] = take(worker.size);
  }

  void work(Worker& worker) override {
    free(given_[worker.index]);
    given_[worker.index] = nullptr;
    const size_t size = worker.size;
    do {
      auto* block = reinterpret_cast<volatile unsigned char*>(take(size));
      for (size_t i = 0; i < size; ++i) block[i] = static_cast<unsigned char>(worker.index);
      for (unsigned i = 0; i < kWrites; ++i) {
        const size_t at = i % size;
        block[at] = static_cast<unsigned char>(block[at] + 1);
      }
      const auto expected = static_cast<unsigned char>(worker.index + kWrites / size + (kWrites % size != 0));
      if (block[0] != expected) fail(3, "another thread wrote to a block");
      free(const_cast<unsigned char*>(block));
    } while (worker.more(1));
  }

 private:
  static constexpr unsigned kWrites = 1000;

  bool passive_;
  char** given_ = nullptr;
};

template <bool kPassive>
void run_sharing(Run& run) {
  FalseSharing load(kPassive);
  run.live_is_at_least(run.threads() * run.size());
  run.execute(load);
}

constexpr Workload kWorkloads[] = {
    {.name = "false-sharing-active",
     .group = "cross-thread",
     .title = "Active false sharing",
     .description =
         "Each thread allocates a block of the size, writes to it 1,000 times and frees it. Slow where "
         "blocks of two threads share a line.",
     .unit = "block with 1,000 writes",
     .threads = {{2, 4, 8}},
     .sizes = {{8, 32}},
     .quick = {},
     .normal = {.threads = {{2, 4}}, .sizes = {{8}}, .seconds = 0.2},
     .full = {.seconds = 1, .settle = 1},
     .run = run_sharing<false>},
    {.name = "false-sharing-passive",
     .group = "cross-thread",
     .title = "Passive false sharing",
     .description =
         "The same, after one thread allocated a block for each and they freed it: slow where a thread "
         "gets such a block again while its neighbours get the others on the line.",
     .unit = "block with 1,000 writes",
     .threads = {{2, 4, 8}},
     .sizes = {{8, 32}},
     .quick = {.threads = {{2}}, .sizes = {{8}}, .seconds = 0.1},
     .normal = {.threads = {{2, 4}}, .sizes = {{8}}, .seconds = 0.2},
     .full = {.seconds = 1, .settle = 1},
     .run = run_sharing<true>},
};

}  // namespace

Family sharing_family() {
  return family_of(kWorkloads);
}
