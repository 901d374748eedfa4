// Deterministic spaces of every kind against a shadow model: contents, overlap, what may be refused, and that
// walk and figures agree after every few calls. Blocks of another thread come back, too.
#include <errno.h>
#include <hummock/space.h>

#include <memory>

#include "fuzz.h"
#include "shadow.h"

namespace {

using fuzz::Block;
using fuzz::expect;

constexpr size_t kMostBlocks = 600;

uint32_t one_of(fuzz::Input& input, uint32_t count) {
  return static_cast<uint32_t>(input.below(count));
}

class Run {
 public:
  explicit Run(fuzz::Input& input) : input_(input) {
    make();
    if (space_ == nullptr) return;
    expect(hummock_space_walk(
               space_, [](void*, void*, size_t, int) { return 1; }, nullptr) == 0,
           "a new space");
  }
  ~Run() {
    if (space_ == nullptr) return;
    while (!shadow_.empty()) end(shadow_.blocks().begin());
    other_.reset();
    hummock_space_flush(space_);
    check_figures();
    hummock_space_destroy(space_);
  }

  bool made() const { return space_ != nullptr; }

  void step() {
    const size_t dice = input_.byte();
    if (dice < 110) return begin();
    if (dice >= 244 && dice < 248) return check_figures();
    if (dice >= 248 && dice < 250) return other_.reset();
    if (dice >= 250 && dice < 252) return hummock_space_flush(space_);
    if (dice >= 252) return change_extent();
    if (shadow_.empty()) return;
    if (dice < 190) return end(shadow_.pick(input_));
    if (dice < 240) return resize(shadow_.pick(input_));
    shadow_.check(shadow_.pick(input_));
  }

 private:
  // Options of any kind, contradictions too: those are refused with EINVAL.
  void make() {
    hummock_space_options_t options = {};
    options.size = sizeof options;
    options.initial = input_.size_up_to(1 << 20) + (input_.flag() ? 65536 : 0);
    options.threads = one_of(input_, 3);
    options.policy = one_of(input_, 2);
    options.zero = one_of(input_, 2);
    options.reserve = one_of(input_, 2);
    options.populate = one_of(input_, 2);
    options.no_fork = one_of(input_, 3);
    if (input_.flag()) options.maximum = options.initial + input_.size_up_to(4 << 20);
    if (options.maximum != 0 && input_.flag()) options.expand = input_.size_up_to(1 << 18);
    if (input_.flag()) options.cache_blocks = static_cast<uint32_t>(input_.size_up_to(300));
    if (input_.flag()) options.cache_step = 16u << input_.below(6);
    if (input_.flag()) options.cache_largest = static_cast<uint32_t>(input_.size_up_to(8192));
    if (input_.below(16) == 0) options.threads = input_.byte();
    if (input_.below(16) == 0) options.policy = input_.byte();
    if (options.policy == HUMMOCK_SPACE_PROVEN && input_.flag()) promise(&options);
    if (input_.below(6) == 0) {
      options.shared = 1;
    } else if (input_.below(4) == 0 && options.maximum == 0) {
      memory_.reset(static_cast<char*>(aligned_alloc(4096, (options.initial + 4095) / 4096 * 4096 + 4096)));
      options.memory = memory_.get();
    }
    zero_ = options.zero != 0;
    shared_ = options.shared != 0;
    owner_ = options.threads == HUMMOCK_SPACE_OWNER;
    uint32_t achieved = 0;
    errno = 0;
    space_ = hummock_space_create(&options, &achieved);
    expect(space_ != nullptr || errno == EINVAL || errno == ENOMEM, "errno of a space that cannot be had");
    expect(space_ != nullptr || most_live_ == 0 || errno == EINVAL, "a space of the size required");
    if (space_ == nullptr) most_live_ = 0;
  }

  // A space that refuses nothing within bounds.
  void promise(hummock_space_options_t* options) {
    most_live_ = 1 + input_.size_up_to(1 << 19);
    largest_ = 1 + input_.below(most_live_);
    smallest_ = 1 + input_.below(largest_);
    options->initial = hummock_space_required_size(most_live_, largest_, smallest_);
    const size_t can_be_live = most_live_ / largest_ * largest_;
    expect(options->initial > can_be_live, "the size required is more than what can be live");
    options->maximum = options->expand = options->cache_blocks = 0;
    options->reserve = HUMMOCK_SPACE_AT_START;
  }

  template <class Act>
  void in_a_thread(bool may, Act act) {
    if (!may || input_.below(4) != 0) return act();
    if (!other_) other_ = std::make_unique<fuzz::OtherThread>();
    other_->run(act);
  }

  bool within_promise(size_t size) const {
    return most_live_ != 0 && size >= smallest_ && size <= largest_ && asked_ + size <= most_live_;
  }

  void admit(void* pointer, Block block) {
    block.usable = hummock_space_usable_size(space_, pointer);
    expect(hummock_space_contains(space_, pointer) == 1, "the space contains its block");
    if (shared_) {
      const size_t offset = hummock_space_offset(space_, pointer);
      expect(offset != 0 && hummock_space_pointer(space_, offset) == pointer, "an offset leads back");
    }
    asked_ += block.asked;
    shadow_.admit(pointer, block, input_.flag());
  }

  size_t draw() {
    if (most_live_ != 0) return smallest_ + input_.below(largest_ - smallest_ + 1);
    return input_.size_up_to(input_.below(8) == 0 ? 1 << 20 : 5000);
  }

  void begin() {
    if (shadow_.count() >= kMostBlocks) return;
    Block block;
    block.asked = draw();
    block.alignment = 16;
    const size_t how = most_live_ != 0 ? 5 : input_.below(6);
    if (most_live_ != 0 && !within_promise(block.asked)) return;
    if (how == 1) block.alignment = size_t{1} << input_.below(shared_ ? 13 : 15);
    void* pointer = nullptr;
    int error = 0;
    in_a_thread(!owner_, [&] {
      errno = 0;
      if (how == 0) {
        pointer = hummock_space_calloc(space_, 1, block.asked);
      } else if (how == 1) {
        pointer = hummock_space_memalign(space_, block.alignment, block.asked);
      } else if (how == 2) {
        pointer = hummock_space_malloc_zero(space_, block.asked, 1);
      } else if (how == 3) {
        pointer = hummock_space_malloc_zero(space_, block.asked, 0);
      } else {
        pointer = hummock_space_malloc(space_, block.asked);
      }
      error = errno;
    });
    if (pointer == nullptr) {
      expect(error == ENOMEM, "errno of a refusal");
      return expect(most_live_ == 0, "no refusal within what was required");
    }
    if (how == 0 || how == 2 || (zero_ && how != 3))
      expect(support::all_zero(pointer, 0, block.asked), "a block of zeros");
    admit(pointer, block);
  }

  void end(fuzz::Shadow::Blocks::iterator at) {
    void* pointer = reinterpret_cast<void*>(at->first);
    const Block block = shadow_.remove(at);
    asked_ -= block.asked;
    const bool again = input_.below(8) == 1 && most_live_ == 0;
    const auto give = [&] {
      errno = 4711;
      hummock_space_free(space_, pointer);
      expect(errno == 4711, "free keeps errno");
    };
    if (!again) return in_a_thread(true, give);
    give();
    void* next = hummock_space_malloc(space_, block.asked);
    expect(next != nullptr, "malloc of the size just freed");
    Block second;
    second.asked = block.asked;
    second.alignment = 16;
    admit(next, second);
  }

  void resize(fuzz::Shadow::Blocks::iterator at) {
    if (most_live_ != 0) return;
    void* pointer = reinterpret_cast<void*>(at->first);
    Block block = at->second;
    shadow_.check(at);
    const size_t size =
        std::max<size_t>(1, input_.flag() ? draw() : block.asked + input_.size_up_to(block.asked + 1));
    void* moved = nullptr;
    int error = 0;
    in_a_thread(!owner_, [&] {
      errno = 0;
      moved = hummock_space_realloc(space_, pointer, size);
      error = errno;
    });
    if (moved == nullptr) {
      shadow_.check(at);
      expect(size > block.usable, "realloc to what the block has room for");
      return expect(error == ENOMEM, "errno of realloc's refusal");
    }
    expect(support::intact(moved, block.tag, block.written, std::min(block.asked, size)),
           "realloc's contents");
    if (zero_ && size > block.usable)
      expect(support::all_zero(moved, block.usable, size), "zeros behind the old contents");
    shadow_.forget(at);
    asked_ -= block.asked;
    block.asked = size;
    admit(moved, block);
  }

  void change_extent() {
    if (most_live_ != 0) return;
    const size_t before = figures().bytes;
    const size_t how = input_.below(3);
    const size_t bytes = input_.size_up_to(1 << 20);
    if (how == 0) {
      const int error = hummock_space_expand(space_, bytes);
      expect(error == 0 || error == ENOMEM, "expand");
      expect(figures().bytes >= before, "expand makes nothing smaller");
    } else if (how == 1) {
      const size_t gone = hummock_space_shrink(space_, bytes);
      expect(figures().bytes == before - gone, "shrink gives back what it says");
    } else {
      hummock_space_trim(space_);
    }
  }

  hummock_space_stats_t figures() {
    hummock_space_stats_t stats = {};
    stats.size = sizeof stats;
    expect(hummock_space_stats(space_, &stats) == 0, "figures");
    return stats;
  }

  struct Tally {
    fuzz::Shadow::Blocks* blocks;
    size_t found, largest_free;
    uintptr_t end;
  };

  static int tally(void* context, void* address, size_t size, int live) {
    Tally* t = static_cast<Tally*>(context);
    const uintptr_t from = reinterpret_cast<uintptr_t>(address);
    expect(from >= t->end, "a walk in the order of addresses");
    t->end = from + size;
    const auto at = t->blocks->lower_bound(from);
    const bool ours = at != t->blocks->end() && at->first < from + size;
    if (live == 0) {
      expect(!ours, "no live block in a free range");
      t->largest_free = std::max(t->largest_free, size);
    } else {
      t->found += ours;
    }
    return 1;
  }

  void check_figures() {
    // Figures first: they take back what another thread freed, which a walk still shows as live.
    const hummock_space_stats_t stats = figures();
    Tally all = {&shadow_.blocks(), 0, 0, 0};
    expect(hummock_space_walk(space_, tally, &all) == 0, "headers, links and figures agree");
    expect(all.found == shadow_.count(), "the walk finds every live block");
    expect(stats.bytes == stats.free + stats.used + stats.overhead, "bytes = free + used + overhead");
    expect(stats.used == stats.pool_used + stats.cache_used, "used = pool + cache");
    expect(stats.free == stats.pool_free + stats.cache_free, "free = pool + cache");
    expect(stats.live_blocks >= shadow_.count(), "live blocks");
    expect(stats.largest_free <= all.largest_free + 8, "the largest free range is there");
    expect(stats.broken == 0 && stats.recoveries == 0, "nobody died inside");
  }

  struct Free {
    void operator()(char* p) const { free(p); }
  };

  fuzz::Input& input_;
  fuzz::Shadow shadow_;
  std::unique_ptr<char, Free> memory_;
  hummock_space_t* space_ = nullptr;
  std::unique_ptr<fuzz::OtherThread> other_;
  bool zero_ = false, owner_ = false, shared_ = false;
  size_t most_live_ = 0, largest_ = 0, smallest_ = 0;  // what the promise is about; 0: none
  size_t asked_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  Run run(input);
  while (run.made() && !input.empty()) run.step();
  return 0;
}
