#include "space/engine.h"

#include <string.h>

#include "base/bits.h"
#include "space/dense.h"
#include "space/slots.h"

namespace hummock::space {
namespace {

using base::align_up;

// Where the payload is aligned and what is before it is nothing, or long enough to be free.
uint64_t aligned_start(const Engine* engine, uint64_t at, size_t align) {
  const uintptr_t base = reinterpret_cast<uintptr_t>(engine);
  uint64_t start = align_up(base + at, align) - base;
  if (start != at && start - at < kLeastBlock) start += align;
  return start;
}

bool fits_aligned(const Engine* engine, uint64_t at, uint64_t size, size_t align) {
  return at != 0 && aligned_start(engine, at, align) + size <= at + size_in(header(engine, at));
}

// The list whose first range is sure to hold the block, or happens to.
uint64_t find_aligned(const Engine* engine, uint64_t size, size_t align) {
  const uint64_t own = list_of(size);
  if (fits_aligned(engine, head(engine, own), size, align)) return own;
  const uint64_t surely = size + align + kGranule;
  uint64_t list = surely < engine->end ? find(engine, surely) : kNoList;
  if (list == kNoList) list = find(engine, size);
  return list != kNoList && fits_aligned(engine, head(engine, list), size, align) ? list : kNoList;
}

}  // namespace

uint64_t engine_size(uint64_t maximum) {
  const uint64_t log = base::log2_floor(maximum | (uint64_t{1} << kFirstLog));
  const uint64_t lists = (log - kFirstLog + 2) * 64;
  return sizeof(Engine) + lists * sizeof(uint64_t) + kGranule;
}

Engine* make_engine(void* place, uint64_t maximum, Policy policy, uint64_t records) {
  const uint64_t own = engine_size(maximum);
  const uint64_t first = own + records;
  memset(place, 0, first);
  Engine* engine = static_cast<Engine*>(place);
  engine->lists = static_cast<uint32_t>((own - kGranule) / sizeof(uint64_t));
  engine->policy = policy;
  engine->first = engine->end = engine->frontier = engine->frontier_peak = first;
  set_header(engine, first, seal(first));
  return engine;
}

void extend(Engine* engine, uint64_t end) {
  const uint64_t old = engine->end;
  const uint64_t size = end - old;
  set_header(engine, end, seal(end));
  if (engine->policy == Policy::proven) return extend_slots(engine, end);
  set_header(engine, old, seal(old) | size | (header(engine, old) & kPrevFree));
  engine->end = end;
  engine->used += size;  // as if it were a block, to be freed
  ++engine->live;
  give(engine, old);
}

uint64_t cut(Engine* engine, uint64_t end) {
  if (end < engine->first) end = engine->first;
  if (end >= engine->end) return engine->end;
  if (engine->policy == Policy::proven) return cut_slots(engine, end);
  if ((header(engine, engine->end) & kPrevFree) == 0) return engine->end;
  const uint64_t start = engine->end - word(engine, engine->end - 2 * kHeader);
  if (end < start + kLeastBlock) end = start;
  unlink(engine, start);
  if (end == start) {
    --engine->ranges;
    set_header(engine, start, seal(start));
  } else {
    set_header(engine, end, seal(end) | kPrevFree);
    make_free(engine, start, end - start);
  }
  engine->end = end;
  return end;
}

uint64_t take(Engine* engine, uint64_t size) {
  note_request(engine, size);
  if (size >= engine->end) return 0;
  if (engine->policy == Policy::proven) return take_slot(engine, size);
  const uint64_t list = find(engine, size);
  return list == kNoList ? 0 : take_from(engine, list, size);
}

uint64_t take_within_class(Engine* engine, uint64_t size) {
  constexpr unsigned kLooks = 4;
  if (engine->policy != Policy::dense || size >= engine->end) return 0;
  uint64_t at = head(engine, list_of(size));
  for (unsigned i = 0; at != 0 && i < kLooks; ++i, at = word(engine, at + kNext)) {
    const uint64_t room = size_in(header(engine, at));
    if (room < size) continue;
    unlink(engine, at);
    count_taken(engine, make_block(engine, at, room, size, header(engine, at) & kPrevFree));
    return at;
  }
  return 0;
}

void give(Engine* engine, uint64_t at) {
  engine->policy == Policy::proven ? give_slot(engine, at) : give_dense(engine, at, header(engine, at));
}

uint64_t take_aligned(Engine* engine, uint64_t size, size_t align) {
  if (engine->policy == Policy::proven) return take_aligned_slot(engine, size, align);
  note_request(engine, size);
  if (size >= engine->end || align >= kMostBytes) return 0;
  const uint64_t list = find_aligned(engine, size, align);
  if (list == kNoList) return 0;
  const uint64_t at = pop_range(engine, list);
  const uint64_t room = size_in(header(engine, at));
  const uint64_t start = aligned_start(engine, at, align);
  if (start == at) {
    count_taken(engine, make_block(engine, at, room, size, alignment_bits(align)));
    return at;
  }
  // The header of what follows must be there before the range ends at it.
  set_header(engine, start, seal(start) | (at + room - start) | kFree | kPrevFree);
  make_free(engine, at, start - at);
  ++engine->ranges;
  size = make_block(engine, start, at + room - start, size, alignment_bits(align) | kPrevFree);
  count_taken(engine, size);
  return start;
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
  if (room == old) {  // its end becomes a range of its own
    ++engine->ranges;
    set_header(engine, at + room, behind | kPrevFree);
  }
  count_taken(engine, make_block(engine, at, room, size, mine & kKept));
  --engine->allocations;
  return true;
}

void put_range(Engine* engine, uint64_t at) {
  if (engine->policy == Policy::proven) return put_slot(engine, at, size_in(header(engine, at)));
  ++engine->ranges;
  make_free(engine, at, size_in(header(engine, at)));
}

uint64_t largest_free(const Engine* engine) {
  if (engine->policy == Policy::proven) return largest_slot(engine);
  const uint64_t open = engine->open == 0 ? 0 : engine->open_size;
  // Statistics look from outside, while the two are changed one after the other.
  const uint64_t levels = figure(engine->levels);
  if (levels == 0) return open;
  const unsigned level = base::log2_floor(levels);
  const uint64_t lists = figure(engine->words[level]);
  if (lists == 0) return open;
  const uint64_t first = head(engine, (uint64_t{level} << 6) + base::log2_floor(lists));
  const uint64_t listed = first == 0 ? 0 : size_in(header(engine, first));
  return listed > open ? listed : open;
}

}  // namespace hummock::space
