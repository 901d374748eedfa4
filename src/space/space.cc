// malloc and its kin in a space.
#include "space/space.h"

#include <string.h>

#include "base/keep_errno.h"
#include "base/message.h"
#include "space/cache.h"
#include "space/open.h"
#include "space/slots.h"

namespace hummock::space {
namespace {

using base::Line;

constexpr unsigned kDrainWhenShort = 16;

uint64_t take_any(Space* space, uint64_t size, size_t align) {
  Engine* engine = space->engine;
  return align <= kGranule ? take(engine, size) : take_aligned(engine, size, align);
}

// Before a refusal, and while one threatens: what was just freed may stand behind others of its class, which
// came there from caches or from other threads.
uint64_t take_near(Space* space, uint64_t size, size_t align) {
  return align <= kGranule ? take_within_class(space->engine, size) : 0;
}
uint64_t take_closely(Space* space, uint64_t size, size_t align) {
  const uint64_t at = take_any(space, size, align);
  return at != 0 ? at : take_near(space, size, align);
}

// What a program was promised at its start cannot be had after all.
[[noreturn]] __attribute__((noinline)) void quit_without_memory(const Space* space) {
  Line line;
  line.text("no space of ")
      .bytes(space->control->pending)
      .text(" can be had for malloc at its first allocation");
  add_wants(&line, space->lock, space->huge_pages);
  base::quit(line);
}

// Others' frees may wait, the space may not have its memory yet, or may expand. Entered.
uint64_t take_more(Space* space, uint64_t size, size_t align) {
  Control* control = space->control;
  // The calls of an owner with a cache have asked for whole cache lines; less may do.
  const bool asked_more = space->rest != nullptr;
  const uint64_t near = asked_more ? take_closely(space, size, align) : take_near(space, size, align);
  if (near != 0) return near;
  if (space->engine->open != 0) {
    close_open(space->engine);
    if (const uint64_t at = take_closely(space, size, align)) return at;
  }
  if (space->threads == Threads::owner && has_remote(control)) {
    drain(space, kDrainWhenShort);
    if (const uint64_t at = take_closely(space, size, align)) return at;
  }
  if (space->rest != nullptr && space->rest->bytes != 0) {
    wake(space);
    if (const uint64_t at = take_closely(space, size, align)) return at;
  }
  if (size >= kMostSpace || align >= kMostSpace) return 0;
  if (empty_caches(space)) {
    if (const uint64_t at = take_closely(space, size, align)) return at;
  }
  if (control->pending > control->bytes) {
    if (!grow(space, control->pending - control->bytes)) {
      if (space->promised) quit_without_memory(space);
      return 0;
    }
    control->pending = 0;
    if (const uint64_t at = take_closely(space, size, align)) return at;
  }
  if (control->expand == 0) return 0;
  // A slot may be nearly twice as large as its block.
  const uint64_t least = (size + align + kLeastBlock) * (space->engine->policy == Policy::proven ? 2 : 1);
  const uint64_t bytes = least > control->expand ? least : control->expand;
  const uint64_t left = control->maximum - control->bytes;
  return grow(space, bytes < left ? bytes : left) ? take_closely(space, size, align) : 0;
}

}  // namespace

__attribute__((noinline)) void* allocate_more(Space* space, uint64_t size, size_t align) {
  const int saved = errno;
  if (!enter(space)) return nullptr;
  const uint64_t at = take_more(space, size, align);
  Engine* engine = space->engine;
  if (at == 0) {
    ++engine->failures;
    if (size > engine->largest_refused) engine->largest_refused = size;
  }
  leave(space);
  errno = at == 0 ? ENOMEM : saved;
  return at == 0 ? nullptr : payload(engine, at);
}

void add_wants(Line* line, uint32_t lock, uint32_t huge_pages) {
  if (lock == HUMMOCK_SPACE_REQUIRE) *line << "; it was to be locked (see ulimit -l)";
  if (huge_pages == HUMMOCK_SPACE_REQUIRE) *line << "; it was to stand in huge pages";
}

namespace {

[[noreturn]] void die_in(const Space* space, Line* line) {
  *line << " (space ";
  if (space->control->name[0] != '\0') *line << "\"" << space->control->name << "\" ";
  base::die(*line << "at " << static_cast<const void*>(space->control) << ")");
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
  } else if (!is_sealed(header(engine, at), at)) {
    line << "no block begins there, or what stands before it was overwritten,";
  } else {
    line << "double free: the block is free already";
  }
  die_in(space, &line);
}

namespace {

// A block in the chain of remote frees is not as release_remote() left it.
[[noreturn]] __attribute__((noinline)) void bad_remote(const Space* space, const void* p) {
  Line line;
  line << "hummock_space_free(" << p
       << "): double free, or a write after it: another thread freed the block before";
  die_in(space, &line);
}

// A block that another thread freed is in a chain until the owner takes it. Its payload says so, because only
// the owner may change its header. Memory may hold what an earlier space left: the mark is this space's.
uint64_t remote_mark(const Space* space, uint64_t at) {
  return ~((at + (space->serial << kSizeBits)) * 0xD1342543DE82EF95u);
}
constexpr uint64_t kNotYet = 1;  // the link is being written

void release_remote(Space* space, void* p) {
  Engine* engine = space->engine;
  const uint64_t at = live_block(space, "free", p);
  if (word(engine, at + kHeader) == remote_mark(space, at)) bad_block(space, "free", p);
  word(engine, at + kHeader) = remote_mark(space, at);
  uint64_t* link = &word(engine, at);
  __atomic_store_n(link, kNotYet, __ATOMIC_RELAXED);
  // Release: the owner's acquire in drain() sees the block's last use and kNotYet. Acquire is not needed:
  // what was there before is only linked to.
  const uint64_t before = __atomic_exchange_n(&space->control->remote, at, __ATOMIC_RELEASE);
  __atomic_store_n(link, before, __ATOMIC_RELEASE);  // pairs with the acquire load in drain()
}

}  // namespace

__attribute__((noinline)) void drain(Space* space, unsigned most) {
  Control* control = space->control;
  Engine* engine = space->engine;
  uint64_t at = control->taken;
  for (unsigned i = 0; i < most; ++i) {
    if (at == 0) at = __atomic_exchange_n(&control->remote, 0, __ATOMIC_ACQUIRE);
    if (at == 0) break;
    // If the owner freed it, too, or two threads at once, this is no link.
    const bool waits = (header(engine, at) & (kFree | kResting)) == 0 &&
                       word(engine, at + kHeader) == remote_mark(space, at);
    if (__builtin_expect(!waits, false)) bad_remote(space, payload(engine, at));
    const uint64_t next = __atomic_load_n(&word(engine, at), __ATOMIC_ACQUIRE);
    if (next == kNotYet) break;
    word(engine, at + kHeader) = 0;  // the mark must not be found in a later block
    give(engine, at);
    at = next;
  }
  control->taken = at;
}

void zero_room(const Space* space, void* p, size_t from) {
  const size_t room = usable_size(space, p);
  if (room > from) memset(static_cast<char*>(p) + from, 0, room - from);
}

namespace {

// malloc and free of each kind of space, with nothing in them that its modes do not need. What is rare is
// left by a tail call.
template <Threads kThreads, Policy kPolicy>
__attribute__((always_inline)) inline void* malloc_inside(Space* space, size_t request) {
  Engine* engine = space->engine;
  const uint64_t size = block_size(request);
  if (__builtin_expect(request < engine->end, true)) {
    note_request(engine, size);
    if constexpr (kPolicy == Policy::dense) {
      const uint64_t list = find(engine, size);
      if (__builtin_expect(list != kNoList, true)) {
        const uint64_t at = take_from(engine, list, size);
        leave_as<kThreads>(space);
        return payload(engine, at);
      }
    } else if (const uint64_t at = take_slot(engine, size)) {
      leave_as<kThreads>(space);
      return payload(engine, at);
    }
  }
  leave_as<kThreads>(space);
  return allocate_more(space, size_for(request), kGranule);
}

template <Threads kThreads, Policy kPolicy>
__attribute__((noinline)) void* malloc_late(Space* space, size_t request) {
  return enter_as<kThreads>(space) ? malloc_inside<kThreads, kPolicy>(space, request) : nullptr;
}

template <Threads kThreads, Policy kPolicy>
void* malloc_in(Space* space, size_t request) {
  if (__builtin_expect(!enter_at_once<kThreads>(space), false)) {
    return malloc_late<kThreads, kPolicy>(space, request);
  }
  return malloc_inside<kThreads, kPolicy>(space, request);
}

template <Threads kThreads, Policy kPolicy>
__attribute__((always_inline)) inline void free_inside(Space* space, void* p) {
  uint64_t value;
  const uint64_t at = find_block<kPolicy == Policy::proven>(space, "free", p, &value);
  kPolicy == Policy::dense ? give_dense(space->engine, at, value) : give_slot(space->engine, at);
  leave_as<kThreads>(space);
}

template <Threads kThreads, Policy kPolicy>
__attribute__((noinline)) void free_late(Space* space, void* p) {
  if (p == nullptr) return;
  if (kThreads == Threads::owner && !is_owner(space)) return release_remote(space, p);
  const base::KeepErrno keep;  // a shared space may be broken
  if (enter_as<kThreads>(space)) free_inside<kThreads, kPolicy>(space, p);
}

template <Threads kThreads, Policy kPolicy>
void free_in(Space* space, void* p) {
  // Blocks that others freed can wait for the owner's next malloc.
  const bool inside = kThreads == Threads::owner ? is_owner(space) : enter_at_once<kThreads>(space);
  if (__builtin_expect(!inside, false)) return free_late<kThreads, kPolicy>(space, p);
  if (__builtin_expect(offset_of(space->engine, p) >= space->engine->end, false)) {  // null, most often
    leave_as<kThreads>(space);
    return free_late<kThreads, kPolicy>(space, p);
  }
  free_inside<kThreads, kPolicy>(space, p);
}

template <Threads kThreads>
void set_calls_of(Space* space) {
  const bool dense = space->engine->policy == Policy::dense;
  space->malloc = dense ? malloc_in<kThreads, Policy::dense> : malloc_in<kThreads, Policy::proven>;
  space->free = dense ? free_in<kThreads, Policy::dense> : free_in<kThreads, Policy::proven>;
}

}  // namespace

void set_calls(Space* space) {
  if (space->threads == Threads::owner) set_calls_of<Threads::owner>(space);
  if (space->threads == Threads::spin) set_calls_of<Threads::spin>(space);
  if (space->threads == Threads::inherit) set_calls_of<Threads::inherit>(space);
  space->pool_malloc = space->malloc;
  space->pool_free = space->free;
  if (space->cache_blocks != 0) {
    space->malloc = space->rest != nullptr ? malloc_resting : malloc_cached;
    space->free = space->rest != nullptr ? free_resting : free_cached;
  }
  space->plain_malloc = space->malloc;
  if (space->zero) space->malloc = allocate_zeroed;
}

void* allocate_zeroed(Space* space, size_t request) {
  void* p = space->plain_malloc(space, request);
  if (p != nullptr) zero_room(space, p, 0);
  return p;
}

void* allocate(Space* space, size_t request, size_t align, bool zero) {
  void* p =
      align <= kGranule ? space->plain_malloc(space, request) : allocate_from_pool(space, request, align);
  if (zero && p != nullptr) zero_room(space, p, 0);
  return p;
}

void* allocate_from_pool(Space* space, size_t request, size_t align) {
  const uint64_t size = size_for(request);
  if (!enter(space)) return nullptr;
  const uint64_t at = take_any(space, size, align);
  leave(space);
  return at == 0 ? allocate_more(space, size, align) : payload(space->engine, at);
}

void release_to_pool(Space* space, uint64_t at) {
  if (!enter(space)) return;
  live_block(space, "free", payload(space->engine, at));  // another thread may have freed it meanwhile
  if (space->cache_blocks != 0) forget_cached(space, at);
  give(space->engine, at);
  leave(space);
}

void release(Space* space, void* p) {
  space->free(space, p);
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
  const size_t align = alignment_of(alignment_code(header(engine, at)));
  // A cache's block stays in its class while it is not much too long.
  if ((header(engine, at) & kFromCache) != 0 && space->rest == nullptr && request <= room &&
      request >= room / 2) {
    if (space->zero) zero_room(space, p, request);
    return p;
  }
  if (request < kMostSpace) {
    if (!enter(space)) return nullptr;
    const bool is_cached = space->cache_blocks != 0;
    if (is_cached) forget_cached(space, at);
    if (space->rest != nullptr) end_run(engine, space->rest);
    const size_t whole = request + before;
    // Whole cache lines if they can be had, else what is enough.
    const bool lined = space->rest != nullptr && resize(engine, at, resting_size(whole));
    const bool in_place = lined || resize(engine, at, block_size(whole));
    leave(space);
    if (in_place) {
      if (space->zero) zero_room(space, p, request < room ? request : room);
      return p;
    }
  }
  void* fresh = allocate(space, request, align, space->zero);
  if (fresh == nullptr) return nullptr;
  memcpy(fresh, p, room < request ? room : request);
  release(space, p);
  return fresh;
}

int own(Space* space) {
  if (space->threads != Threads::owner) return EINVAL;
  __atomic_store_n(&space->owner, this_thread(), __ATOMIC_RELAXED);
  return 0;
}

}  // namespace hummock::space
