// The *proven* policy: every block is a slot of 2^k bytes; a slot, once cut from the frontier, stays one of
// its order. A request takes a free slot of its order, else one is cut.
//
// Why required_size() suffices: a slot of order k is cut only when all slots of that order are live, so
// there are never more of them than can be live at once: the most live bytes by the least request that
// needs the order. The sum over the orders is all the frontier can ever have passed. (When the frontier
// is at the end, a larger free slot is lent whole; with the required size that never happens.)
#ifndef HUMMOCK_SPACE_SLOTS_H
#define HUMMOCK_SPACE_SLOTS_H

#include "space/engine.h"

namespace hummock::space {

inline constexpr unsigned kLeastOrder = 5;
static_assert(uint64_t{1} << kLeastOrder == kLeastBlock);

inline unsigned order_of(uint64_t size) {
  return 64u - static_cast<unsigned>(__builtin_clzll(size - 1));
}

// The memory behind the frontier looks like one free range to a walk.
inline void set_frontier(Engine* engine, uint64_t at) {
  if (at != engine->end) set_header(engine, at, seal(at) | (engine->end - at) | kFree);
}

inline uint64_t pop_slot(Engine* engine, unsigned order) {
  const uint64_t at = head(engine, kFirstList + order);
  const uint64_t next = word(engine, at);
  head(engine, kFirstList + order) = next;
  if (next == 0) engine->levels &= ~(uint64_t{1} << order);
  --engine->ranges;
  return at;
}

__attribute__((always_inline)) inline uint64_t take_slot(Engine* engine, uint64_t size) {
  unsigned order = order_of(size);
  uint64_t slot = uint64_t{1} << order;
  uint64_t at = engine->frontier;
  if (head(engine, kFirstList + order) != 0) {
    at = pop_slot(engine, order);
  } else if (slot <= engine->end - at) {
    set_frontier(engine, at + slot);
    engine->frontier = at + slot;
    if (at + slot > engine->frontier_peak) engine->frontier_peak = at + slot;
  } else {
    const uint64_t larger = engine->levels >> order << order;
    if (larger == 0) return 0;
    order = static_cast<unsigned>(__builtin_ctzll(larger));
    slot = uint64_t{1} << order;
    at = pop_slot(engine, order);
  }
  set_header(engine, at, seal(at) | slot);
  count_taken(engine, slot);
  return at;
}

inline void put_slot(Engine* engine, uint64_t at, uint64_t slot) {
  const unsigned order = 63u ^ static_cast<unsigned>(__builtin_clzll(slot));
  word(engine, at) = head(engine, kFirstList + order);
  head(engine, kFirstList + order) = at;
  engine->levels |= uint64_t{1} << order;
  ++engine->ranges;
}

__attribute__((always_inline)) inline void give_slot(Engine* engine, uint64_t at) {
  const uint64_t slot = size_in(header(engine, at));
  count_given(engine, slot);
  put_slot(engine, at, slot);
  set_header(engine, at, seal(at) | slot | kFree);
}

// The payload lies inside the slot; before it stands a word that leads back to the header.
uint64_t take_aligned_slot(Engine* engine, uint64_t size, size_t align);

void extend_slots(Engine* engine, uint64_t end);
uint64_t cut_slots(Engine* engine, uint64_t end);

uint64_t largest_slot(const Engine* engine);

// Bytes of a space that never refuses while requests are of `smallest` … `largest` bytes and those live
// at once add up to at most `max_live`. 0 when there is no such space (overflow, or smallest > largest).
uint64_t required_size(uint64_t max_live, uint64_t largest, uint64_t smallest);

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_SLOTS_H
