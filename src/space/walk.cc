// Walks: the full walk, its checks, and the repair after a process died inside the engine.
#include "base/bits.h"
#include "space/open.h"

namespace hummock::space {
namespace {

// Is there a header at `at` that a walk may follow?
bool leads_on(const Engine* engine, uint64_t at, uint64_t value) {
  const uint64_t size = size_in(value);
  if (!is_sealed(value, at)) return false;
  return at == engine->end ? size == 0 : size >= kGranule && size <= engine->end - at;
}

bool is_frontier(const Engine* engine, uint64_t at) {
  return engine->policy == Policy::proven && at == engine->frontier;
}

struct Tally {
  uint64_t used = 0;
  uint64_t live = 0;
  uint64_t ranges = 0;
};

bool counted_in_lists(const Engine* engine, Tally* tally) {
  uint64_t entries = 0;
  for (uint64_t list = kFirstList; list < engine->lists; ++list) {
    const bool dense = engine->policy == Policy::dense;
    const bool marked = dense ? (engine->words[list >> 6] >> (list & 63) & 1) != 0
                              : list < 2 * kFirstList && (engine->levels >> (list - kFirstList) & 1) != 0;
    if (marked != (head(engine, list) != 0)) return false;
    uint64_t slot = list * sizeof(uint64_t);
    for (uint64_t at = head(engine, list); at != 0; at = word(engine, at)) {
      if (at < engine->first || at >= engine->end || ++entries > tally->ranges) return false;
      const uint64_t value = header(engine, at);
      const uint64_t right = dense ? list_of(size_in(value)) : kFirstList + base::log2_floor(size_in(value));
      if ((value & kFree) == 0 || right != list) return false;
      if (dense && word(engine, at + kHeader) != slot) return false;
      slot = at;
    }
  }
  for (unsigned level = 0; engine->policy == Policy::dense && level <= kLevels; ++level) {
    if ((engine->levels >> level & 1) != (engine->words[level] != 0)) return false;
  }
  if (engine->open != 0) {
    const uint64_t value = header(engine, engine->open);
    if ((value & kFree) == 0 || size_in(value) != engine->open_size || word(engine, engine->open) != 0 ||
        word(engine, engine->open + kHeader) != kOpenList * sizeof(uint64_t)) {
      return false;
    }
    ++entries;
  }
  return entries == tally->ranges;
}

}  // namespace

bool walk(const Engine* engine, bool (*visit)(void*, uint64_t, uint64_t), void* context) {
  Tally tally;
  bool before_is_free = false;
  for (uint64_t at = engine->first;;) {
    const uint64_t value = header(engine, at);
    if (!leads_on(engine, at, value)) return false;
    const bool dense = engine->policy == Policy::dense;
    if (dense && ((value & kPrevFree) != 0) != before_is_free) return false;
    if (at == engine->end) break;
    const uint64_t size = size_in(value);
    const bool is_free = (value & kFree) != 0;
    if (!is_free) {
      tally.used += size;
      ++tally.live;
    } else if (!is_frontier(engine, at)) {
      ++tally.ranges;
      if (dense && (before_is_free || word(engine, at + size - 2 * kHeader) != size)) return false;
    }
    if (visit != nullptr && !visit(context, at, value)) return true;
    before_is_free = is_free;
    at += size;
  }
  if (tally.used != engine->used || tally.live != engine->live || tally.ranges != engine->ranges)
    return false;
  return counted_in_lists(engine, &tally);
}

bool is_sound(const Engine* engine) {
  return walk(engine, nullptr, nullptr);
}

namespace {

// Puts the block or range at `at` where it belongs; returns what `before` is for the next one.
uint64_t settle(Engine* engine, uint64_t at, uint64_t before) {
  const uint64_t value = header(engine, at);
  const uint64_t size = size_in(value);
  if ((value & kFree) == 0) {
    set_header(engine, at, (value & ~kPrevFree) | (before != 0 ? kPrevFree : 0));
    engine->used += size;
    ++engine->live;
    return 0;
  }
  if (before == 0) return at;
  set_header(engine, before, header(engine, before) + size);
  return before;
}

void forget_lists(Engine* engine) {
  engine->levels = engine->ranges = engine->used = engine->live = engine->open = 0;
  for (uint64_t& bits : engine->words) bits = 0;
  for (uint64_t list = kFirstList; list < engine->lists; ++list) head(engine, list) = 0;
}

void rebuild_dense(Engine* engine) {
  uint64_t before = 0;  // the free range that ends where we are
  for (uint64_t at = engine->first; at != engine->end;) {
    const uint64_t size = size_in(header(engine, at));
    const uint64_t ended = before;
    before = settle(engine, at, before);
    if (ended != 0 && before == 0) put_range(engine, ended);
    at += size;
  }
  if (before != 0) put_range(engine, before);
  set_header(engine, engine->end, seal(engine->end) | (before != 0 ? kPrevFree : 0));
}

void rebuild_slots(Engine* engine) {
  uint64_t last = 0;  // the free slot, or frontier, that is last
  for (uint64_t at = engine->first; at != engine->end; at += size_in(header(engine, at))) {
    const uint64_t value = header(engine, at);
    if (last != 0) put_range(engine, last);
    last = (value & kFree) != 0 ? at : 0;
    if (last == 0) {
      engine->used += size_in(value);
      ++engine->live;
    }
  }
  engine->frontier = last != 0 ? last : engine->end;
}

}  // namespace

bool rebuild(Engine* engine) {
  uint64_t at = engine->first;
  for (uint64_t size = 1; size != 0; at += size) {
    const uint64_t value = header(engine, at);
    size = size_in(value);
    if (!is_sealed(value, at)) return false;
    if (size != 0 && (size < kGranule || size > kMostBytes - at)) return false;
  }
  engine->end = at;
  forget_lists(engine);
  if (engine->policy == Policy::dense) {
    rebuild_dense(engine);
  } else {
    rebuild_slots(engine);
  }
  if (engine->used > engine->peak) engine->peak = engine->used;
  return true;
}

}  // namespace hummock::space
