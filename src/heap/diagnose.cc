#include "heap/diagnose.h"

#include <stdlib.h>

#include "base/message.h"

namespace hummock::heap {
namespace {

using base::Line;

void say_inside(Line& line, const SlabHeader* header, const void* p) {
  line << "points " << static_cast<size_t>(static_cast<const char*>(p) - header->start)
       << " bytes into a block of " << header->bytes << " bytes at "
       << static_cast<const void*>(header->start);
}

bool is_canonical(const void* p) {
  const uint64_t top = uint64_t{reinterpret_cast<uintptr_t>(p)} >> 47;
  return top == 0;
}

}  // namespace

void bad_pointer(const char* call, const void* p, slab::End end) {
  Line line;
  line << call << "(" << p << "): ";
  const SlabHeader* header = pages::find_header(p);
  const SlabHeader* around = pages::enclosing_span(p);
  if (around != nullptr) {
    say_inside(line, around, p);
  } else if (header != nullptr) {
    line << "no block is live there: freed before, or never handed out";
  } else if (!is_canonical(p)) {
    line << "not an address at all";
  } else {
    line << "not a block of this allocator (stack, static, other memory, or freed and given back)";
  }
  end(line);
  abort();
}

void bad_list(void* first, size_t count, unsigned size_class) {
  Line line;
  line << "free: heap corruption among freed blocks of " << slab::kTable.row[size_class].block_size
       << " bytes: ";
  const void* from = nullptr;
  for (void* block = first; count != 0; --count, from = block, block = slab::link_of(block)) {
    SlabHeader* header = pages::find_slab(block);
    if (header == nullptr || header->kind != Kind::slab) {
      line << static_cast<const void*>(block) << " is not a block";
      if (from != nullptr)
        line << ", found in the freed block " << from << ", which was written to or freed twice";
      base::die(line);
    }
    slab::check_block(header, block, "free");
    for (void* before = first; from != nullptr; before = slab::link_of(before)) {
      if (before == block) slab::double_free(block);
      if (before == from) break;
    }
  }
  base::die(line << "a block was written to or freed twice");
}

void bad_bin(const void* block, unsigned size_class) {
  Line line;
  line << "malloc: heap corruption among free blocks of " << slab::kTable.row[size_class].block_size
       << " bytes: ";
  SlabHeader* header = pages::find_slab(block);
  const bool small = header != nullptr && (header->kind == Kind::slab || header->kind == Kind::own_slab);
  if (small && slab::is_block(header, block)) {
    base::die(line << block << " was freed twice, or written to after it was freed");
  }
  base::die(line << "a block was written to after it was freed: it leads to " << block);
}

void check_claim(const char* call, const void* p, size_t room, size_t claimed, size_t align) {
  const bool aligned = align == 0 || reinterpret_cast<uintptr_t>(p) % align == 0;
  // An aligned block may stand in a class of the next power of two: only its upper bound is sure.
  const size_t least = align > slab::kStep ? 0 : room - room / 5;
  const size_t rounding = room > slab::kMaxSmall ? kSlotSize : slab::kStep;
  const bool fits = claimed <= room && claimed + rounding >= least;
  if (aligned && fits) return;
  Line line;
  line << call << "(" << p << "): the block has room for " << room
       << " bytes, it cannot have been asked with ";
  if (!aligned) {
    line << "alignment " << align;
  } else {
    line << "size " << claimed;
  }
  base::die(line);
}

}  // namespace hummock::heap
