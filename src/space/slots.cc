#include "space/slots.h"

#include "base/bits.h"

namespace hummock::space {

uint64_t take_aligned_slot(Engine* engine, uint64_t size, size_t align) {
  note_request(engine, size);
  if (size > engine->end || align > engine->end) return 0;
  const uint64_t at = take_slot(engine, size + align);
  if (at == 0) return 0;
  set_header(engine, at, header(engine, at) | alignment_bits(align));
  const uintptr_t base = reinterpret_cast<uintptr_t>(engine);
  const uint64_t start = base::align_up(base + at, align) - base;
  if (start != at) set_header(engine, start, seal(start) | (start - at) | kMoved);
  return start;
}

void extend_slots(Engine* engine, uint64_t end) {
  engine->end = end;
  set_frontier(engine, engine->frontier);
}

uint64_t cut_slots(Engine* engine, uint64_t end) {
  if (end < engine->frontier) end = engine->frontier;
  set_header(engine, end, seal(end));
  engine->end = end;
  set_frontier(engine, engine->frontier);
  return end;
}

uint64_t largest_slot(const Engine* engine) {
  const uint64_t behind = engine->end - engine->frontier;
  const uint64_t cuttable = behind < kLeastBlock ? 0 : uint64_t{1} << base::log2_floor(behind);
  const uint64_t levels = figure(engine->levels);
  const uint64_t kept = levels == 0 ? 0 : uint64_t{1} << base::log2_floor(levels);
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
    total = slots + engine_size(total);
  }
  return total;
}

}  // namespace hummock::space
