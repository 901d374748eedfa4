// The shadow model of a heap: which addresses are live, and what stands in them.
#ifndef HUMMOCK_TESTS_FUZZ_SHADOW_H
#define HUMMOCK_TESTS_FUZZ_SHADOW_H

#include <iterator>
#include <map>

#include "fuzz.h"
#include "support/support.h"

namespace fuzz {

struct Block {
  size_t asked = 0;
  size_t usable = 0;
  size_t alignment = 1;
  size_t written = 0;  // bytes that hold the pattern: those asked for, or all that are usable
  uint64_t tag = 0;
  int owner = 0;  // what the target wants to know of it
  int kind = 0;
};

class Shadow {
 public:
  using Blocks = std::map<uintptr_t, Block>;

  size_t live_bytes() const { return live_; }
  size_t count() const { return blocks_.size(); }
  bool empty() const { return blocks_.empty(); }
  Blocks& blocks() { return blocks_; }

  // A new block, checked against all others, and filled.
  void admit(void* pointer, Block block, bool fill_all) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
    expect(support::is_aligned(pointer, block.alignment), "the alignment asked for");
    expect(block.usable >= block.asked, "usable size of at least the size asked for");
    const uintptr_t end = address + std::max<size_t>(block.usable, 1);
    expect(end > address, "a block within the address space");
    const auto after = blocks_.lower_bound(address);
    expect(after == blocks_.end() || end <= after->first, "no overlap with the live block behind");
    if (after != blocks_.begin()) {
      const auto before = std::prev(after);
      expect(before->first + std::max<size_t>(before->second.usable, 1) <= address,
             "no overlap with the live block in front");
    }
    block.written = fill_all ? block.usable : block.asked;
    block.tag = ++tags_ * 0x9E3779B97F4A7C15u ^ address;
    support::fill(pointer, block.tag, block.written);
    live_ += block.usable;
    blocks_[address] = block;
  }

  void check(Blocks::const_iterator at) const {
    expect(support::intact(reinterpret_cast<void*>(at->first), at->second.tag, at->second.written),
           "the contents of a live block");
  }

  // Takes a block out of the model, before it is freed or resized; its contents are checked.
  Block remove(Blocks::iterator at) {
    check(at);
    return forget(at);
  }
  Block forget(Blocks::iterator at) {
    const Block block = at->second;
    live_ -= block.usable;
    blocks_.erase(at);
    return block;
  }

  Blocks::iterator pick(Input& input) {
    return std::next(blocks_.begin(), static_cast<ptrdiff_t>(input.below(blocks_.size())));
  }

 private:
  Blocks blocks_;
  size_t live_ = 0;
  uint64_t tags_ = 0;
};

// Of a new block: all of a small one, the ends and spread places of a long one.
inline bool reads_zero(const void* pointer, size_t size) {
  constexpr size_t kWhole = 128 << 10;
  if (size <= kWhole) return support::all_zero(pointer, 0, size);
  bool zero =
      support::all_zero(pointer, 0, kWhole / 2) && support::all_zero(pointer, size - kWhole / 2, size);
  for (size_t at = kWhole / 2; at + 64 < size; at += size / 61)
    zero &= support::all_zero(pointer, at, at + 64);
  return zero;
}

}  // namespace fuzz

#endif  // HUMMOCK_TESTS_FUZZ_SHADOW_H
