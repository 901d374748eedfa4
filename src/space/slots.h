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

uint64_t take_slot(Engine* engine, uint64_t size);
// The payload lies inside the slot; before it stands a word that leads back to the header.
uint64_t take_aligned_slot(Engine* engine, uint64_t size, size_t align);
void give_slot(Engine* engine, uint64_t at);
// The free slot enters its list.
void put_slot(Engine* engine, uint64_t at, uint64_t slot);

void extend_slots(Engine* engine, uint64_t end);
uint64_t cut_slots(Engine* engine, uint64_t end);

uint64_t largest_slot(const Engine* engine);

// Bytes of a space that never refuses while requests are of `smallest` … `largest` bytes and those live
// at once add up to at most `max_live`. 0 when there is no such space (overflow, or smallest > largest).
uint64_t required_size(uint64_t max_live, uint64_t largest, uint64_t smallest);

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_SLOTS_H
