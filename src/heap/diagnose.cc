#include "heap/diagnose.h"

#include <stdlib.h>

#include "base/message.h"
#include "heap/refill.h"
#include "os/os.h"

namespace hummock::heap {
namespace {

using base::Line;

void say_inside(Line& line, const SlabHeader* header, const void* p) {
  line << "points " << static_cast<size_t>(static_cast<const char*>(p) - header->start)
       << " bytes into a block of " << header->bytes << " bytes at "
       << static_cast<const void*>(header->start);
}

bool is_canonical(const void* p) {
  return uint64_t{reinterpret_cast<uintptr_t>(p)} >> os::kAddressBits == 0;
}

// Where the link of a free block can lead: to another block of the class, or to the list's end.
bool leads_on(const SlabHeader* slab, uintptr_t link) {
  if (!slab::is_link(link)) return false;
  const void* next = reinterpret_cast<const void*>(link);
  if (next == nullptr || is_bin(next)) return true;
  if ((link & kWaiting) != 0 && is_bin(reinterpret_cast<const void*>(link - kWaiting))) return true;
  const SlabHeader* there = pages::find_slab(next);
  return there != nullptr && there->size_class == slab->size_class && slab::stands_in(there, next) &&
         slab::is_block(there, next);
}

}  // namespace

bool is_free(const SlabHeader* slab, const void* p, bool waits) {
  if (slab::is_tiny(slab)) return true;  // mark and link are one word
  void* block = const_cast<void*>(p);
  // Who marks a block writes its link next. The program may have copied a mark, but then waiting is no harm.
  for (unsigned tries = waits ? 1000 : 1; tries != 0; --tries) {
    if (leads_on(slab, slab::next_of(block)) || leads_on(slab, slab::next_remote(block))) return true;
    if (waits) os::yield();
  }
  return false;
}

void check_live(const char* call, const SlabHeader* slab, const void* p, slab::End end) {
  slab::check_block(slab, p, call, end);
  void* block = const_cast<void*>(p);
  if (!slab::is_gone(slab, p) && !(slab::looks_free(slab, block) && is_free(slab, p, false))) return;
  slab::double_free(slab, p, call, end);
}

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
  end(line << slab::kSeeMore);
  abort();
}

void bad_bin(const void* p, unsigned size_class) {
  void* block = const_cast<void*>(p);
  Line line;
  line << "heap corruption among free blocks of " << slab::kTable.row[size_class].block_size << " bytes: ";
  SlabHeader* header = pages::find_slab(block);
  const bool small = header != nullptr && (header->kind == Kind::slab || header->kind == Kind::own_slab);
  if (!small || !slab::is_block(header, block)) {
    line << "a block was written to after it was freed: it leads to " << p;
  } else if (!slab::looks_free(header, block)) {
    line << p << " was freed twice, or written to after it was freed";
  } else if (leads_on(header, slab::next_remote(block))) {
    line << p << " was freed by two threads at once";
  } else {
    line << p << " was written to after it was freed";
  }
  base::die(line << slab::kSeeMore);
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
