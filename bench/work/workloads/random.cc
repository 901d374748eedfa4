// Many blocks of random sizes that live at once and are replaced at random.
#include "live.h"

namespace {

class RandomLive final : public Load {
 public:
  explicit RandomLive(size_t blocks) : blocks_(blocks) {}

  void set_up(Run& run) override { live_.set_up(run, blocks_); }
  void prepare(Worker& worker) override { live_.fill(worker, draw); }

  void work(Worker& worker) override {
    char** slots = live_.of(worker);
    constexpr unsigned kRound = 32;
    do {
      for (unsigned i = 0; i < kRound; ++i) {
        char*& slot = slots[worker.rng.below(live_.share())];
        if (i == 0) {
          replace_timed(worker, slot, draw(worker));
        } else {
          drop_block(worker, slot);
          slot = make_block(worker, draw(worker));
        }
      }
    } while (worker.more(kRound));
  }

  void clean(Worker& worker) override { live_.drop(worker); }

 private:
  static size_t draw(Worker& worker) { return worker.rng.log_uniform(kLeast, worker.size); }

  size_t blocks_;
  Live live_;
};

template <size_t kLive>
void run_live(Run& run) {
  if (run.size() < kLeast) fail(2, "--size: at least %zu", kLeast);
  RandomLive load(kLive);
  run.execute(load);
}

constexpr Workload random_live(const char* name, const char* title, const char* description, Sizes sizes,
                               Plan quick, Plan normal, Plan full, void (*run)(Run&)) {
  return {.name = name,
          .group = "random",
          .title = title,
          .description = description,
          .unit = "block replaced",
          .threads = {{1, 2, 4}},
          .sizes = sizes,
          .quick = quick,
          .normal = normal,
          .full = full,
          .run = run};
}

constexpr Workload kWorkloads[] = {
    random_live(
        "random-live-10k", "10,000 live blocks",
        "10,000 blocks live, of log-uniform sizes from 16 bytes to the size; random ones are checked, freed "
        "and replaced. Every 32nd free + malloc is timed alone.",
        {{1024, 65536}}, {.threads = {{2}}, .sizes = {{1024}}, .seconds = 0.12},
        {.threads = {{1, 2, 4}}, .seconds = 0.3}, {.seconds = 1, .settle = 1}, run_live<10000>),
    random_live("random-live-300k", "300,000 live blocks",
                "As with 10,000: 300,000 blocks live, so that most are in no cache of the processor.",
                {{1024, 65536}}, {.threads = {{1}}, .sizes = {{1024}}, .seconds = 0.12},
                {.threads = {{1, 2}}, .sizes = {{1024}}, .seconds = 0.4, .settle = 1},
                {.seconds = 1, .settle = 1}, run_live<300000>),
    random_live("random-live-3m", "3,000,000 live blocks",
                "As with 10,000: 3,000,000 blocks live, about 0.7 GB at 1 KiB.", {{1024}}, {},
                {.threads = {{1}}, .sizes = {{1024}}, .seconds = 0.5}, {.seconds = 2, .settle = 1},
                run_live<3000000>),
};

}  // namespace

Family random_family() {
  return family_of(kWorkloads);
}
