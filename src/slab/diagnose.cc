// What is wrong with a slab or a pointer into it, once a check has failed. A slab is walked with a bitmap.
#include "base/message.h"
#include "slab/slab.h"

namespace hummock::slab {
namespace {

struct Seen {
  uint64_t bits[kSlotSize / kTinySize / 64] = {};
  bool again(size_t index) {
    const uint64_t bit = uint64_t{1} << (index % 64);
    const bool was = (bits[index / 64] & bit) != 0;
    bits[index / 64] |= bit;
    return was;
  }
};

}  // namespace

void check_block(const SlabHeader* slab, const void* block, const char* call, End end) {
  if (__builtin_expect(is_block(slab, block), true)) return;
  const size_t offset = static_cast<size_t>(static_cast<const char*>(block) - slab->start);
  const SizeClass& row = row_of(slab);
  const size_t index = block_index(row, offset);
  base::Line line;
  line << call << "(" << block << "): ";
  if (stands_in(slab, block) && index < relaxed(slab->carved)) {
    line << "points " << (offset - index * row.block_size) << " bytes into a block of " << row.block_size
         << " bytes at " << static_cast<const void*>(slab->start + index * row.block_size);
  } else {
    line << "points into a slab of " << row.block_size << "-byte blocks where no block was ever handed out";
  }
  end(line << see_more());
}

void double_free(const SlabHeader* slab, const void* block, const char* call, End end) {
  end(base::Line() << call << "(" << block << "): double free: the block of " << row_of(slab).block_size
                   << " bytes is free already" << see_more());
}

void corrupted(const SlabHeader* slab, const char* what) {
  base::Line line;
  line << "heap corruption in a slab of " << row_of(slab).block_size << "-byte blocks at "
       << static_cast<const void*>(slab->start) << ": " << what;
  Seen seen;
  const void* from = nullptr;
  for (void* block = slab->free; block != end_of(slab); block = next_free(slab, block)) {
    if (block == kNoLink || !stands_in(slab, block) || !is_block(slab, block)) {
      line << " (" << static_cast<const void*>(block) << " is not a block";
      if (from != nullptr) line << ", found in the freed block " << from;
      line << ")";
      break;
    }
    const size_t offset = static_cast<size_t>(static_cast<char*>(block) - slab->start);
    if (seen.again(offset / row_of(slab).block_size)) {
      line << " (double free of " << static_cast<const void*>(block) << ")";
      break;
    }
    from = block;
  }
  base::die(line << see_more());
}

}  // namespace hummock::slab
