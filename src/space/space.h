// A space: its memory's head (Control), this process's handle to it (Space), and who may enter.
#ifndef HUMMOCK_SPACE_SPACE_H
#define HUMMOCK_SPACE_SPACE_H

#include <errno.h>
#include <pthread.h>

#include "base/message.h"
#include "hummock/hummock.h"
#include "hummock/page.h"
#include "space/lending.h"
#include "space/rest.h"

namespace hummock::space {

enum class Threads : uint32_t {
  owner = HUMMOCK_SPACE_OWNER,
  spin = HUMMOCK_SPACE_SPIN,
  inherit = HUMMOCK_SPACE_INHERIT
};

inline constexpr uint64_t kMagic = 0x4543415053'4d5548;  // "HUMSPACE"
inline constexpr uint32_t kVersion = 3;
inline constexpr size_t kNameRoom = 32;
inline constexpr uint64_t kMostSpace = kMostBytes;

// The beginning of the space's memory; the engine follows it. It may be in shared memory, so it has no
// pointers, except those that only their own process follows. "guarded": written only by a thread that has
// entered.
struct Control {
  uint64_t magic;  // written last at creation: pairs with the acquire of attach()
  uint32_t version;
  uint32_t control_size;
  Threads threads;
  uint32_t shared;
  uint32_t zero;
  uint32_t internal;  // the process's internal space: where the monitor begins
  uint32_t achieved;
  uint32_t broken;          // a dead process left headers that cannot be walked
  uint32_t populate, lock;  // what the creator wished for: holds for what any process adds
  uint64_t initial;
  uint64_t maximum;
  uint64_t expand;
  uint64_t bytes;       // the space's size, with this struct; guarded
  uint64_t pending;     // `initial` until the first allocation, if memory is only taken then; guarded
  uint64_t expansions;  // guarded
  uint64_t recoveries;  // guarded
  uint64_t root;        // for the program; in the internal space: the first handle of the registry
  uint64_t cached;      // bytes of blocks that caches have taken from the pool; guarded
  uint64_t own;         // bytes of the space's own records among the blocks; guarded
  char name[kNameRoom];
  uint64_t caches;  // offset of the first thread's cache, or 0; guarded

  alignas(64) uint64_t turn;    // spin: FIFO. Upper half: the ticket served; lower half: sleepers. Atomic:
  uint32_t next_ticket;         // release by the thread that leaves, acquire by the one that enters
  Lending lending;              // inherit: for the space that serves the process's malloc
  uint64_t taken;               // owner: remote frees that were taken and not yet freed; the owner's
  pthread_mutex_t mutex;        // inherit: for all other spaces
  alignas(64) uint64_t remote;  // owner: blocks freed by others, the last first. Atomic
};

struct Cache;

// This process's handle. It does not change after creation, except for fields that say so.
struct Space {
  void* (*malloc)(Space* space, size_t request);  // zeroing if the space does: see set_calls()
  void (*free)(Space* space, void* p);
  Engine* engine;   // follows the control
  uintptr_t owner;  // owner mode: the thread's pointer. Atomic
  Rest* rest;       // owner mode with a cache, else null
  Control* control;
  Threads threads;
  bool zero;
  bool callers_memory;
  bool huge_mapping;  // on reserved huge pages: all of `maximum` is mapped
  bool out_of_forks;  // it has NO_FORK
  bool creator;       // of a shared space: removes its name
  bool promised;      // it serves the process's malloc: without its first memory the program ends
  bool lends;         // its lock is Control::lending
  bool held_for_fork;
  bool fences;  // a thread that empties others' caches can make their threads execute a fence: see cache.cc
  uint32_t populate, lock, huge_pages, no_fork;
  uint32_t cache_blocks;  // 0: no caches
  uint32_t cache_shift;
  uint64_t cache_largest;
  uint64_t cache_room;  // the most bytes of one thread's cache; 0: only the number of blocks is bounded
  pthread_key_t cache_key;
  int descriptor;                                       // shared, else -1
  size_t unit;                                          // the space's size is a multiple of this
  uint64_t mapped;                                      // bytes of the mapping
  uint64_t serial;                                      // no two handles of the process ever have the same
  void* (*plain_malloc)(Space* space, size_t request);  // without zeroing
  void* (*pool_malloc)(Space* space, size_t request);   // past the caches
  void (*pool_free)(Space* space, void* p);             // for blocks that no cache took
  Space* next;                                          // registry; guarded by its lock
  Space* prev;
  char shared_name[256];
};

inline Space* of(hummock_space_t* handle) {
  return reinterpret_cast<Space*>(handle);
}
inline const Space* of(const hummock_space_t* handle) {
  return reinterpret_cast<const Space*>(handle);
}

inline Control* control_of(Engine* engine) {
  return reinterpret_cast<Control*>(engine) - 1;
}

// ---- Entering -----------------------------------------------------------------------------------

inline uintptr_t this_thread() {
  return reinterpret_cast<uintptr_t>(__builtin_thread_pointer());
}
inline bool is_owner(const Space* space) {
  return __atomic_load_n(&space->owner, __ATOMIC_RELAXED) == this_thread();
}

// An owner's call takes back at most so many blocks that others freed.
inline constexpr unsigned kDrain = 2;
void drain(Space* space, unsigned most);
inline bool has_remote(const Control* control) {
  return (control->taken | __atomic_load_n(&control->remote, __ATOMIC_RELAXED)) != 0;
}

// Adds one to the ticket in Control::turn.
inline constexpr uint64_t kNextTurn = uint64_t{1} << 32;
inline uint32_t served_in(uint64_t turn) {
  return static_cast<uint32_t>(turn >> 32);
}
inline uint32_t sleepers_in(uint64_t turn) {
  return static_cast<uint32_t>(turn);
}
void wait_turn(Control* control, uint32_t ticket);
void wake_turn(Control* control, uint32_t ticket);
bool enter_mutex(Space* space);
void leave_mutex(Space* space);
bool refuse_other_thread();

template <Threads kThreads>
inline bool enter_as(Space* space) {
  Control* control = space->control;
  if constexpr (kThreads == Threads::owner) {
    if (__builtin_expect(!is_owner(space), false)) return refuse_other_thread();
    if (__builtin_expect(has_remote(control), false)) drain(space, kDrain);
    return true;
  } else if constexpr (kThreads == Threads::inherit) {
    return enter_mutex(space);
  } else {
    const uint32_t ticket = __atomic_fetch_add(&control->next_ticket, 1, __ATOMIC_RELAXED);
    // acquire: pairs with the release in leave_as().
    if (served_in(__atomic_load_n(&control->turn, __ATOMIC_ACQUIRE)) != ticket) wait_turn(control, ticket);
    return true;
  }
}

// enter_as() for the case that nobody is inside; false: nothing was done. It makes no call, so that malloc
// and free need not save registers.
template <Threads kThreads>
inline bool enter_at_once(Space* space) {
  Control* control = control_of(space->engine);  // one load less than by the handle
  if constexpr (kThreads == Threads::owner) {
    return is_owner(space) && !has_remote(control);
  } else if constexpr (kThreads == Threads::spin) {
    // acquire, twice: pairs with the release in leave_as() of the thread that was served last.
    uint32_t ticket = served_in(__atomic_load_n(&control->turn, __ATOMIC_ACQUIRE));
    return __atomic_compare_exchange_n(&control->next_ticket, &ticket, ticket + 1, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
  } else {
    return false;
  }
}

template <Threads kThreads>
inline void leave_as(Space* space) {
  Control* control = space->control;
  if constexpr (kThreads == Threads::spin) {
    // One access for both: a sleeper counted before it is seen here, one counted after it sees the turn.
    const uint64_t before = __atomic_fetch_add(&control->turn, kNextTurn, __ATOMIC_RELEASE);
    if (__builtin_expect(sleepers_in(before) != 0, false)) wake_turn(control, served_in(before) + 1);
  } else if constexpr (kThreads == Threads::inherit) {
    leave_mutex(space);
  }
}

inline bool enter(Space* space) {
  if (space->threads == Threads::owner) return enter_as<Threads::owner>(space);
  return space->threads == Threads::spin ? enter_as<Threads::spin>(space) : enter_as<Threads::inherit>(space);
}
inline void leave(Space* space) {
  if (space->threads == Threads::spin) leave_as<Threads::spin>(space);
  if (space->threads == Threads::inherit) leave_as<Threads::inherit>(space);
}

// ---- Calls; semantics in hummock/space.h --------------------------------------------------------

Space* create(const hummock_space_options_t& options, uint32_t* achieved);
void destroy(Space* space);
void* allocate(Space* space, size_t request, size_t align, bool zero);
void* allocate_zeroed(Space* space, size_t request);
void* reallocate(Space* space, void* p, size_t request);
void release(Space* space, void* p);
size_t usable_size(const Space* space, const void* p);
inline bool contains(const Space* space, const void* p) {
  const Engine* engine = space->engine;
  const uint64_t at = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(engine);
  return at - engine->first < figure(engine->end) - engine->first;
}
int expand(Space* space, size_t bytes);
size_t shrink(Space* space, size_t bytes);
size_t trim(Space* space);
int own(Space* space);
// Returns the number of records of threads' caches, which are among the blocks.
uint64_t stats(Space* space, hummock_space_stats_t* out);
int visit(Space* space, int (*visit)(void*, void*, size_t, int), void* context);
Space* attach(int descriptor);
Space* open(const char* name);
Space* internal();

// The space that serves the process's malloc, or null. Calls no malloc.
bool make_external(const hummock_space_options_t& options);
Space* external();

// ---- Among the files of this folder --------------------------------------------------------------

// Expands the space by `bytes`, rounded up to its unit. Call it entered. False with errno.
bool grow(Space* space, uint64_t bytes);

// Chooses the handle's malloc and free.
void set_calls(Space* space);
// Adds to a message that no memory can be had what was asked of it (hummock_space_options_t).
void add_wants(base::Line* line, uint32_t lock, uint32_t huge_pages);
[[noreturn]] void bad_block(const Space* space, const char* call, const void* p);

// Finds the live block whose payload is p. Otherwise prints a line that names `call` and says what p is, and
// aborts. Only in a proven space may a payload be inside a slot.
template <bool kInside>
inline uint64_t find_block(const Space* space, const char* call, const void* p, uint64_t* found) {
  constexpr uint64_t kWrong = ~uint64_t{0} << kSealShift | kFree | kMoved;
  const Engine* engine = space->engine;
  uint64_t at = offset_of(engine, p);
  if (__builtin_expect(at >= engine->end, false)) bad_block(space, call, p);
  // For a misaligned `at` the lowest bits are above the seal's, so it cannot fit.
  *found = header(engine, at);
  uint64_t value = *found ^ seal(at);
  if (__builtin_expect((value & kWrong) == 0, true)) return at;
  if (!kInside || (value & kWrong) != kMoved) bad_block(space, call, p);
  at -= size_in(value);
  *found = header(engine, at);
  value = *found ^ seal(at);
  if ((value & kWrong) != 0) bad_block(space, call, p);
  return at;
}
// Does a block with the flag kFromCache rest in a thread's cache, because it was freed? In cache.cc.
bool is_in_cache(const Space* space, uint64_t at);

inline uint64_t live_block(const Space* space, const char* call, const void* p) {
  uint64_t value;
  const uint64_t at = find_block<true>(space, call, p, &value);
  static_assert(kResting == kFromCache);
  if ((value & kResting) != 0 && (space->rest != nullptr || is_in_cache(space, at)))
    bad_block(space, call, p);
  return at;
}

// The block_size() of a request that fits in no space.
inline constexpr uint64_t kTooLarge = ~uint64_t{0} >> 1;
inline uint64_t size_for(size_t request) {
  return __builtin_expect(request < kMostSpace, true) ? block_size(request) : kTooLarge;
}

// Called when the pool has refused. Not entered.
void* allocate_more(Space* space, uint64_t size, size_t align);
// The calls of an owner with a cache.
void* malloc_resting(Space* space, size_t request);
void free_resting(Space* space, void* p);
// Returns the blocks of all threads' caches to the pool. Call it entered. False: there were none.
bool empty_caches(Space* space);
// For a fork, entered: stops all caches; afterwards lets them go on, or, in the child, drops all but the
// calling thread's.
void stop_caches(Space* space);
void restart_caches(Space* space);
void drop_caches_of_others(Space* space);
// Past any cache.
void* allocate_from_pool(Space* space, size_t request, size_t align);
void release_to_pool(Space* space, uint64_t at);
// Zeroes the block's usable size except for its first `from` bytes.
void zero_room(const Space* space, void* p, size_t from);

// Turns all blocks at rest into free ranges. Entered.
inline void wake(Space* space) {
  if (space->rest != nullptr) wake_all(space->engine, space->rest);
}

// Makes a robust or plain mutex, as the space needs. Returns an error number.
int make_mutex(Control* control);

// The record of all handles; new_handle() gives a zeroed place for one.
Space* new_handle();
void add_handle(Space* space);
void drop_handle(Space* space);
// Figures of all spaces except the internal one, as many as there is room for; *all: how many there are.
// Returns 0 while another thread creates or destroys one.
uint32_t list(hummock_page_space_t* rows, uint32_t room, uint64_t* all);
void forget_handle(Space* space);  // frees its place

// Makes the space for a handle that is all zero. False with errno.
bool make(Space* space, const hummock_space_options_t& options);

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_SPACE_H
