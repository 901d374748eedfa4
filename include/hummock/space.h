/* Deterministic spaces. A space is memory of a fixed extent. It allocates and frees blocks in a bounded
 * number of instructions, makes no system call, and does not grow unless asked.
 *
 * What a space promises after its creation, for every size and whatever is allocated and free:
 *   - malloc, free and usable_size execute at most the instructions that docs/spaces.md lists, not counting
 *     zeroing and copying, which cost by the byte. They touch a fixed number of cache lines. With a cache the
 *     bounds are others, and a malloc that would be refused takes back the blocks that the cache holds.
 *   - No system call, with four exceptions: a contended lock (with HUMMOCK_SPACE_SPIN only when it waits for
 * a thread that does not run); a thread's first use of a cache; an automatic expansion if `expand` is not 0;
 *     and one when a malloc that would be refused takes back blocks from other threads' caches.
 *   - When no memory fits, a call returns NULL with ENOMEM, never memory outside the space.
 *   - After free(p) the same thread's next malloc of the same size succeeds, if no other thread allocates in
 *     between.
 *
 * The thread mode says which threads may call these functions. They are not async-signal-safe. Sizes
 * are in bytes. For a pointer that is not a live block of the space, Hummock prints one line on standard
 * error and aborts the process. Only the functions of this header take blocks of a space, except those of the
 * process's external space, below. */
#ifndef HUMMOCK_SPACE_H
#define HUMMOCK_SPACE_H

#include "hummock.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hummock_space hummock_space_t;

/* Whether a property is not wanted, wanted if possible, or required; see hummock_space_options_t. */
#define HUMMOCK_SPACE_OFF 0
#define HUMMOCK_SPACE_TRY 1
#define HUMMOCK_SPACE_REQUIRE 2

/* When the space takes its memory: at creation, or at the first allocation. */
#define HUMMOCK_SPACE_AT_START 0
#define HUMMOCK_SPACE_AT_FIRST 1

/* Thread modes.
 * OWNER: one thread allocates, without a lock: the one that created the space or called hummock_space_own.
 * Any thread may free, with one atomic exchange; the owner takes back at most 2 such blocks at each malloc.
 * Of another thread's calls usable_size, contains and stats work, too; shrink and trim return 0 with errno =
 * EPERM, and all others fail with EPERM. In the child of a fork that another thread made, the copy of the
 * space must not be used. A cache keeps every size separately, so cache_step must be 0. It also
 * shortens calls for longer blocks if they are freed in the order of their addresses. SPIN: threads take
 * turns in the order in which they came, and spin. Use it for fewer running threads than processors. A thread
 * that waits for one that is not running sleeps after some microseconds, by a system call. INHERIT: a lock
 * that lends its holder the priority of the threads that wait. */
#define HUMMOCK_SPACE_OWNER 0
#define HUMMOCK_SPACE_SPIN 1
#define HUMMOCK_SPACE_INHERIT 2

/* Policies. DENSE wastes little; in the project's tests the first refusal came at 93 to 99 % occupancy, with
 * an owner's cache at 88 to 99 %. PROVEN rounds blocks up to powers of two and never refuses in a space of
 * hummock_space_required_size. */
#define HUMMOCK_SPACE_DENSE 0
#define HUMMOCK_SPACE_PROVEN 1

/* The properties that a space has: bits of `achieved`. */
#define HUMMOCK_SPACE_POPULATED 1u  /* every page of the initial size has its memory */
#define HUMMOCK_SPACE_LOCKED 2u     /* and stays in memory */
#define HUMMOCK_SPACE_HUGE_PAGES 4u /* all of it is on huge pages, as the system says */
#define HUMMOCK_SPACE_NO_FORK 8u    /* children of a fork do not get it, and the parent never faults for it */
#define HUMMOCK_SPACE_SHARED 16u    /* other processes can attach it */

/* Zero is a good default for every field but `size` and `initial`. */
typedef struct hummock_space_options {
  size_t size;            /* in: sizeof(hummock_space_options_t) of the caller */
  const char* name;       /* shown by the monitor, cut to 31 bytes; with `shared`: see there. Or NULL */
  size_t initial;         /* bytes of the space, its own records included; rounded up to pages */
  size_t expand;          /* bytes by which it expands by itself when it is short; 0: never */
  size_t maximum;         /* it never expands beyond; 0: `initial`. At most 512 GiB */
  uint32_t reserve;       /* HUMMOCK_SPACE_AT_START or _AT_FIRST */
  uint32_t populate;      /* OFF, TRY, REQUIRE: give every page its memory when it is taken */
  uint32_t lock;          /* OFF, TRY, REQUIRE: keep it in memory (mlock); implies populate */
  uint32_t huge_pages;    /* OFF, TRY, REQUIRE: the system's reserved ones, else transparent ones */
  uint32_t no_fork;       /* OFF, TRY, REQUIRE */
  uint32_t zero;          /* 1: malloc, memalign and realloc hand out zeros */
  uint32_t threads;       /* HUMMOCK_SPACE_OWNER, _SPIN, _INHERIT */
  uint32_t policy;        /* HUMMOCK_SPACE_DENSE, _PROVEN */
  uint32_t cache_blocks;  /* blocks that a thread keeps at hand per size, at most 256, OWNER 1024; 0: none */
  uint32_t cache_step;    /* sizes are rounded up to multiples of it; a power of two ≥ 16; 0: 32 */
  uint32_t cache_largest; /* largest size kept; at most 64 × cache_step, OWNER 256 KiB; 0: 1024, OWNER 4096 */
  uint32_t shared;        /* 1: in shared memory under `name` ("/name"), or in a descriptor without one */
  void* memory;           /* the caller's, aligned to 64, `initial` bytes; NULL: the system's */
} hummock_space_options_t;

/* Creates a space. On failure returns NULL and sets errno: EINVAL for options that contradict each other (a
 * cache with PROVEN; `shared` without INHERIT, or with a cache or no_fork; `memory` with a larger `maximum`,
 * or where huge_pages or no_fork is required) or a space too small for its own records; ENOMEM; or the
 * system's error when it cannot provide a required property. `achieved` (or NULL) receives the
 * HUMMOCK_SPACE_… bits of the properties that the space really has. With _AT_FIRST these are the ones it has
 * so far, and the first allocation fails instead. Cost: system calls; with populate a page fault for each
 * page. */
HUMMOCK_EXPORT HUMMOCK_NODISCARD hummock_space_t* hummock_space_create(const hummock_space_options_t* options,
                                                                       uint32_t* achieved) HUMMOCK_NOEXCEPT;

/* Destroys the space and its blocks, and returns its memory unless it is the caller's own. No thread may use
 * the space during the call or later; threads that have a cache in it must have ended. A shared space ends
 * for this process; the process that created it also removes its name. NULL does nothing. The end of the
 * process destroys what spaces are left, but leaves the names of shared ones. */
HUMMOCK_EXPORT void hummock_space_destroy(hummock_space_t* space) HUMMOCK_NOEXCEPT;

/* ---- Blocks ----------------------------------------------------------------------------------- */

/* Returns a block of at least `size` bytes, aligned to 16, or NULL + ENOMEM when none fits. Size 0 counts
 * as 1. */
HUMMOCK_EXPORT HUMMOCK_MALLOC HUMMOCK_ALLOC_SIZE(2) void* hummock_space_malloc(hummock_space_t* space,
                                                                               size_t size) HUMMOCK_NOEXCEPT;
/* malloc that zeroes the block if `zero` is 1 and does not if it is 0, whatever the space's option says. */
HUMMOCK_EXPORT HUMMOCK_MALLOC HUMMOCK_ALLOC_SIZE(2) void* hummock_space_malloc_zero(
    hummock_space_t* space, size_t size, int zero) HUMMOCK_NOEXCEPT;
/* `count` × `size` zero bytes; NULL + ENOMEM also when the product overflows. */
HUMMOCK_EXPORT HUMMOCK_MALLOC HUMMOCK_ALLOC_SIZE(2,
                                                 3) void* hummock_space_calloc(hummock_space_t* space,
                                                                               size_t count,
                                                                               size_t size) HUMMOCK_NOEXCEPT;
/* `alignment`: a power of two (at most 4096 in a shared space), else NULL + EINVAL. */
HUMMOCK_EXPORT HUMMOCK_MALLOC HUMMOCK_ALLOC_SIZE(3)
    HUMMOCK_ALLOC_ALIGN(2) void* hummock_space_memalign(hummock_space_t* space, size_t alignment,
                                                        size_t size) HUMMOCK_NOEXCEPT;
/* As realloc: a NULL block is malloc, size 0 frees and returns NULL, on failure the block is untouched. A
 * block grows in place if the memory behind it is free; what it has room for is never refused. A block from
 * memalign keeps its alignment, up to 256 KiB. */
HUMMOCK_EXPORT HUMMOCK_NODISCARD HUMMOCK_ALLOC_SIZE(3) void* hummock_space_realloc(
    hummock_space_t* space, void* block, size_t size) HUMMOCK_NOEXCEPT;
/* Frees `block`; NULL does nothing. Leaves errno as it is. */
HUMMOCK_EXPORT void hummock_space_free(hummock_space_t* space, void* block) HUMMOCK_NOEXCEPT;
/* The usable size of a live block; 0 for NULL. Takes no lock. */
HUMMOCK_EXPORT size_t hummock_space_usable_size(hummock_space_t* space, const void* block) HUMMOCK_NOEXCEPT;
/* 1 when `address` lies among the blocks of the space, live or free. Takes no lock. */
HUMMOCK_EXPORT int hummock_space_contains(const hummock_space_t* space, const void* address) HUMMOCK_NOEXCEPT;

/* ---- Size, owner, caches ---------------------------------------------------------------------- */

/* How large a PROVEN space must be (its `initial`) to refuse no request, as long as every request is of
 * `smallest` … `largest` bytes (for aligned ones: size + alignment) and the live ones add up to at most
 * `max_live`. 0 when no space is large enough, smallest > largest, or largest > max_live. No side effects. */
HUMMOCK_EXPORT size_t hummock_space_required_size(size_t max_live, size_t largest,
                                                  size_t smallest) HUMMOCK_NOEXCEPT;

/* Expands the space by `bytes` (rounded up to pages), at most to its maximum, with the properties it has.
 * Returns 0, ENOMEM, or the system's error; the space is then as it was. Cost: system calls. */
HUMMOCK_EXPORT int hummock_space_expand(hummock_space_t* space, size_t bytes) HUMMOCK_NOEXCEPT;
/* Returns up to `bytes` (rounded down to pages) of the free memory at the end of the space to the system,
 * never below the initial size. The result says how many bytes. Of a shared space they stay in memory until
 * all processes have destroyed it. */
HUMMOCK_EXPORT size_t hummock_space_shrink(hummock_space_t* space, size_t bytes) HUMMOCK_NOEXCEPT;
/* Returns the memory of whole free pages to the system; the space keeps its size, and later use takes page
 * faults. The result says how many bytes; it is 0 for a space that is locked, on huge pages, shared, or in
 * the caller's memory. Walks all blocks. */
HUMMOCK_EXPORT size_t hummock_space_trim(hummock_space_t* space) HUMMOCK_NOEXCEPT;

/* OWNER mode: makes the calling thread the owner. The owner before must have stopped using the space. Returns
 * 0, or EINVAL in another mode. */
HUMMOCK_EXPORT int hummock_space_own(hummock_space_t* space) HUMMOCK_NOEXCEPT;
/* Puts the blocks in the calling thread's cache back into the space, as the end of the thread does. */
HUMMOCK_EXPORT void hummock_space_flush(hummock_space_t* space) HUMMOCK_NOEXCEPT;

/* ---- What a space holds ----------------------------------------------------------------------- */

typedef struct hummock_space_stats {
  size_t size;              /* in: sizeof(hummock_space_stats_t) of the caller */
  size_t bytes;             /* the space now, = free + used + overhead */
  size_t free;              /* = pool_free + cache_free */
  size_t used;              /* live blocks with headers, = pool_used + cache_used */
  size_t overhead;          /* the space's own records */
  size_t peak;              /* highest pool_used + what caches held */
  size_t initial;           /* shrink stops here */
  size_t maximum;           /* expand stops here */
  size_t expand;            /* bytes of an automatic expansion; 0: off */
  size_t largest_free;      /* a free range at least so long exists; none is 1/64 longer */
  size_t free_ranges;       /* number of free ranges */
  size_t pool_free;         /* free and in no cache */
  size_t pool_used;         /* live blocks that no cache gave out */
  size_t cache_free;        /* free, in caches */
  size_t cache_free_blocks; /* number of blocks in caches */
  size_t cache_used;        /* live blocks that caches gave out; of an OWNER's cache 0, they are the pool's */
  size_t live_blocks;       /* number of live blocks, including those in caches */
  size_t allocations;       /* blocks handed out by the pool since creation */
  size_t failures;          /* requests refused */
  size_t largest_request;   /* largest block asked for, with its header */
  size_t largest_refused;   /* largest block refused, with its header */
  size_t expansions;        /* automatic ones and calls of expand */
  size_t recoveries;        /* how often a process died inside the shared space and the next repaired it */
  uint32_t achieved;        /* HUMMOCK_SPACE_… bits */
  uint32_t threads;         /* the mode */
  uint32_t policy;
  uint32_t broken; /* 1: a process died and left headers broken; every request fails */
  char name[32];
} hummock_space_stats_t;

/* Fills `out`, as far as its `size` says. Returns 0, or EINVAL. Cost: it adds up the threads' caches, or the
 * lists of the owner's. Exact when no other thread is inside the space; in OWNER mode, exact for the owner.
 */
HUMMOCK_EXPORT int hummock_space_stats(hummock_space_t* space, hummock_space_stats_t* out) HUMMOCK_NOEXCEPT;

/* Calls visit(context, address, size, live) for every block and free range in order of address, until it
 * returns 0. For a block, `address` is the program's pointer and `size` its usable size; blocks in caches
 * count as live. `visit` must not use the space. Returns 0, EPERM, or EIO when the space's records contradict
 * each other. Holds the lock all the while. Cost: a step for each block. */
HUMMOCK_EXPORT int hummock_space_walk(hummock_space_t* space,
                                      int (*visit)(void* context, void* address, size_t size, int live),
                                      void* context) HUMMOCK_NOEXCEPT;

/* ---- Shared spaces ---------------------------------------------------------------------------- */

/* Opens a space that another process created with `shared`, by its name, or by a descriptor that was
 * inherited or sent. It may have another address here, so pass offsets. Each use takes a robust lock: when a
 * process dies inside, the next one repairs the space, and the dead one's blocks stay live. On failure
 * returns NULL with the system's errno, or EINVAL when that memory is not a space of this version. */
HUMMOCK_EXPORT HUMMOCK_NODISCARD hummock_space_t* hummock_space_open(const char* name) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT HUMMOCK_NODISCARD hummock_space_t* hummock_space_attach(int descriptor) HUMMOCK_NOEXCEPT;
/* The descriptor of a shared space, -1 for another. hummock_space_destroy closes it. */
HUMMOCK_EXPORT int hummock_space_descriptor(const hummock_space_t* space) HUMMOCK_NOEXCEPT;
/* Offsets name the same place in every process. 0 stands for NULL. */
HUMMOCK_EXPORT size_t hummock_space_offset(const hummock_space_t* space, const void* block) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void* hummock_space_pointer(const hummock_space_t* space, size_t offset) HUMMOCK_NOEXCEPT;
/* The root is an offset by which processes find all else. Any of them may set and read it. 0 at first. */
HUMMOCK_EXPORT void hummock_space_set_root(hummock_space_t* space, size_t offset) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT size_t hummock_space_root(const hummock_space_t* space) HUMMOCK_NOEXCEPT;

/* ---- The process's own spaces ------------------------------------------------------------------ */

#define HUMMOCK_SPACE_INTERNAL 0
#define HUMMOCK_SPACE_EXTERNAL 1

/* INTERNAL holds the records of all spaces of this process; it exists once a space was created. EXTERNAL
 * serves the process's malloc family when the option space_initial is set (see hummock(7)); malloc and free
 * own its blocks. NULL when there is none. Call only stats, walk, contains, expand, shrink and trim on these.
 */
HUMMOCK_EXPORT hummock_space_t* hummock_space_of_process(int which) HUMMOCK_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* HUMMOCK_SPACE_H */
