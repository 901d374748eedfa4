// Figures and the walk for people.
#include <string.h>

#include "base/keep_errno.h"
#include "space/cache.h"

namespace hummock::space {
namespace {

// Returns the number of the caches' records.
uint64_t sum_caches(Space* space, hummock_space_stats_t* out) {
  const Resting resting = resting_in_caches(space);
  out->cache_free += resting.bytes;
  out->cache_free_blocks += resting.blocks;
  if (space->rest != nullptr) {
    out->cache_free = figure(space->rest->bytes);
    out->cache_free_blocks = resting_blocks(space->rest);
  }
  return resting.records;
}

uint64_t collect(Space* space, hummock_space_stats_t* out) {
  const Control* control = space->control;
  const Engine* engine = space->engine;
  const uint64_t used = figure(engine->used);
  const uint64_t own = figure(control->own);
  const uint64_t records = sum_caches(space, out);
  // Nothing tells of a block at rest where it came from: only what rests is the cache's.
  const uint64_t cached = space->rest != nullptr ? out->cache_free : figure(control->cached);
  out->bytes = figure(control->bytes);
  out->overhead = sizeof(Control) + engine->first + own;
  out->pool_free = figure(engine->end) - engine->first - used;
  out->cache_used = cached - out->cache_free;
  out->pool_used = used - own - cached;
  out->used = out->pool_used + out->cache_used;
  out->free = out->pool_free + out->cache_free;
  out->peak = figure(engine->peak);
  out->initial = control->initial;
  out->maximum = control->maximum;
  out->expand = control->expand;
  out->largest_free = largest_free(engine);
  out->free_ranges =
      figure(engine->ranges) + (engine->policy == Policy::proven && engine->frontier != engine->end);
  out->live_blocks = figure(engine->live);
  out->allocations = figure(engine->allocations);
  out->failures = figure(engine->failures);
  out->largest_request = figure(engine->largest_request);
  out->largest_refused = figure(engine->largest_refused);
  out->expansions = figure(control->expansions);
  out->recoveries = figure(control->recoveries);
  out->achieved = control->achieved;
  out->threads = static_cast<uint32_t>(control->threads);
  out->policy = engine->policy == Policy::proven ? HUMMOCK_SPACE_PROVEN : HUMMOCK_SPACE_DENSE;
  out->broken = control->broken;
  memcpy(out->name, control->name, sizeof out->name);
  return records;
}

struct Visitor {
  Space* space;
  int (*visit)(void*, void*, size_t, int);
  void* context;
};

bool pass_on(void* context, uint64_t at, uint64_t value) {
  const Visitor* visitor = static_cast<Visitor*>(context);
  if (alignment_code(value) == kOwnRecord && (value & kFree) == 0) return true;
  return visitor->visit(visitor->context, payload(visitor->space->engine, at), size_in(value) - kHeader,
                        (value & kFree) == 0) != 0;
}

}  // namespace

uint64_t stats(Space* space, hummock_space_stats_t* out) {
  // A space whose dead user left it broken, or that another thread owns, is still told about.
  const base::KeepErrno keep;
  const bool entered = (space->threads != Threads::owner || is_owner(space)) && enter(space);
  const uint64_t records = collect(space, out);
  if (entered) leave(space);
  return records;
}

int visit(Space* space, int (*visit)(void*, void*, size_t, int), void* context) {
  const int saved = errno;
  if (!enter(space)) {
    const int error = errno;
    errno = saved;
    return error;
  }
  Visitor visitor = {space, visit, context};
  const bool sound = walk(space->engine, pass_on, &visitor);
  leave(space);
  return sound ? 0 : EIO;
}

}  // namespace hummock::space
