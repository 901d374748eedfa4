#include "space/slots.h"

#include "base/bits.h"

namespace hummock::space {
namespace {

constexpr unsigned kLeastOrder = 5;
static_assert(uint64_t{1} << kLeastOrder == kLeastBlock);

unsigned order_of(uint64_t size) {
  return base::log2_floor(size - 1) + 1;
}

// What lies behind the frontier looks like one free range to who walks.
void set_frontier(Engine* engine, uint64_t at) {
  if (at != engine->end) set_header(engine, at, seal(at) | (engine->end - at) | kFree);
}

uint64_t pop(Engine* engine, unsigned order) {
  const uint64_t at = engine->heads[order];
  const uint64_t next = word(engine, at + kHeader);
  engine->heads[order] = next;
  if (next == 0) engine->levels &= ~(uint64_t{1} << order);
  set_figure(engine->ranges, figure(engine->ranges) - 1);
  return at;
}

}  // namespace

uint64_t take_slot(Engine* engine, uint64_t size) {
  if (size > engine->largest_request) set_figure(engine->largest_request, size);
  if (size > engine->end) return refuse(engine, size);
  unsigned order = order_of(size);
  uint64_t slot = uint64_t{1} << order;
  uint64_t at = engine->frontier;
  if (engine->heads[order] != 0) {
    at = pop(engine, order);
  } else if (slot <= engine->end - at) {
    set_frontier(engine, at + slot);
    set_figure(engine->frontier, at + slot);
    if (at + slot > engine->frontier_peak) set_figure(engine->frontier_peak, at + slot);
  } else {
    const uint64_t larger = engine->levels >> order << order;
    if (larger == 0) return refuse(engine, size);
    order = static_cast<unsigned>(__builtin_ctzll(larger));
    slot = uint64_t{1} << order;
    at = pop(engine, order);
  }
  set_header(engine, at, seal(at) | slot);
  count_taken(engine, slot);
  return at;
}

uint64_t take_aligned_slot(Engine* engine, uint64_t size, size_t align) {
  if (size > engine->end || align > engine->end) return refuse(engine, size);
  const uint64_t at = take_slot(engine, size + align);
  if (at == 0) return 0;
  set_header(engine, at, header(engine, at) | alignment_bits(align));
  const uintptr_t base = reinterpret_cast<uintptr_t>(engine) + kHeader;
  const uint64_t start = base::align_up(base + at, align) - base;
  if (start != at) set_header(engine, start, seal(start) | (start - at) | kMoved);
  return start;
}

void put_slot(Engine* engine, uint64_t at, uint64_t slot) {
  const unsigned order = base::log2_floor(slot);
  word(engine, at + kHeader) = engine->heads[order];
  engine->heads[order] = at;
  engine->levels |= uint64_t{1} << order;
  set_figure(engine->ranges, figure(engine->ranges) + 1);
}

void give_slot(Engine* engine, uint64_t at) {
  const uint64_t slot = size_in(header(engine, at));
  count_given(engine, slot);
  put_slot(engine, at, slot);
  set_header(engine, at, seal(at) | slot | kFree);
}

void extend_slots(Engine* engine, uint64_t end) {
  set_figure(engine->end, end);
  set_frontier(engine, engine->frontier);
}

uint64_t cut_slots(Engine* engine, uint64_t end) {
  if (end < engine->frontier) end = engine->frontier;
  set_header(engine, end, seal(end));
  set_figure(engine->end, end);
  set_frontier(engine, engine->frontier);
  return end + kHeader;
}

uint64_t largest_slot(const Engine* engine) {
  const uint64_t behind = engine->end - engine->frontier;
  const uint64_t cuttable = behind < kLeastBlock ? 0 : uint64_t{1} << base::log2_floor(behind);
  const uint64_t kept = engine->levels == 0 ? 0 : uint64_t{1} << base::log2_floor(engine->levels);
  return cuttable > kept ? cuttable : kept;
}

uint64_t required_size(uint64_t max_live, uint64_t largest, uint64_t smallest) {
  if (smallest == 0) smallest = 1;
  if (smallest > largest || largest > max_live || max_live > kMostBytes / 2) return 0;
  uint64_t slots = 0;
  for (unsigned order = order_of(block_size(smallest)); order <= order_of(block_size(largest)); ++order) {
    const uint64_t slot = uint64_t{1} << order;
    const uint64_t least = order == kLeastOrder ? 1 : slot / 2 - kHeader + 1;
    uint64_t area;
    if (__builtin_mul_overflow(max_live / (least > smallest ? least : smallest), slot, &area)) return 0;
    slots += area;
    if (slots > kMostBytes / 2) return 0;
  }
  uint64_t total = slots;
  for (uint64_t before = 0; before != total;) {  // what the engine itself takes grows with the space
    before = total;
    total = slots + least_size(total);
  }
  return total;
}

}  // namespace hummock::space
