// malloc and its kin in a space.
#include "space/space.h"

#include <string.h>

#include "base/message.h"
#include "space/cache.h"

namespace hummock::space {
namespace {

using base::Line;

constexpr uint64_t kTooLarge = ~uint64_t{0} >> 1;  // no space has such a block
constexpr unsigned kDrainWhenShort = 16;

uint64_t take_any(Space* space, uint64_t size, size_t align) {
  Engine* engine = space->engine;
  return align <= kGranule ? take(engine, size) : take_aligned(engine, size, align);
}

// The pool has refused: others' frees may wait, the space may not have its memory yet, or may expand.
__attribute__((noinline)) uint64_t take_more(Space* space, uint64_t size, size_t align) {
  Engine* engine = space->engine;
  const uint64_t failures = engine->failures;
  uint64_t at = 0;
  if (space->threads == Threads::owner && has_remote(space->control)) {
    drain(space, kDrainWhenShort);
    at = take_any(space, size, align);
  }
  Control* control = space->control;
  if (at == 0 && size < kMostSpace && align < kMostSpace) {
    const uint64_t least = 2 * size + 2 * align;  // proven: a slot is less than twice as large
    if (control->pending != 0 && grow(space, control->pending - control->bytes, 0)) {
      control->pending = 0;
      at = take_any(space, size, align);
    }
    if (at == 0 && control->pending == 0 && control->expand != 0 && grow(space, control->expand, least)) {
      at = take_any(space, size, align);
    }
  }
  set_figure(engine->failures, at != 0 ? failures - 1 : failures);
  return at;
}

}  // namespace

[[noreturn]] __attribute__((noinline)) void bad_block(const Space* space, const char* call, const void* p) {
  const Engine* engine = space->engine;
  const uint64_t at = offset_of(engine, p);
  Line line;
  line << "hummock_space_" << call << "(" << p << "): ";
  if (at < engine->first || at >= engine->end) {
    line << "not in the space";
  } else if (at % kGranule != engine->first % kGranule) {
    line << "not aligned as a block of the space is";
  } else if (header(engine, at) >> kSealShift != seal(at) >> kSealShift) {
    line << "no block begins there, or what stands before it was overwritten,";
  } else {
    line << "double free: the block is free already";
  }
  line << " (space ";
  if (space->control->name[0] != '\0') line << "\"" << space->control->name << "\" ";
  base::die(line << "at " << static_cast<const void*>(space->control) << ")");
}

namespace {

// What others freed stands in a chain until the owner takes it: its payload says so, since only the
// owner may change its header.
uint64_t remote_mark(uint64_t at) {
  return ~(at * 0xD1342543DE82EF95u);
}
constexpr uint64_t kNotYet = 1;  // the link is being written

void release_remote(Space* space, void* p) {
  Engine* engine = space->engine;
  const uint64_t at = live_block(space, "free", p);
  if (word(engine, at + 2 * kHeader) == remote_mark(at)) bad_block(space, "free", p);
  word(engine, at + 2 * kHeader) = remote_mark(at);
  uint64_t* link = &word(engine, at + kHeader);
  __atomic_store_n(link, kNotYet, __ATOMIC_RELAXED);
  // Release: the owner's acquire in drain() sees the block's last use and kNotYet. Acquire is not needed:
  // what was there before is only linked to.
  const uint64_t before = __atomic_exchange_n(&space->control->remote, at, __ATOMIC_RELEASE);
  __atomic_store_n(link, before, __ATOMIC_RELEASE);  // pairs with the acquire load in drain()
}

}  // namespace

void drain(Space* space, unsigned most) {
  Control* control = space->control;
  Engine* engine = space->engine;
  uint64_t at = control->taken;
  for (unsigned i = 0; i < most; ++i) {
    if (at == 0) at = __atomic_exchange_n(&control->remote, 0, __ATOMIC_ACQUIRE);
    if (at == 0) break;
    const uint64_t next = __atomic_load_n(&word(engine, at + kHeader), __ATOMIC_ACQUIRE);
    if (next == kNotYet) break;
    give(engine, at);
    at = next;
  }
  control->taken = at;
}

uint64_t live_block(const Space* space, const char* call, const void* p) {
  const Engine* engine = space->engine;
  uint64_t at = offset_of(engine, p);
  if (at - engine->first >= figure(engine->end) - engine->first ||
      ((at ^ engine->first) & (kGranule - 1)) != 0) {
    bad_block(space, call, p);
  }
  uint64_t value = header(engine, at) ^ seal(at);
  if (__builtin_expect((value >> kSealShift) == 0 && (value & (kFree | kMoved)) == kMoved, false)) {
    at -= size_in(value);
    value = header(engine, at) ^ seal(at);
  }
  if (__builtin_expect((value >> kSealShift) != 0 || (value & (kFree | kMoved)) != 0, false)) {
    bad_block(space, call, p);
  }
  return at;
}

void zero_room(const Space* space, void* p, size_t from) {
  const size_t room = usable_size(space, p);
  if (room > from) memset(static_cast<char*>(p) + from, 0, room - from);
}

void* allocate(Space* space, size_t request, size_t align, bool zero) {
  if (__builtin_expect(space->cache_blocks != 0, false) && request <= space->cache_largest &&
      align <= kGranule) {
    return allocate_cached(space, request, zero);
  }
  return allocate_from_pool(space, request, align, zero);
}

void* allocate_from_pool(Space* space, size_t request, size_t align, bool zero) {
  const uint64_t size = __builtin_expect(request < kMostSpace, true) ? block_size(request) : kTooLarge;
  if (!enter(space)) return nullptr;
  uint64_t at = take_any(space, size, align);
  if (__builtin_expect(at == 0, false)) at = take_more(space, size, align);
  leave(space);
  if (__builtin_expect(at == 0, false)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* p = payload(space->engine, at);
  if (zero) zero_room(space, p, 0);
  return p;
}

void release(Space* space, void* p) {
  if (p == nullptr) return;
  if (space->cache_blocks != 0 && release_cached(space, p)) return;
  if (space->threads == Threads::owner && __builtin_expect(!is_owner(space), false)) {
    return release_remote(space, p);
  }
  if (!enter(space)) return;
  const uint64_t at = live_block(space, "free", p);
  if (space->cache_blocks != 0) forget_cached(space, at);
  give(space->engine, at);
  leave(space);
}

size_t usable_size(const Space* space, const void* p) {
  const uint64_t at = live_block(space, "usable_size", p);
  return size_in(header(space->engine, at)) - kHeader - (offset_of(space->engine, p) - at);
}

void* reallocate(Space* space, void* p, size_t request) {
  Engine* engine = space->engine;
  const uint64_t at = live_block(space, "realloc", p);
  const uint64_t before = offset_of(engine, p) - at;
  const size_t room = size_in(header(engine, at)) - kHeader - before;
  const unsigned align = alignment_in(header(engine, at));
  if (request < kMostSpace) {
    if (!enter(space)) return nullptr;
    const bool is_cached = space->cache_blocks != 0;
    if (is_cached) forget_cached(space, at);
    const bool in_place = resize(engine, at, block_size(request + before));
    leave(space);
    if (in_place) {
      if (space->zero) zero_room(space, p, request < room ? request : room);
      return p;
    }
  }
  void* fresh = allocate(space, request, size_t{1} << align, space->zero);
  if (fresh == nullptr) return nullptr;
  memcpy(fresh, p, room < request ? room : request);
  release(space, p);
  return fresh;
}

bool contains(const Space* space, const void* p) {
  const uint64_t at = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(space->engine);
  return at - space->engine->first < figure(space->engine->end) - space->engine->first;
}

int own(Space* space) {
  if (space->threads != Threads::owner) return EINVAL;
  __atomic_store_n(&space->control->owner, this_thread(), __ATOMIC_RELAXED);
  return 0;
}

}  // namespace hummock::space
