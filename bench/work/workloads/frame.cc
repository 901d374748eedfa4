// A game's frame loop.
#include <sys/prctl.h>

#include "blocks.h"
#include "clock.h"
#include "ring.h"

namespace {

constexpr size_t kMiB = 1 << 20;

constexpr size_t kObjectBytes = 320;  // of an object of the scene, about; they are long-lived
constexpr size_t kReplaced = 40;      // of them, each frame
constexpr size_t kWalked = 4000;      // objects looked at, each frame
constexpr size_t kTemporary = 1500;   // small blocks that end with the frame
constexpr size_t kBuffers = 30;       // larger ones
constexpr size_t kInFlight = 3;       // frames that the messages of one live
constexpr size_t kMessages = 300;     // each frame
constexpr size_t kLists = 40;         // that grow by realloc and begin anew
constexpr size_t kAssets = 48;        // in memory at once
constexpr unsigned kAssetEvery = 8;   // frames

struct List {
  char* items;
  size_t length;
};

struct Scene {
  char* messages[kInFlight][kMessages];
  List lists[kLists];
  char* assets[kAssets];
  uint64_t frame;
};

// Thread 0 runs the frames. A second thread loads the assets; without one they are loaded within the frame.
class Frames final : public Load {
 public:
  void set_up(Run& run) override {
    scene_ = arena_array<Scene>(1);
    object_count_ = run.size() / kObjectBytes;
    objects_ = arena_array<char*>(object_count_);
    loaded_ = make_rings(1);
    alone_ = run.threads() == 1;
    ended_.store(false);
  }

  void prepare(Worker& worker) override {
    if (worker.index != 0) return;
    for (size_t i = 0; i < object_count_; ++i) objects_[i] = make_block(worker, object_size(worker));
    for (char*& asset : scene_->assets) asset = load_asset(worker);
  }

  void work(Worker& worker) override {
    if (worker.index != 0) {
      stream(worker);
      return;
    }
    do {
      const uint64_t start = ticks();
      frame(worker);
      worker.latency->add_ticks(ticks() - start);
    } while (worker.more(1));
    ended_.store(true, std::memory_order_release);
  }

  void clean(Worker& worker) override {
    if (worker.index != 0) return;
    drop_all(worker, objects_, object_count_);
    for (auto& frame : scene_->messages) drop_all(worker, frame, kMessages);
    drop_all(worker, scene_->assets, kAssets);
    for (List& list : scene_->lists) free(list.items);
    char* asset = nullptr;
    while (loaded_->take(&asset, 1) == 1) drop_block(worker, asset);
  }

 private:
  static size_t object_size(Worker& worker) { return worker.rng.log_uniform(32, 1024); }

  static char* load_asset(Worker& worker) {
    const size_t size = worker.rng.log_uniform(64 << 10, 2 << 20);
    char* asset = take(size);
    memset(asset, 0x33, size);
    stamp(asset, size);
    worker.live_add(static_cast<int64_t>(size));
    return asset;
  }

  void stream(Worker& worker) {
    while (!ended_.load(std::memory_order_acquire)) {
      if (asked_.exchange(false, std::memory_order_acquire)) {
        char* asset = load_asset(worker);
        while (loaded_->put(&asset, 1) == 0 && !ended_.load(std::memory_order_acquire)) sched_yield();
      } else {
        usleep_short();
      }
    }
  }

  static void usleep_short() {
    const timespec pause = {0, 100000};
    nanosleep(&pause, nullptr);
  }

  void frame(Worker& worker) {
    char* temporary[kTemporary];
    char* buffers[kBuffers];
    for (size_t i = 0; i < kTemporary; ++i) {
      temporary[i] = make_block(worker, worker.rng.log_uniform(kLeast, 512));
      if (i % (kTemporary / kBuffers) == 0)
        buffers[i / (kTemporary / kBuffers)] = make_block(worker, worker.rng.log_uniform(1024, 65536));
    }
    walk(worker);
    exchange_messages(worker);
    grow_lists(worker);
    for (size_t i = 0; i < kReplaced; ++i) {
      char*& object = objects_[worker.rng.below(object_count_)];
      drop_block(worker, object);
      object = make_block(worker, object_size(worker));
    }
    drop_all(worker, buffers, kBuffers);
    for (size_t i = kTemporary; i > 0; --i) drop_block(worker, temporary[i - 1]);
    take_asset(worker);
    ++scene_->frame;
  }

  void walk(Worker& worker) {
    size_t sum = 0;
    for (size_t i = 0; i < kWalked; ++i) sum += stamped_size(objects_[worker.rng.below(object_count_)]);
    if (sum < kWalked * kLeast) fail_broken(objects_[0]);
  }

  // What was sent some frames ago has been read.
  void exchange_messages(Worker& worker) {
    char** slots = scene_->messages[scene_->frame % kInFlight];
    drop_all(worker, slots, kMessages);
    for (size_t i = 0; i < kMessages; ++i) slots[i] = make_block(worker, worker.rng.log_uniform(32, 2048));
  }

  void grow_lists(Worker& worker) {
    for (List& list : scene_->lists) {
      if (list.length > 40000) {
        free(list.items);
        list = {};
      }
      const size_t more = 16 * worker.rng.between(1, 24);
      list.items = static_cast<char*>(realloc(list.items, list.length + more));
      if (list.items == nullptr) fail_memory(list.length + more);
      if (list.length != 0 && list.items[list.length - 1] != 7) fail_broken(list.items);
      memset(list.items + list.length, 7, more);
      list.length += more;
    }
  }

  void take_asset(Worker& worker) {
    if (scene_->frame % kAssetEvery != 0) return;
    char* asset = nullptr;
    if (alone_) {
      asset = load_asset(worker);
    } else {
      asked_.store(true, std::memory_order_release);
      if (loaded_->take(&asset, 1) == 0) return;  // not there yet
    }
    char*& slot = scene_->assets[worker.rng.below(kAssets)];
    drop_block(worker, slot);
    slot = asset;
  }

  Scene* scene_ = nullptr;
  char** objects_ = nullptr;
  size_t object_count_ = 0;
  Ring* loaded_ = nullptr;
  bool alone_ = true;
  std::atomic<bool> asked_{false};
  std::atomic<bool> ended_{false};
};

void run_frames(Run& run) {
  if (run.threads() > 2) fail(2, "--threads: 1, or 2 to load assets in a second one");
  if (run.size() < kObjectBytes) fail(2, "--size: at least %zu", kObjectBytes);
  Frames load;
  run.execute(load);
}

void run_frames_small_pages(Run& run) {
#ifdef PR_SET_THP_DISABLE
  if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) fail(3, "the system cannot turn large pages off");
#endif
  run_frames(run);
}

constexpr Workload kWorkloads[] = {
    {.name = "frames",
     .group = "frames",
     .title = "A game's frames",
     .description =
         "Each frame: 1,500 small and 30 larger temporary blocks, 300 messages that live three frames, 40 "
         "lists that grow, 40 of the scene's objects (the size in all) replaced and 4,000 looked at, an "
         "asset of 64 KiB to 2 MiB "
         "each 8 frames (by the second thread if there is one). Latency is of whole frames.",
     .unit = "frame",
     .threads = {{1, 2}},
     .sizes = {{8 * kMiB, 512 * kMiB}},
     .quick = {.threads = {{1}}, .sizes = {{8 * kMiB}}, .seconds = 0.2},
     .normal = {.threads = {{1, 2}}, .sizes = {{8 * kMiB, 512 * kMiB}}, .seconds = 1},
     .full = {.seconds = 5, .settle = 1},
     .run = run_frames},
    {.name = "frames-small-pages",
     .group = "frames",
     .title = "A game's frames, large pages off",
     .description = "The same in a process to which the system gives no transparent large pages.",
     .unit = "frame",
     .threads = {{1, 2}},
     .sizes = {{8 * kMiB, 512 * kMiB}},
     .quick = {},
     .normal = {.threads = {{1}}, .sizes = {{512 * kMiB}}, .seconds = 1},
     .full = {.seconds = 5, .settle = 1},
     .run = run_frames_small_pages},
};

}  // namespace

Family frame_family() {
  return family_of(kWorkloads);
}
