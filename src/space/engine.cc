#include "space/engine.h"

#include <string.h>

#include "base/bits.h"
#include "space/slots.h"

namespace hummock::space {
namespace {

using base::align_up;

constexpr uint64_t kNext = 8;   // in a free range, from its header: the next of its class
constexpr uint64_t kSlot = 16;  // and where the link stands that leads to this one

// Of a block's header, what a change of size leaves as it is.
constexpr uint64_t kKept = kPrevFree | uint64_t{63} << kSizeBits;

uint64_t slot_of(unsigned list) {
  return offsetof(Engine, heads) + uint64_t{list} * sizeof(uint64_t);
}

void mark(Engine* engine, unsigned list) {
  engine->words[list >> 6] |= uint64_t{1} << (list & 63);
  engine->levels |= uint64_t{1} << (list >> 6);
}

void unmark(Engine* engine, unsigned list) {
  const uint64_t left = engine->words[list >> 6] & ~(uint64_t{1} << (list & 63));
  engine->words[list >> 6] = left;
  if (left == 0) engine->levels &= ~(uint64_t{1} << (list >> 6));
}

// A free range enters the list of its class, first. Its header follows.
inline void link(Engine* engine, uint64_t at, uint64_t size) {
  const unsigned list = class_of(size);
  const uint64_t next = engine->heads[list];
  word(engine, at + kNext) = next;
  word(engine, at + kSlot) = slot_of(list);
  word(engine, at + size - kHeader) = size;
  if (next != 0) {
    word(engine, next + kSlot) = at + kNext;
  } else {
    mark(engine, list);
  }
  engine->heads[list] = at;
  set_figure(engine->ranges, figure(engine->ranges) + 1);
}

inline void unlink(Engine* engine, uint64_t at) {
  const uint64_t next = word(engine, at + kNext);
  const uint64_t slot = word(engine, at + kSlot);
  word(engine, slot) = next;
  if (next != 0) {
    word(engine, next + kSlot) = slot;
  } else if (slot < engine->first) {  // the head of a list, which is empty now
    unmark(engine, static_cast<unsigned>((slot - offsetof(Engine, heads)) / sizeof(uint64_t)));
  }
  set_figure(engine->ranges, figure(engine->ranges) - 1);
}

// The first range of the request's own class, if it is long enough: what was freed last stands there,
// so a block that was just freed can be had again. Else the first of the next class that has any.
inline uint64_t find(const Engine* engine, uint64_t size) {
  const unsigned list = class_of(size);
  const uint64_t own = engine->heads[list];
  if (own != 0 && size_in(header(engine, own)) >= size) return own;
  unsigned level = (list + 1) >> 6;
  uint64_t fits = engine->words[level] & (~uint64_t{0} << ((list + 1) & 63));
  if (fits == 0) {
    const uint64_t above = engine->levels & (~uint64_t{1} << level);
    if (above == 0) return 0;
    level = static_cast<unsigned>(__builtin_ctzll(above));
    fits = engine->words[level];
  }
  return engine->heads[(level << 6) + static_cast<unsigned>(__builtin_ctzll(fits))];
}

// A range that is in no list, neighbours not free, is free from now on.
inline void make_free(Engine* engine, uint64_t at, uint64_t size) {
  link(engine, at, size);
  set_header(engine, at, seal(at) | size | kFree);
}

// Of the range at `at`, `room` bytes long and in no list, the first `size` bytes become a block.
inline void make_block(Engine* engine, uint64_t at, uint64_t room, uint64_t size, uint64_t bits) {
  const uint64_t rest = room - size;
  const uint64_t behind = at + size;
  if (rest >= kLeastBlock) {
    make_free(engine, behind, rest);
    set_header(engine, at, seal(at) | size | bits);
    count_taken(engine, size);
  } else {
    set_header(engine, at, seal(at) | room | bits);
    set_header(engine, at + room, header(engine, at + room) & ~kPrevFree);
    count_taken(engine, room);
  }
}

// Where the payload is aligned and what is before it is nothing, or long enough to be free.
uint64_t aligned_start(const Engine* engine, uint64_t at, size_t align) {
  const uintptr_t base = reinterpret_cast<uintptr_t>(engine) + kHeader;
  uint64_t start = align_up(base + at, align) - base;
  if (start != at && start - at < kLeastBlock) start += align;
  return start;
}

bool fits_aligned(const Engine* engine, uint64_t at, uint64_t size, size_t align) {
  return at != 0 && aligned_start(engine, at, align) + size <= at + size_in(header(engine, at));
}

}  // namespace

uint64_t refuse(Engine* engine, uint64_t size) {
  set_figure(engine->failures, figure(engine->failures) + 1);
  if (size > engine->largest_refused) set_figure(engine->largest_refused, size);
  return 0;
}

uint64_t engine_size(uint64_t maximum) {
  const uint64_t lists = (base::log2_floor(maximum | (uint64_t{1} << kFirstLog)) - kFirstLog + 2) * 64;
  return align_up(offsetof(Engine, heads) + lists * sizeof(uint64_t), kGranule) + kHeader;
}

uint64_t least_size(uint64_t maximum) {
  return engine_size(maximum) + kHeader;
}

Engine* make_engine(void* place, uint64_t maximum, Policy policy) {
  const uint64_t first = engine_size(maximum);
  memset(place, 0, first);
  Engine* engine = static_cast<Engine*>(place);
  engine->lists = static_cast<uint32_t>((first - kHeader - offsetof(Engine, heads)) / sizeof(uint64_t));
  engine->policy = policy;
  engine->first = engine->end = engine->frontier = engine->frontier_peak = first;
  set_header(engine, first, seal(first));
  return engine;
}

void extend(Engine* engine, uint64_t bytes) {
  const uint64_t old = engine->end;
  const uint64_t end = bytes - kHeader;
  const uint64_t size = end - old;
  if (size < kLeastBlock) return;
  set_header(engine, end, seal(end));
  if (engine->policy == Policy::proven) return extend_slots(engine, end);
  set_header(engine, old, seal(old) | size | (header(engine, old) & kPrevFree));
  set_figure(engine->end, end);
  count_taken(engine, size);
  set_figure(engine->allocations, figure(engine->allocations) - 1);
  const uint64_t peak = engine->peak;
  give(engine, old);
  set_figure(engine->peak, peak > engine->used + size ? peak : engine->used);
}

uint64_t cut(Engine* engine, uint64_t bytes) {
  if (bytes < engine->first + kHeader) bytes = engine->first + kHeader;
  uint64_t end = bytes - kHeader;
  if (end >= engine->end) return engine->end + kHeader;
  if (engine->policy == Policy::proven) return cut_slots(engine, end);
  if ((header(engine, engine->end) & kPrevFree) == 0) return engine->end + kHeader;
  const uint64_t start = engine->end - word(engine, engine->end - kHeader);
  if (end < start + kLeastBlock) end = start;
  unlink(engine, start);
  if (end == start) {
    set_header(engine, start, seal(start));
  } else {
    set_header(engine, end, seal(end) | kPrevFree);
    make_free(engine, start, end - start);
  }
  set_figure(engine->end, end);
  return end + kHeader;
}

uint64_t take(Engine* engine, uint64_t size) {
  if (engine->policy == Policy::proven) return take_slot(engine, size);
  if (size > engine->largest_request) set_figure(engine->largest_request, size);
  const uint64_t at = size < engine->end ? find(engine, size) : 0;
  if (at == 0) return refuse(engine, size);
  unlink(engine, at);
  make_block(engine, at, size_in(header(engine, at)), size, 0);
  return at;
}

uint64_t take_aligned(Engine* engine, uint64_t size, size_t align) {
  if (engine->policy == Policy::proven) return take_aligned_slot(engine, size, align);
  if (size > engine->largest_request) set_figure(engine->largest_request, size);
  uint64_t at = 0;
  if (size < engine->end && align < kMostBytes) {
    const uint64_t surely = size + align + kGranule;
    at = engine->heads[class_of(size)];
    if (!fits_aligned(engine, at, size, align)) at = surely < engine->end ? find(engine, surely) : 0;
    if (at == 0) at = find(engine, size);  // a range that happens to lie well
    if (!fits_aligned(engine, at, size, align)) at = 0;
  }
  if (at == 0) return refuse(engine, size);
  unlink(engine, at);
  const uint64_t room = size_in(header(engine, at));
  const uint64_t start = aligned_start(engine, at, align);
  if (start == at) {
    make_block(engine, at, room, size, alignment_bits(align));
    return at;
  }
  // The header of what follows must be there before the range ends at it.
  set_header(engine, start, seal(start) | (at + room - start) | kFree | kPrevFree);
  make_free(engine, at, start - at);
  make_block(engine, start, at + room - start, size, alignment_bits(align) | kPrevFree);
  return start;
}

void give(Engine* engine, uint64_t at) {
  if (engine->policy == Policy::proven) return give_slot(engine, at);
  const uint64_t mine = header(engine, at);
  uint64_t size = size_in(mine);
  count_given(engine, size);
  const uint64_t next = at + size;
  const uint64_t behind = header(engine, next);
  if ((behind & kFree) != 0) {
    unlink(engine, next);
    size += size_in(behind);
  } else {
    set_header(engine, next, behind | kPrevFree);
  }
  if ((mine & kPrevFree) != 0) {
    set_header(engine, at, mine | kFree);
    const uint64_t before = word(engine, at - kHeader);
    at -= before;
    size += before;
    unlink(engine, at);
  }
  make_free(engine, at, size);
}

bool resize(Engine* engine, uint64_t at, uint64_t size) {
  const uint64_t mine = header(engine, at);
  const uint64_t old = size_in(mine);
  if (engine->policy == Policy::proven) return size <= old;
  const uint64_t next = at + old;
  const uint64_t behind = header(engine, next);
  const uint64_t room = (behind & kFree) != 0 ? old + size_in(behind) : old;
  if (size > room) return false;
  if (room == old && old - size < kLeastBlock) return true;
  if (room != old) unlink(engine, next);
  count_given(engine, old);
  const uint64_t rest = room - size;
  if (rest >= kLeastBlock && room == old) {
    set_header(engine, at + room, behind | kPrevFree);
  }
  make_block(engine, at, room, size, mine & kKept);
  set_figure(engine->allocations, figure(engine->allocations) - 1);
  return true;
}

void put_range(Engine* engine, uint64_t at) {
  if (engine->policy == Policy::proven) return put_slot(engine, at, size_in(header(engine, at)));
  link(engine, at, size_in(header(engine, at)));
}

uint64_t largest_free(const Engine* engine) {
  if (engine->policy == Policy::proven) return largest_slot(engine);
  if (engine->levels == 0) return 0;
  const unsigned level = base::log2_floor(engine->levels);
  const unsigned list = (level << 6) + base::log2_floor(engine->words[level]);
  return size_in(header(engine, engine->heads[list]));
}

}  // namespace hummock::space
