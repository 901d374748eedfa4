// Random operations on spaces of every kind against a model: the live intervals, their contents, and what
// the figures must say of them.
#include <iterator>
#include <map>
#include <string>

#include "space_support.h"

namespace {

using support::Random;

struct Block {
  size_t asked;
  size_t usable;
  size_t alignment;
  uint64_t tag;
};

struct Kind {
  const char* name;
  uint32_t threads, policy, cache, zero, step = 0, largest = 0;
};

class Model {
 public:
  Model(const Kind& kind, uint64_t seed) : random_(seed), zero_(kind.zero != 0), space_(options(kind)) {}

  const char* broken = nullptr;

  void step() {
    const size_t dice = random_.below(100);
    if (!blocks_.empty() && (dice < 40 || blocks_.size() > 4000)) return end_one();
    if (!blocks_.empty() && dice < 55) return resize_one();
    if (dice == 99) return check_figures();
    if (dice == 98) return change_extent();
    begin_one();
  }

  void finish() {
    while (!blocks_.empty()) end_one();
    hummock_space_flush(space_);
    check_figures();
    const hummock_space_stats_t stats = support::figures(space_);
    expect(stats.live_blocks == (stats.overhead > empty_overhead_ ? 1 : 0), "all blocks are gone");
    expect(stats.policy == HUMMOCK_SPACE_PROVEN || stats.free_ranges <= 2, "all ranges have joined");
  }

 private:
  static hummock_space_options_t options(const Kind& kind) {
    hummock_space_options_t options = support::space_of(size_t{8} << 20, kind.threads, kind.policy);
    options.maximum = size_t{24} << 20;
    options.cache_blocks = kind.cache;
    options.cache_step = kind.step;
    options.cache_largest = kind.largest;
    options.zero = kind.zero;
    return options;
  }

  void expect(bool held, const char* promise) {
    if (!held && broken == nullptr) broken = promise;
  }

  std::map<uintptr_t, Block>::iterator pick() {
    auto at = blocks_.lower_bound(random_.next() % (uintptr_t{24} << 20) +
                                  (blocks_.begin()->first & ~uintptr_t{0xffff}));
    return at == blocks_.end() ? blocks_.begin() : at;
  }

  void admit(void* pointer, Block block) {
    if (pointer == nullptr) return expect(errno == ENOMEM, "errno of a refusal");
    const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
    block.usable = hummock_space_usable_size(space_, pointer);
    expect(support::is_aligned(pointer, block.alignment), "alignment");
    expect(block.usable >= block.asked, "usable size below the size asked");
    expect(hummock_space_contains(space_, pointer) == 1, "the block is in the space");
    const uintptr_t end = address + block.usable;
    const auto after = blocks_.lower_bound(address);
    expect(after == blocks_.end() || end <= after->first, "overlaps the block after it");
    if (after != blocks_.begin()) {
      const auto before = std::prev(after);
      expect(before->first + before->second.usable <= address, "overlaps the block before it");
    }
    block.tag = random_.next();
    support::fill(pointer, block.tag, block.asked);
    blocks_[address] = block;
  }

  size_t draw() { return random_.size_up_to(random_.one_in(40) ? size_t{4} << 20 : size_t{20000}); }

  void begin_one() {
    Block block = {draw(), 0, 16, 0};
    errno = 0;
    switch (random_.below(6)) {
      case 0: {
        void* p = hummock_space_calloc(space_, 1, block.asked);
        if (p != nullptr) expect(support::all_zero(p, 0, block.asked), "calloc is zero");
        return admit(p, block);
      }
      case 1:
        block.alignment = size_t{1} << random_.between(0, 13);
        return admit(hummock_space_memalign(space_, block.alignment, block.asked), block);
      case 2:
        return admit(hummock_space_malloc_zero(space_, block.asked, 0), block);
      default: {
        void* p = hummock_space_malloc(space_, block.asked);
        if (zero_ && p != nullptr) expect(support::all_zero(p, 0, block.asked), "malloc of a zeroing space");
        return admit(p, block);
      }
    }
  }

  void resize_one() {
    const auto entry = pick();
    void* old = reinterpret_cast<void*>(entry->first);
    Block block = entry->second;
    const size_t size = std::max<size_t>(1, random_.one_in(2) ? draw() : block.asked + random_.below(400));
    errno = 0;
    void* moved = hummock_space_realloc(space_, old, size);
    if (moved == nullptr) {
      expect(errno == ENOMEM, "errno of realloc's refusal");
      return expect(support::intact(old, block.tag, block.asked), "a refused realloc leaves the block");
    }
    expect(support::intact(moved, block.tag, block.asked, std::min(block.asked, size)), "realloc's contents");
    if (zero_ && size > block.usable) {
      expect(support::all_zero(moved, block.usable, size), "what realloc adds in a zeroing space");
    }
    blocks_.erase(entry);
    block.asked = size;
    admit(moved, block);
  }

  void end_one() {
    const auto entry = pick();
    void* pointer = reinterpret_cast<void*>(entry->first);
    const Block block = entry->second;
    expect(support::intact(pointer, block.tag, block.asked), "contents at the end");
    blocks_.erase(entry);
    errno = 4711;
    hummock_space_free(space_, pointer);
    expect(errno == 4711, "free keeps errno");
    if (random_.one_in(8)) {  // what was freed can be had again
      void* again = hummock_space_malloc(space_, block.asked);
      expect(again != nullptr, "malloc of the size just freed");
      if (again != nullptr) admit(again, {block.asked, 0, 16, 0});
    }
  }

  void change_extent() {
    const size_t before = support::figures(space_).bytes;
    if (random_.one_in(2)) {
      const int error = hummock_space_expand(space_, random_.below(size_t{1} << 20));
      expect(error == 0 || error == ENOMEM, "expand");
    } else if (random_.one_in(2)) {
      const size_t gone = hummock_space_shrink(space_, random_.below(size_t{4} << 20));
      expect(support::figures(space_).bytes == before - gone, "shrink");
    } else {
      hummock_space_trim(space_);
    }
  }

  struct Tally {
    std::map<uintptr_t, Block>* blocks;
    size_t found, largest_free;
  };

  void check_figures() {
    Tally tally = {&blocks_, 0, 0};
    const int walked = hummock_space_walk(
        space_,
        [](void* context, void* address, size_t size, int live) {
          Tally* t = static_cast<Tally*>(context);
          if (live == 0) t->largest_free = std::max(t->largest_free, size);
          // In a slot of the proven policy an aligned block begins later.
          const auto at = t->blocks->lower_bound(reinterpret_cast<uintptr_t>(address));
          if (live != 0 && at != t->blocks->end() &&
              at->first < reinterpret_cast<uintptr_t>(address) + size) {
            ++t->found;
          }
          return 1;
        },
        &tally);
    expect(walked == 0, "headers, links and figures agree");
    expect(tally.found == blocks_.size(), "the walk finds every live block");
    const hummock_space_stats_t stats = support::figures(space_);
    expect(stats.bytes == stats.free + stats.used + stats.overhead, "bytes = free + used + overhead");
    expect(stats.used == stats.pool_used + stats.cache_used, "used = pool + cache");
    expect(stats.free == stats.pool_free + stats.cache_free, "free = pool + cache");
    expect(stats.live_blocks >= blocks_.size(), "live blocks");
    expect(stats.largest_free <= tally.largest_free + 8, "the largest free range is there");
    if (stats.policy == HUMMOCK_SPACE_DENSE) {
      expect(stats.largest_free + stats.largest_free / 64 + 16 >= tally.largest_free, "and is the largest");
    }
    if (empty_overhead_ == 0) empty_overhead_ = stats.overhead;
  }

  Random random_;
  const bool zero_;
  support::Space space_;
  size_t empty_overhead_ = support::figures(space_).overhead;
  std::map<uintptr_t, Block> blocks_;
};

}  // namespace

TEST_CASE("random operations on every kind of space") {
  support::HangGuard guard(850);
  for (const Kind& kind :
       {Kind{"owner dense", 0, 0, 0, 0}, Kind{"owner proven", 0, 1, 0, 0}, Kind{"spin dense", 1, 0, 0, 0},
        Kind{"spin proven, zeroing", 1, 1, 0, 1}, Kind{"inherit dense", 2, 0, 0, 0},
        Kind{"owner dense, zeroing", 0, 0, 0, 1}, Kind{"spin dense, cache", 1, 0, 16, 0},
        Kind{"inherit dense, cache, zeroing", 2, 0, 7, 1}, Kind{"spin dense, fine cache", 1, 0, 5, 0, 16},
        Kind{"owner dense, cache", 0, 0, 1024, 0, 0, 256 << 10},
        Kind{"owner dense, cache of the usual sizes", 0, 0, 200, 0},
        Kind{"owner dense, small cache, zeroing", 0, 0, 3, 1}}) {
    CAPTURE(std::string(kind.name));
    Model model(kind, support::run_seed());
    const size_t steps = support::scaled(120000);
    for (size_t i = 0; i < steps && model.broken == nullptr; ++i) model.step();
    if (model.broken == nullptr) model.finish();
    CHECK(std::string(model.broken == nullptr ? "" : model.broken) == "");
  }
}
