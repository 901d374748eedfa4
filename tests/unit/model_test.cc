// Random operations against a model: a map of the intervals that are live, what they hold and how they
// were asked for. No overlap, alignment, contents through realloc, zeros where zeros are promised,
// usable size at least what was asked.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>

#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "support/support.h"

namespace {

using support::Random;

constexpr size_t kLargest = size_t{64} << 20;
constexpr size_t kMostLive = size_t{1} << 30;

enum Kind { kPlain, kAligned, kZero, kHeap };

struct Block {
  size_t asked = 0;
  size_t usable = 0;
  size_t alignment = 16;
  uint64_t tag = 0;
  Kind kind = kPlain;
  int heap = -1;
};

// One thread's model. The first broken promise stops it and is kept in `broken`.
class Model {
 public:
  Model(uint64_t seed, size_t most_live) : random_(seed), most_live_(most_live) {
    for (hummock_heap_t*& heap : heaps_) heap = hummock_heap_create();
  }

  ~Model() {
    for (const auto& [address, block] : blocks_) hummock_free(reinterpret_cast<void*>(address));
    for (hummock_heap_t* heap : heaps_) hummock_heap_destroy(heap);
  }

  const char* broken = nullptr;
  size_t operations = 0;

  void step() {
    ++operations;
    const size_t dice = random_.below(100);
    if (live_bytes_ > most_live_ || blocks_.size() > 20000 || (dice < 42 && !blocks_.empty()))
      return end_one();
    if (dice < 62 && !blocks_.empty()) return resize_one();
    if (dice == 99 && random_.one_in(200)) return destroy_heap();
    if (dice == 98 && random_.one_in(500))
      return static_cast<void>(hummock_trim(random_.size_up_to(kLargest)));
    begin_one();
  }

  // A block leaves for another thread, and one of another thread arrives.
  bool take(void** address, Block* block) {
    if (blocks_.empty()) return false;
    auto chosen = pick();
    if (chosen->second.kind == kHeap) return false;  // it would die with our heap
    *address = reinterpret_cast<void*>(chosen->first);
    *block = chosen->second;
    forget(chosen);
    return true;
  }
  void arrive(void* address, const Block& block) {
    expect(support::intact(address, block.tag, block.asked), "contents lost on the way to another thread");
    keep(address, block);
  }

 private:
  using Entry = std::map<uintptr_t, Block>::iterator;

  void expect(bool held, const char* promise) {
    if (!held && broken == nullptr) broken = promise;
  }

  size_t draw_size() { return random_.size_up_to(random_.one_in(16) ? kLargest : size_t{65536}); }

  Entry pick() {
    auto at = blocks_.lower_bound(previous_ + random_.next() % (uintptr_t{1} << random_.between(4, 40)));
    if (at == blocks_.end()) at = blocks_.begin();
    previous_ = at->first;
    return at;
  }

  void forget(Entry entry) {
    live_bytes_ -= entry->second.usable;
    blocks_.erase(entry);
  }

  void keep(void* pointer, Block block) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
    const uintptr_t end = address + std::max<size_t>(block.usable, 1);
    const auto after = blocks_.lower_bound(address);
    expect(after == blocks_.end() || end <= after->first, "overlaps the block after it");
    if (after != blocks_.begin()) {
      const auto before = std::prev(after);
      expect(before->first + before->second.usable <= address, "overlaps the block before it");
    }
    live_bytes_ += block.usable;
    blocks_[address] = block;
  }

  // What every block just handed out promises. Fills it.
  void admit(void* pointer, Block block) {
    expect(pointer != nullptr, "no memory");
    if (pointer == nullptr) return;
    expect(support::is_aligned(pointer, block.alignment), "alignment");
    block.usable = hummock_usable_size(pointer);
    expect(block.usable >= block.asked, "usable size below the size asked");
    block.tag = random_.next();
    support::fill(pointer, block.tag, block.asked);
    keep(pointer, block);
  }

  // Large blocks mostly at their ends: reading zeros maps pages.
  bool zero(const void* pointer, size_t from, size_t to) {
    if (from >= to) return true;
    if (to - from <= 65536 || random_.one_in(50)) return support::all_zero(pointer, from, to);
    return support::all_zero(pointer, from, from + 4096) && support::all_zero(pointer, to - 4096, to);
  }

  void begin_one() {
    Block block;
    block.asked = draw_size();
    switch (random_.below(8)) {
      case 0:
      case 1:
      case 2:
        return admit(hummock_malloc(block.asked), block);
      case 3:
        return begin_calloc(block);
      case 4:
        return begin_aligned(block);
      case 5: {
        block.kind = kZero;
        void* pointer = hummock_malloc_zero(block.asked);
        if (pointer != nullptr) expect(zero(pointer, 0, hummock_usable_size(pointer)), "malloc_zero");
        return admit(pointer, block);
      }
      default:
        return begin_in_heap(block);
    }
  }

  void begin_calloc(Block block) {
    const size_t count = random_.between(1, 9);
    block.asked = block.asked / count * count;
    void* pointer = hummock_calloc(count, block.asked / count);
    if (pointer != nullptr) expect(zero(pointer, 0, block.asked), "calloc is zero");
    admit(pointer, block);
  }

  void begin_aligned(Block block) {
    block.kind = kAligned;
    const size_t alignment = size_t{1} << random_.below(random_.one_in(20) ? 25 : 15);
    block.alignment = std::max<size_t>(alignment, 1);
    void* pointer = nullptr;
    switch (random_.below(3)) {
      case 0:
        pointer = hummock_aligned_alloc(alignment, block.asked);
        break;
      case 1:
        block.alignment = std::max(alignment, sizeof(void*));
        expect(hummock_posix_memalign(&pointer, block.alignment, block.asked) == 0, "posix_memalign");
        break;
      default:
        pointer = hummock_memalign(alignment, block.asked);
    }
    admit(pointer, block);
  }

  void begin_in_heap(Block block) {
    block.kind = kHeap;
    block.heap = static_cast<int>(random_.below(kHeaps));
    hummock_heap_t* heap = heaps_[block.heap];
    switch (random_.below(4)) {
      case 0: {
        void* pointer = hummock_heap_calloc(heap, 1, block.asked);
        if (pointer != nullptr) expect(zero(pointer, 0, block.asked), "heap_calloc is zero");
        return admit(pointer, block);
      }
      case 1:
        block.alignment = size_t{1} << random_.below(14);
        return admit(hummock_heap_memalign(heap, block.alignment, block.asked), block);
      default:
        return admit(hummock_heap_malloc(heap, block.asked), block);
    }
  }

  void resize_one() {
    const Entry entry = pick();
    void* old = reinterpret_cast<void*>(entry->first);
    Block block = entry->second;
    const size_t size = std::max<size_t>(1, near_or_far(block.asked));
    forget(entry);
    void* moved = nullptr;
    if (block.kind == kZero) {
      moved = hummock_realloc_zero(old, size);
      if (moved != nullptr) {
        const size_t usable = hummock_usable_size(moved);
        expect(zero(moved, std::min(block.asked, size), usable), "realloc_zero beyond the old contents");
      }
    } else if (block.kind == kHeap && random_.one_in(2)) {
      moved = hummock_heap_realloc(heaps_[block.heap], old, size);
    } else if (random_.one_in(4)) {
      moved = hummock_reallocarray(old, 1, size);
    } else {
      moved = hummock_realloc(old, size);
    }
    expect(moved != nullptr, "no memory in realloc");
    if (moved == nullptr) return;
    expect(support::intact(moved, block.tag, block.asked, std::min(block.asked, size)),
           "contents kept by realloc");
    if (block.kind == kAligned) block.kind = kPlain;
    block.alignment = size <= 8 ? 8 : 16;
    block.asked = size;
    admit(moved, block);
  }

  size_t near_or_far(size_t size) {
    switch (random_.below(4)) {
      case 0:
        return size + random_.below(64);
      case 1:
        return size - random_.below(size / 4 + 1);
      case 2:
        return std::min(kLargest, size + size / 2);
      default:
        return draw_size();
    }
  }

  void end_one() {
    const Entry entry = pick();
    void* pointer = reinterpret_cast<void*>(entry->first);
    const Block block = entry->second;
    expect(support::intact(pointer, block.tag, block.asked), "contents at the end of the block's life");
    forget(entry);
    errno = 4711;
    if (block.kind == kHeap && random_.one_in(2)) {
      hummock_heap_free(heaps_[block.heap], pointer);
    } else if (block.kind == kAligned && random_.one_in(2)) {
      hummock_free_aligned_sized(pointer, block.alignment, block.asked);
    } else if (block.kind == kPlain && random_.one_in(2)) {
      hummock_free_sized(pointer, block.asked);
    } else {
      hummock_free(pointer);
    }
    expect(errno == 4711, "free keeps errno");
  }

  void destroy_heap() {
    const int chosen = static_cast<int>(random_.below(kHeaps));
    for (auto at = blocks_.begin(); at != blocks_.end();) {
      const Block& block = at->second;
      const bool dies = block.kind == kHeap && block.heap == chosen;
      if (dies) {
        const void* pointer = reinterpret_cast<void*>(at->first);
        expect(support::intact(pointer, block.tag, block.asked), "contents when the heap is destroyed");
        live_bytes_ -= block.usable;
      }
      at = dies ? blocks_.erase(at) : std::next(at);
    }
    hummock_heap_destroy(heaps_[chosen]);
    heaps_[chosen] = hummock_heap_create();
    expect(heaps_[chosen] != nullptr, "a heap");
  }

  static constexpr size_t kHeaps = 3;
  Random random_;
  size_t most_live_;
  size_t live_bytes_ = 0;
  uintptr_t previous_ = 0;
  std::map<uintptr_t, Block> blocks_;
  hummock_heap_t* heaps_[kHeaps] = {};
};

// Slots through which threads exchange blocks.
class Mailbox {
 public:
  bool exchange(size_t slot, void** address, Block* block) {
    Slot& mine = slots_[slot % kSlots];
    std::lock_guard<std::mutex> lock(mine.mutex);
    std::swap(mine.address, *address);
    std::swap(mine.block, *block);
    return *address != nullptr;
  }
  static constexpr size_t kSlots = 512;

 private:
  struct Slot {
    std::mutex mutex;
    void* address = nullptr;
    Block block;
  };
  Slot slots_[kSlots];
};

void run_threads(size_t threads, size_t steps) {
  static Mailbox mailbox;
  std::atomic<const char*> broken{nullptr};
  std::vector<std::thread> crew;
  for (size_t t = 0; t < threads; ++t) {
    crew.emplace_back([&, t] {
      Random random(support::run_seed() * 31 + t);
      Model model(support::run_seed() * 97 + t, kMostLive / 2 / threads);
      for (size_t i = 0; i < steps && model.broken == nullptr && broken.load() == nullptr; ++i) {
        model.step();
        if (!random.one_in(3)) continue;
        void* address = nullptr;
        Block block;
        model.take(&address, &block);
        if (mailbox.exchange(random.below(Mailbox::kSlots), &address, &block)) model.arrive(address, block);
      }
      if (model.broken != nullptr) broken.store(model.broken);
    });
  }
  for (std::thread& thread : crew) thread.join();
  for (size_t i = 0; i < Mailbox::kSlots; ++i) {
    void* address = nullptr;
    Block block;
    if (!mailbox.exchange(i, &address, &block)) continue;
    CHECK(support::intact(address, block.tag, block.asked));
    hummock_free(address);
  }
  INFO(std::string(broken.load() != nullptr ? broken.load() : ""));
  CHECK(broken.load() == nullptr);
}

}  // namespace

TEST_CASE("random operations agree with the model") {
  support::HangGuard guard(280);
  Model model(support::run_seed(), kMostLive);
  const size_t steps = support::scaled(1500000);
  while (model.operations < steps && model.broken == nullptr) model.step();
  INFO("after operation " << model.operations);
  INFO(std::string(model.broken != nullptr ? model.broken : ""));
  CHECK(model.broken == nullptr);
}

TEST_CASE("random operations with few live blocks") {
  support::HangGuard guard(280);
  Model model(support::run_seed() + 1, size_t{1} << 20);
  const size_t steps = support::scaled(1000000);
  while (model.operations < steps && model.broken == nullptr) model.step();
  INFO(std::string(model.broken != nullptr ? model.broken : ""));
  CHECK(model.broken == nullptr);
}

TEST_CASE("threads exchange blocks through a mailbox") {
  support::HangGuard guard(280);
  for (size_t threads : {2, 4, 16}) {
    CAPTURE(threads);
    run_threads(threads, support::scaled(400000 / threads, 500));
  }
}
