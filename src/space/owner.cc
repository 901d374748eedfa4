// malloc and free of an owner with a cache (blocks at rest). Rare cases are tail calls, and so are cases that
// would slow the usual one down by their registers and branches.
#include "space/space.h"

namespace hummock::space {
namespace {

// Allocates from the engine. Entered.
template <bool kKeep>
__attribute__((always_inline)) inline void* malloc_inside(Space* space, size_t request) {
  Engine* engine = space->engine;
  const uint64_t size = resting_size(request);
  if (__builtin_expect(request < engine->end, true)) {
    note_request(engine, size);
    const uint64_t at = take_open<kKeep>(engine, size);
    if (__builtin_expect(at != 0, true)) return payload(engine, at);
  }
  return allocate_more(space, size_for(request), kGranule);
}

__attribute__((noinline)) void* malloc_from_lists(Space* space, size_t request) {
  return malloc_inside<true>(space, request);
}

// While no free range is long, all are in the lists, so that each request gets the best fit, and each malloc
// gives one block at rest to the engine.
__attribute__((noinline)) void* malloc_short(Space* space, size_t request) {
  if (space->engine->open != 0) {
    close_open(space->engine);
  } else {
    wake_one(space->engine, space->rest);
  }
  return malloc_inside<false>(space, request);
}

// The run of `size` bytes reaches the open range, and is about to join it.
__attribute__((always_inline)) inline void forget_run(Engine* engine, Rest* rest, uint64_t size) {
  engine->used -= size;
  engine->live -= rest->in_run;
  rest->in_run = 0;
  rest->expects_run = 1;
  rest->bytes -= size;
}
__attribute__((always_inline)) inline void join_run(Engine* engine, Rest* rest) {
  const uint64_t at = rest->run;
  forget_run(engine, rest, rest->behind - at);
  join_open(engine, at, header(engine, at) & ~kResting);
}

// The run becomes a part of the open range if it has reached that, else a free range of its own.
__attribute__((noinline)) void* malloc_after_run(Space* space, size_t request) {
  if (space->rest->behind == space->engine->open) {
    join_run(space->engine, space->rest);
    return malloc_inside<true>(space, request);
  }
  end_run(space->engine, space->rest);
  return malloc_inside<false>(space, request);
}

// There is a run, which ends now; or the open range is not long, and maybe no range is.
__attribute__((noinline)) void* malloc_otherwise(Space* space, size_t request) {
  const Engine* engine = space->engine;
  const Rest* rest = space->rest;
  if (rest->in_run != 0) return malloc_after_run(space, request);
  if (!is_short(engine, rest)) return malloc_from_lists(space, request);
  if ((rest->bytes | engine->open) != 0) return malloc_short(space, request);
  return malloc_inside<false>(space, request);
}

// The open range has room, but the lists come first.
__attribute__((noinline)) void* malloc_listed(Engine* engine, uint64_t size) {
  note_request(engine, size);
  return payload(engine, take_open<true>(engine, size));
}

// No cached block fits.
__attribute__((noinline)) void* malloc_anew(Space* space, size_t request) {
  const Rest* rest = space->rest;
  if (__builtin_expect((rest->in_run != 0) | (space->engine->open_size < rest->part), false)) {
    return malloc_otherwise(space, request);
  }
  return malloc_inside<true>(space, request);
}

// Cuts a block of whole cache lines from the beginning of the range that is, or becomes, the open one.
__attribute__((always_inline)) inline void* cut_lines(Engine* engine, uint64_t at, uint64_t room,
                                                      uint64_t size) {
  note_request(engine, size);
  link_open(engine, at + size, room - size);
  set_header(engine, at, seal(at) | size);
  count_taken(engine, size);
  return payload(engine, at);
}

// Mostly the first malloc after many frees. It cuts the block from the run and the open range behind it as if
// they had been joined before. One function does both, because the processor mispredicts each branch here,
// and a load right after a store takes time.
__attribute__((noinline)) void* malloc_long_after_run(Space* space, size_t request) {
  Engine* engine = space->engine;
  Rest* rest = space->rest;
  if (__builtin_expect(rest->behind != engine->open, false)) return malloc_after_run(space, request);
  const uint64_t size = size_in_lines(request);
  const uint64_t at = rest->run;
  const uint64_t run = rest->behind - at;
  const uint64_t room = run + engine->open_size;
  const bool follows_free = (header(engine, at) & kPrevFree) != 0;
  const bool is_too_short = (room < rest->part) | (request > room - 2 * kLine);
  // Two conditions in order: may_fit needs a size that is not too long.
  if (__builtin_expect((follows_free | is_too_short) || may_fit(engine, size), false)) {
    return malloc_after_run(space, request);
  }
  forget_run(engine, rest, run);
  return cut_lines(engine, at, room, size);
}

// For sizes that no list has. Most long blocks come from the open range, with few branches on the way,
// because the processor may mispredict each of them when sizes change.
__attribute__((noinline)) void* malloc_long(Space* space, size_t request) {
  Engine* engine = space->engine;
  const Rest* rest = space->rest;
  if (__builtin_expect((rest->in_run != 0) | (engine->open_size < rest->part), false)) {
    return rest->in_run != 0 ? malloc_long_after_run(space, request) : malloc_otherwise(space, request);
  }
  // The open range is a quarter of the space, or was.
  const uint64_t size = size_in_lines(request);
  const uint64_t at = engine->open;
  const uint64_t room = engine->open_size;
  if (__builtin_expect((at == 0) | (request > room - 2 * kLine), false)) {
    return malloc_from_lists(space, request);
  }
  if (__builtin_expect(may_fit(engine, size), false)) return malloc_listed(engine, size);
  return cut_lines(engine, at, room, size);
}

// For blocks of whole cache lines.
__attribute__((noinline)) void* malloc_resting_large(Space* space, size_t request) {
  Engine* engine = space->engine;
  Rest* rest = space->rest;
  const uint64_t size = size_in_lines(request);
  uint64_t at;
  if (request <= kOneSize - kHeader - kLine) {
    at = take_resting<true>(engine, rest, small_list(rest, size), size);
  } else {
    if (request > space->cache_largest) return malloc_long(space, request);
    at = take_resting<false>(engine, rest, large_list(rest, size), size);
  }
  if (__builtin_expect(at == 0, false)) return malloc_anew(space, request);
  note_request(engine, size);
  return payload(engine, at);
}

// Entered.
__attribute__((always_inline)) inline void* malloc_resting_inside(Space* space, size_t request) {
  if (request >= kLeastInLines) return malloc_resting_large(space, request);
  Engine* engine = space->engine;
  Rest* rest = space->rest;
  const uint64_t size = block_size(request);
  const uint64_t at = take_resting<true>(engine, rest, small_list(rest, size), size);
  if (__builtin_expect(at == 0, false)) return malloc_anew(space, request);
  note_request(engine, size);
  return payload(engine, at);
}

__attribute__((noinline)) void* malloc_late_resting(Space* space, size_t request) {
  return enter_as<Threads::owner>(space) ? malloc_resting_inside(space, request) : nullptr;
}

// Frees a block that may not be cached, or finds that it is not one.
__attribute__((noinline)) void free_awake(Space* space, void* p) {
  const Engine* engine = space->engine;
  const uint64_t at = offset_of(engine, p);
  if (at < engine->end && ((header(engine, at) ^ seal(at)) & ~(kKept | kSizeMask)) == kResting) {
    bad_block(space, "free", p);
  }
  space->pool_free(space, p);
}

// Is this the header of a live block below kOneSize that may rest? The rotation moves its flags to the top.
inline bool is_small_live(uint64_t value, uint64_t at) {
  const uint64_t bits = (value ^ seal(at)) & ~kPrevFree;
  return (bits >> 4 | bits << 60) < kOneSize / kGranule;
}

// A live block that does not come to rest.
__attribute__((noinline)) void give_back(Engine* engine, uint64_t at, uint64_t value) {
  give_dense(engine, at, value);
}

// For a block that has no list and is not behind the block that was freed last. If the last run had several
// blocks, this one begins a new run.
__attribute__((noinline)) void free_apart(Engine* engine, Rest* rest, uint64_t at, uint64_t value) {
  const uint64_t size = size_in(value);
  if (at + size == engine->open) {
    count_given(engine, size);
    return join_open(engine, at, value);
  }
  if (rest->in_run != 0) return give_dense(engine, at, value);
  rest->behind = at + size;
  if (rest->expects_run == 0) return give_dense(engine, at, value);
  rest->run = at;
  rest->in_run = 1;
  rest->bytes += size;
  set_header(engine, at, value | kResting);
}

// For a live block that is longer than those of all lists. There is no prefetch of the next header: the
// processor fetches ahead by itself, and a prefetch waits until the address is translated.
__attribute__((always_inline)) inline void free_long(Engine* engine, Rest* rest, uint64_t at, uint64_t value,
                                                     uint64_t size) {
  if (__builtin_expect(at != rest->behind, false)) return free_apart(engine, rest, at, value);
  const uint64_t in_run = rest->in_run;
  if (__builtin_expect(in_run == 0, false)) rest->run = at;
  rest->in_run = in_run + 1;
  rest->behind = at + size;
  rest->bytes += size;
  set_header(engine, at, value | kResting);
}

// For a block that is not small, or may not rest.
__attribute__((noinline)) void free_otherwise(Space* space, void* p, uint64_t value, Rest* rest,
                                              Engine* engine, uint64_t at) {
  if (__builtin_expect(((value ^ seal(at)) & kUnrestful) != 0, false)) return free_awake(space, p);
  const uint64_t size = size_in(value);
  if (size > rest->largest) return free_long(engine, rest, at, value, size);
  if (!lay_down(engine, rest, large_list(rest, size), at, value)) give_back(engine, at, value);
}

}  // namespace

void* malloc_resting(Space* space, size_t request) {
  if (__builtin_expect(!enter_at_once<Threads::owner>(space), false)) {
    return malloc_late_resting(space, request);
  }
  return malloc_resting_inside(space, request);
}

void free_resting(Space* space, void* p) {
  Engine* engine = space->engine;
  Rest* rest = space->rest;
  const uint64_t at = offset_of(engine, p);
  if (__builtin_expect(!is_owner(space) || at >= engine->end, false)) return free_awake(space, p);
  // Read through p, so that the load need not wait for that of `engine`.
  const uint64_t value = __atomic_load_n(static_cast<uint64_t*>(p) - 1, __ATOMIC_RELAXED);
  if (__builtin_expect(!is_small_live(value, at), false))
    return free_otherwise(space, p, value, rest, engine, at);
  const uint64_t size = value & (kOneSize - kGranule);
  Rest::List* list = small_list(rest, size);
  if (__builtin_expect(list->room == 0, false)) return give_back(engine, at, value);
  if (__builtin_expect(engine->open_size < rest->part, false)) {  // is_short, with the usual test first
    if (engine->levels < rest->enough) return give_back(engine, at, value);
  }
  lay(engine, rest, list, at, value, size);
}

}  // namespace hummock::space
