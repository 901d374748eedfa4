// The malloc family and first-class heaps against a shadow model: contents, overlap, alignment, usable sizes,
// zeros, figures; from two threads, and with a system that refuses now and then.
#include <errno.h>
#include <hummock/hummock.h>
#include <sys/mman.h>

#include <memory>

#include "fuzz.h"
#include "os/os.h"
#include "shadow.h"

namespace {

using fuzz::Block;
using fuzz::expect;

constexpr size_t kMostLive = size_t{160} << 20;
constexpr size_t kMostBlocks = 400;
constexpr int kHeaps = 3;

enum Kind : int { kPlain, kAligned, kZero };

// The next calls to the system fail, each kind as its bit says.
struct Refusals {
  unsigned which = 0;
  size_t left = 0;
} refusals;
const hummock::os::Calls real = hummock::os::calls;

bool refused(unsigned call) {
  if (refusals.left == 0 || (refusals.which & call) == 0) return false;
  --refusals.left;
  errno = ENOMEM;
  return true;
}
void* map(void* hint, size_t size, int protection, int flags) {
  return refused(1) ? MAP_FAILED : real.map(hint, size, protection, flags);
}
int unmap(void* address, size_t size) {
  return refused(2) ? -1 : real.unmap(address, size);
}
int advise(void* address, size_t size, int advice) {
  return refused(4) ? -1 : real.advise(address, size, advice);
}
void* remap(void* address, size_t old_size, size_t new_size, int flags, void* target) {
  return refused(8) ? MAP_FAILED : real.remap(address, old_size, new_size, flags, target);
}

class Run {
 public:
  explicit Run(fuzz::Input& input) : input_(input) { hummock::os::calls = {map, unmap, advise, remap}; }
  ~Run() {
    refusals = {};
    while (!shadow_.empty()) end(shadow_.blocks().begin());
    for (hummock_heap_t* heap : heaps_) hummock_heap_destroy(heap);
    hummock_option_set("decay_ms", "1000");
    hummock::os::calls = real;
  }

  void step() {
    const size_t dice = input_.byte();
    if (dice < 96) return begin();
    if (shadow_.empty()) return;
    if (dice < 160) return end(shadow_.pick(input_));
    if (dice < 216) return resize(shadow_.pick(input_));
    if (dice < 226) return shadow_.check(shadow_.pick(input_));
    if (dice < 236) return end_heap();
    if (dice < 244) return wrong_arguments();
    if (dice < 248) return figures();
    if (dice < 250) return other_.reset();
    if (dice < 252) return void(hummock_trim(input_.flag() ? 0 : input_.size_up_to(kMostLive)));
    if (dice < 254) return decay();
    refusals = {input_.byte(), input_.below(8)};
  }

 private:
  // Here, or in the other thread.
  template <class Act>
  void in_a_thread(Act act) {
    if (input_.below(4) != 0) return act();
    if (!other_) other_ = std::make_unique<fuzz::OtherThread>();
    other_->run(act);
  }

  size_t draw() {
    static constexpr size_t kMost[] = {64, 1024, 1024, 8192, 65536, 65536, size_t{2} << 20, size_t{64} << 20};
    return input_.size_up_to(kMost[input_.below(8)]);
  }

  // A request failed: only a system that refuses may be the reason.
  void missed(int error) {
    expect(refused_before_, "memory, for the system refused none");
    expect(error == ENOMEM, "errno of a failed request");
  }

  void admit(void* pointer, Block block) {
    block.usable = hummock_usable_size(pointer);
    shadow_.admit(pointer, block, block.kind != kZero && input_.flag());
  }

  void begin() {
    Block block;
    block.asked = draw();
    block.owner = static_cast<int>(input_.below(8));
    if (shadow_.count() >= kMostBlocks || shadow_.live_bytes() + block.asked > kMostLive) return;
    if (block.owner > kHeaps) block.owner = 0;
    if (block.owner != 0 && heaps_[block.owner - 1] == nullptr) {
      heaps_[block.owner - 1] = hummock_heap_create();
      if (heaps_[block.owner - 1] == nullptr) return missed(errno);
    }
    void* pointer = nullptr;
    int error = 0;
    const size_t how = input_.below(8);
    const size_t alignment = size_t{1} << input_.below(input_.flag() ? 24 : 14);
    refused_before_ |= refusals.left != 0;
    in_a_thread([&] {
      errno = 0;
      pointer = block.owner == 0 ? ask(how, alignment, &block) : ask_heap(how, alignment, &block);
      error = errno;
    });
    if (pointer == nullptr) return missed(error);
    if (block.kind == kPlain) block.alignment = std::max<size_t>(block.alignment, 16);
    admit(pointer, block);
  }

  static void* zeroed(void* pointer, size_t size) {
    if (pointer != nullptr) expect(fuzz::reads_zero(pointer, size), "zeros from calloc");
    return pointer;
  }

  static void* ask(size_t how, size_t alignment, Block* block) {
    const size_t size = block->asked;
    if (how >= 3 && how <= 6) block->kind = kAligned, block->alignment = alignment;
    switch (how) {
      case 0:
        return zeroed(hummock_calloc(1, size), size);
      case 1: {
        void* pointer = hummock_malloc_zero(size);
        block->kind = kZero;
        return zeroed(pointer, hummock_usable_size(pointer));
      }
      case 3:
        return hummock_memalign(alignment, size);
      case 4: {
        void* pointer = nullptr;
        block->alignment = std::max(alignment, sizeof(void*));
        const int error = hummock_posix_memalign(&pointer, block->alignment, size);
        if (error != 0) errno = error;
        return pointer;
      }
      case 5:
        return hummock_aligned_alloc(alignment, size);
      case 6:
        block->alignment = 4096;
        block->kind = kPlain;
        return hummock_valloc(size);
      case 7:
        return hummock_realloc(nullptr, size);
      default:
        return hummock_malloc(size);
    }
  }

  void* ask_heap(size_t how, size_t alignment, Block* block) {
    hummock_heap_t* heap = heaps_[block->owner - 1];
    if (how == 0) return zeroed(hummock_heap_calloc(heap, block->asked, 1), block->asked);
    if (how > 2) return hummock_heap_malloc(heap, block->asked);
    block->alignment = alignment;
    block->kind = kAligned;
    return hummock_heap_memalign(heap, alignment, block->asked);
  }

  void end(fuzz::Shadow::Blocks::iterator at) {
    void* pointer = reinterpret_cast<void*>(at->first);
    const Block block = shadow_.remove(at);
    const size_t how = input_.below(4);
    in_a_thread([&] {
      errno = 4711;
      if (block.owner != 0 && how == 0) {
        hummock_heap_free(heaps_[block.owner - 1], pointer);
      } else if (block.kind == kAligned && how == 1) {
        hummock_free_aligned_sized(pointer, block.alignment, block.asked);
      } else if (block.kind == kPlain && how == 2 && block.alignment <= 16) {
        hummock_free_sized(pointer, block.asked);
      } else {
        hummock_free(pointer);
      }
      expect(errno == 4711, "free keeps errno");
    });
  }

  void resize(fuzz::Shadow::Blocks::iterator at) {
    void* pointer = reinterpret_cast<void*>(at->first);
    const Block old = at->second;
    shadow_.check(at);
    const size_t size =
        std::max<size_t>(1, input_.flag() ? draw() : old.asked + input_.size_up_to(old.asked + 1));
    if (shadow_.live_bytes() + size > kMostLive) return;
    const size_t how = input_.below(3);
    void* moved = nullptr;
    int error = 0;
    refused_before_ |= refusals.left != 0;
    in_a_thread([&] {
      errno = 0;
      moved = old.kind == kZero            ? hummock_realloc_zero(pointer, size)
              : how == 0                   ? hummock_reallocarray(pointer, 1, size)
              : how == 1 && old.owner != 0 ? hummock_heap_realloc(heaps_[old.owner - 1], pointer, size)
                                           : hummock_realloc(pointer, size);
      error = errno;
    });
    if (moved == nullptr) {
      shadow_.check(at);
      return missed(error);
    }
    expect(support::intact(moved, old.tag, old.written, std::min(size, old.asked)),
           "realloc keeps the contents");
    if (old.kind == kZero && size > old.asked) {
      const char* added = static_cast<char*>(moved) + old.asked;
      expect(fuzz::reads_zero(added, hummock_usable_size(moved) - old.asked),
             "zeros behind the old contents");
    }
    shadow_.forget(at);
    Block block;
    block.asked = size;
    block.owner = old.owner;
    block.kind = old.kind == kZero ? kZero : kPlain;
    if (size > 8) block.alignment = 16;
    admit(moved, block);
  }

  void end_heap() {
    const int owner = static_cast<int>(1 + input_.below(kHeaps));
    hummock_heap_t*& heap = heaps_[owner - 1];
    if (heap == nullptr) return;
    hummock_heap_stats_t stats = {};
    stats.size = sizeof stats;
    expect(hummock_heap_stats(heap, &stats) == 0, "a heap's figures");
    size_t blocks = 0, bytes = 0;
    auto& all = shadow_.blocks();
    for (auto at = all.begin(); at != all.end(); ++at) blocks += at->second.owner == owner;
    for (auto at = all.begin(); at != all.end(); ++at)
      bytes += at->second.owner == owner ? at->second.usable : 0;
    expect(stats.live_blocks == blocks, "a heap's number of live blocks");
    expect(stats.live_bytes >= bytes, "a heap's live bytes");
    expect(stats.mapped_bytes >= stats.live_bytes, "a heap's mapped bytes");
    if (input_.flag()) return;
    for (auto at = all.begin(); at != all.end();) {
      const auto here = at++;
      if (here->second.owner == owner) shadow_.remove(here);
    }
    in_a_thread([&] { hummock_heap_destroy(heap); });
    heap = nullptr;
  }

  void wrong_arguments() {
    const size_t huge = SIZE_MAX - input_.size_up_to(SIZE_MAX / 2);
    const size_t odd = 2 * input_.size_up_to(1 << 20) + 3;  // no power of two
    void* out = this;
    errno = 0;
    expect(hummock_malloc(huge) == nullptr && errno == ENOMEM, "malloc of more than there is");
    errno = 0;
    expect(hummock_calloc(huge, odd) == nullptr && errno == ENOMEM, "calloc whose product overflows");
    errno = 0;
    expect(hummock_aligned_alloc(odd, 8) == nullptr && errno == EINVAL, "aligned_alloc's alignment");
    expect(hummock_posix_memalign(&out, odd, 8) == EINVAL && out == this, "posix_memalign's alignment");
    expect(hummock_posix_memalign(&out, 4096, huge) == ENOMEM && out == this, "posix_memalign of too much");
    expect(hummock_good_size(huge) == 0, "no good size of what cannot be");
    const auto at = shadow_.pick(input_);
    if (at->second.owner != 0) return;
    void* pointer = reinterpret_cast<void*>(at->first);
    errno = 0;
    expect(hummock_realloc(pointer, huge) == nullptr && errno == ENOMEM, "realloc to more than there is");
    errno = 0;
    expect(hummock_reallocarray(pointer, huge, odd) == nullptr && errno == ENOMEM, "reallocarray overflows");
    shadow_.check(at);
  }

  void figures() {
    hummock_stats_t stats = {};
    stats.size = sizeof stats;
    expect(hummock_stats(&stats) == 0, "figures");
    expect(stats.live >= shadow_.live_bytes(), "live bytes of at least what is live");
    expect(stats.committed >= stats.live, "committed is what live blocks stand in");
    expect(stats.mapped >= stats.committed, "mapped is all of it");
  }

  void decay() {
    static constexpr const char* kTimes[] = {"0", "1", "1000", "-1"};
    expect(hummock_option_set("decay_ms", kTimes[input_.below(4)]) == 0, "an option set");
  }

  fuzz::Input& input_;
  fuzz::Shadow shadow_;
  hummock_heap_t* heaps_[kHeaps] = {};
  std::unique_ptr<fuzz::OtherThread> other_;
  bool refused_before_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  Run run(input);
  while (!input.empty()) run.step();
  return 0;
}
