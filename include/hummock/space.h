/* Deterministic spaces: memory of a fixed extent from which blocks are allocated and freed in a bounded
 * number of instructions, without a system call and without growing unless asked.
 *
 * What is promised after creation, for every size and whatever is allocated and free:
 *   - malloc, free and usable_size execute at most the instructions that docs/spaces.md lists (zeroing
 *     and copying apart, which cost by the byte) and touch a fixed number of cache lines.
 *     With a cache the bounds are others, and a malloc that would be refused takes back what rests there.
 *   - No system call, but for a contended lock (of HUMMOCK_SPACE_SPIN: for a thread that does not run), a
 *     thread's first use of a cache, an automatic expansion where `expand` is not 0, and one where a malloc
 *     that would be refused takes back what rests in other threads' caches.
 *   - When no memory fits: NULL and ENOMEM. Never memory outside the space.
 *   - After free(p) the same thread's next malloc of the same size succeeds, when no other thread
 *     allocates between.
 *
 * Functions are safe from any thread where the thread mode says so, and are not async-signal-safe. Sizes
 * are in bytes. A pointer that is no live block of the space is reported in one line on standard error
 * and the process is aborted. Blocks of a space may only be given to the functions of this header; the
 * exception is the process's external space, below. */
#ifndef HUMMOCK_SPACE_H
#define HUMMOCK_SPACE_H

#include "hummock.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hummock_space hummock_space_t;

/* A property that may be left out, wished for, or required; see hummock_space_options_t. */
#define HUMMOCK_SPACE_OFF 0
#define HUMMOCK_SPACE_TRY 1
#define HUMMOCK_SPACE_REQUIRE 2

/* When memory is taken: at creation, or at the first allocation. */
#define HUMMOCK_SPACE_AT_START 0
#define HUMMOCK_SPACE_AT_FIRST 1

/* Thread modes.
 * OWNER: one thread allocates, without any lock: who created the space, or called hummock_space_own. Any
 *   thread may free: one atomic exchange; the owner takes at most 2 such blocks back at each malloc. What
 *   else another thread calls fails with EPERM. In the child of a fork that another thread made, the copy
 *   of the space must not be used. A cache keeps every size by itself: cache_step must be 0; it also
 *   makes calls for longer blocks shorter where such are freed in the order of their addresses.
 * SPIN: threads take turns in the order they came, spinning. For fewer running threads than processors:
 *   whoever waits for a thread that is not running sleeps after some microseconds, by a system call.
 * INHERIT: a lock that lends the holder the priority of who waits. */
#define HUMMOCK_SPACE_OWNER 0
#define HUMMOCK_SPACE_SPIN 1
#define HUMMOCK_SPACE_INHERIT 2

/* Policies. DENSE: little waste; the first refusal came above 95 % occupancy in the project's tests.
 * PROVEN: blocks are rounded to powers of two; never refuses in a space of hummock_space_required_size. */
#define HUMMOCK_SPACE_DENSE 0
#define HUMMOCK_SPACE_PROVEN 1

/* What a space has: bits of `achieved`. */
#define HUMMOCK_SPACE_POPULATED 1u  /* every page of the initial size has its memory */
#define HUMMOCK_SPACE_LOCKED 2u     /* and stays in memory */
#define HUMMOCK_SPACE_HUGE_PAGES 4u /* all of it stands in huge pages, as the system says */
#define HUMMOCK_SPACE_NO_FORK 8u    /* a child of fork does not get it, the parent never faults for it */
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

/* Makes a space. NULL with errno: EINVAL for options that contradict each other or a space too small for
 * its own records; ENOMEM; or what the system said when a required property is not to be had. `achieved`
 * (or NULL) gets the HUMMOCK_SPACE_… bits of what it really has; with _AT_FIRST, of what it has so far:
 * the first allocation then fails instead. Cost: system calls; with populate a fault for each page. */
HUMMOCK_EXPORT hummock_space_t* hummock_space_create(const hummock_space_options_t* options,
                                                     uint32_t* achieved) HUMMOCK_NOEXCEPT;

/* Ends the space and gives its memory back, the caller's excepted; its blocks are gone. No thread may use
 * it meanwhile or after. In a shared space: for this process; who created it also takes its name away.
 * NULL does nothing. Spaces still there when the process ends go with it. */
HUMMOCK_EXPORT void hummock_space_destroy(hummock_space_t* space) HUMMOCK_NOEXCEPT;

/* ---- Blocks ----------------------------------------------------------------------------------- */

/* A block of at least `size` bytes aligned to 16; NULL + ENOMEM when none fits. Size 0 counts as 1. */
HUMMOCK_EXPORT void* hummock_space_malloc(hummock_space_t* space, size_t size) HUMMOCK_NOEXCEPT;
/* malloc of `size` bytes, zeroed when `zero` is 1 and not when it is 0, whatever the space's option says. */
HUMMOCK_EXPORT void* hummock_space_malloc_zero(hummock_space_t* space, size_t size,
                                               int zero) HUMMOCK_NOEXCEPT;
/* `count` × `size` zero bytes; NULL + ENOMEM also when the product overflows. */
HUMMOCK_EXPORT void* hummock_space_calloc(hummock_space_t* space, size_t count, size_t size) HUMMOCK_NOEXCEPT;
/* `alignment`: a power of two (at most 4096 in a shared space), else NULL + EINVAL. */
HUMMOCK_EXPORT void* hummock_space_memalign(hummock_space_t* space, size_t alignment,
                                            size_t size) HUMMOCK_NOEXCEPT;
/* As realloc: NULL block is malloc, size 0 frees and returns NULL, on failure the block is untouched. In
 * place when what follows is free. A block from memalign keeps its alignment. */
HUMMOCK_EXPORT void* hummock_space_realloc(hummock_space_t* space, void* block, size_t size) HUMMOCK_NOEXCEPT;
/* Ends the life of `block`; NULL does nothing. Keeps errno. */
HUMMOCK_EXPORT void hummock_space_free(hummock_space_t* space, void* block) HUMMOCK_NOEXCEPT;
/* The room of a live block; 0 for NULL. Takes no lock. */
HUMMOCK_EXPORT size_t hummock_space_usable_size(hummock_space_t* space, const void* block) HUMMOCK_NOEXCEPT;
/* 1 when `address` lies among the blocks of the space, live or free. Takes no lock. */
HUMMOCK_EXPORT int hummock_space_contains(const hummock_space_t* space, const void* address) HUMMOCK_NOEXCEPT;

/* ---- Size, owner, caches ---------------------------------------------------------------------- */

/* Bytes of a PROVEN space, used as `initial`, that refuses nothing as long as every request is of
 * `smallest` … `largest` bytes (aligned ones: size + alignment) and those live at once add up to at
 * most `max_live`. 0 when no space is large enough, or smallest > largest or largest > max_live. Pure. */
HUMMOCK_EXPORT size_t hummock_space_required_size(size_t max_live, size_t largest,
                                                  size_t smallest) HUMMOCK_NOEXCEPT;

/* Makes the space `bytes` larger (rounded up to pages), at most to its maximum, with the properties it
 * has. 0, or ENOMEM, or what the system said; the space is then as it was. Cost: system calls. */
HUMMOCK_EXPORT int hummock_space_expand(hummock_space_t* space, size_t bytes) HUMMOCK_NOEXCEPT;
/* Gives up to `bytes` (rounded down to pages) of what is free at its end back, never below the initial
 * size. Returns the bytes given back. */
HUMMOCK_EXPORT size_t hummock_space_shrink(hummock_space_t* space, size_t bytes) HUMMOCK_NOEXCEPT;
/* Gives the memory behind whole free pages back, the size stays: later use takes page faults. Returns the
 * bytes given back; 0 in a locked, huge-page, shared or caller's space. Walks all blocks. */
HUMMOCK_EXPORT size_t hummock_space_trim(hummock_space_t* space) HUMMOCK_NOEXCEPT;

/* OWNER mode: the calling thread owns the space from now on; the owner before must have stopped using it.
 * 0, or EINVAL in another mode. */
HUMMOCK_EXPORT int hummock_space_own(hummock_space_t* space) HUMMOCK_NOEXCEPT;
/* The blocks in the calling thread's cache go back to the space, as they do when the thread ends. */
HUMMOCK_EXPORT void hummock_space_flush(hummock_space_t* space) HUMMOCK_NOEXCEPT;

/* ---- What a space holds ----------------------------------------------------------------------- */

typedef struct hummock_space_stats {
  size_t size;              /* in: sizeof(hummock_space_stats_t) of the caller */
  size_t bytes;             /* the space now, = free + used + overhead */
  size_t free;              /* = pool_free + cache_free */
  size_t used;              /* live blocks with their headers, = pool_used + cache_used */
  size_t overhead;          /* the space's own records */
  size_t peak;              /* highest pool_used + what caches held */
  size_t initial;           /* what shrink goes down to */
  size_t maximum;           /* what expand goes up to */
  size_t expand;            /* bytes of an automatic expansion; 0: off */
  size_t largest_free;      /* a free range at least so long exists; none is 1/64 longer */
  size_t free_ranges;       /* free ranges, their number */
  size_t pool_free;         /* free and in no cache */
  size_t pool_used;         /* live blocks that no cache gave out */
  size_t cache_free;        /* resting in caches */
  size_t cache_free_blocks; /* their number */
  size_t cache_used;        /* live blocks that caches gave out; of an OWNER's cache 0, they are the pool's */
  size_t live_blocks;       /* number of live blocks, those resting in caches included */
  size_t allocations;       /* blocks handed out by the pool since creation */
  size_t failures;          /* requests refused */
  size_t largest_request;   /* largest block asked for, with its header */
  size_t largest_refused;   /* likewise, refused */
  size_t expansions;        /* automatic and asked for */
  size_t recoveries;        /* times a process died inside a shared space and it was repaired */
  uint32_t achieved;        /* HUMMOCK_SPACE_… bits */
  uint32_t threads;         /* the mode */
  uint32_t policy;
  uint32_t broken; /* 1: a process died and left headers broken; every request fails */
  char name[32];
} hummock_space_stats_t;

/* Fills `out` as far as its `size` says. 0, or EINVAL. Sums the threads' caches, or the lists of the owner's.
 * Exact when no other thread is inside the space; in OWNER mode, exact for the owner. */
HUMMOCK_EXPORT int hummock_space_stats(hummock_space_t* space, hummock_space_stats_t* out) HUMMOCK_NOEXCEPT;

/* Calls visit(context, address, size, live) for every block (payload and room; those resting in caches are
 * live) and free range in order of address until it returns 0. `visit` must not use the space. 0, or EIO
 * when the space's records contradict each other, or EPERM. Holds the lock meanwhile: cost by the block. */
HUMMOCK_EXPORT int hummock_space_walk(hummock_space_t* space,
                                      int (*visit)(void* context, void* address, size_t size, int live),
                                      void* context) HUMMOCK_NOEXCEPT;

/* ---- Shared spaces ---------------------------------------------------------------------------- */

/* A space created with `shared` in another process: by its name, or by a descriptor that was inherited or
 * sent. It may lie at another address here: pass offsets. Each use takes a robust lock: when a process
 * dies inside, the next one repairs the space (blocks of the dead stay live). NULL with errno:
 * the system's, or EINVAL when that memory is no space of this version. */
HUMMOCK_EXPORT hummock_space_t* hummock_space_open(const char* name) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT hummock_space_t* hummock_space_attach(int descriptor) HUMMOCK_NOEXCEPT;
/* The descriptor of a shared space; -1 of another. It is closed by hummock_space_destroy. */
HUMMOCK_EXPORT int hummock_space_descriptor(const hummock_space_t* space) HUMMOCK_NOEXCEPT;
/* The same place in every process. 0 and NULL belong together. */
HUMMOCK_EXPORT size_t hummock_space_offset(const hummock_space_t* space, const void* block) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void* hummock_space_pointer(const hummock_space_t* space, size_t offset) HUMMOCK_NOEXCEPT;
/* One word to find the rest by: an offset that any process may set and read. 0 at first. */
HUMMOCK_EXPORT void hummock_space_set_root(hummock_space_t* space, size_t offset) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT size_t hummock_space_root(const hummock_space_t* space) HUMMOCK_NOEXCEPT;

/* ---- The process's own spaces ------------------------------------------------------------------ */

#define HUMMOCK_SPACE_INTERNAL 0
#define HUMMOCK_SPACE_EXTERNAL 1

/* INTERNAL: holds the records of all spaces of this process; it is there once a space was created.
 * EXTERNAL: the one that serves the process's malloc family when the option space_initial is set (see
 * hummock(7)); its blocks belong to malloc and free. Else NULL. Only stats, walk, contains, expand,
 * shrink and trim are for the caller. */
HUMMOCK_EXPORT hummock_space_t* hummock_space_of_process(int which) HUMMOCK_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* HUMMOCK_SPACE_H */
