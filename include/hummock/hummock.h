/* Hummock: a memory allocator for multi-core machines. The C interface.
 *
 * Every function here is safe to call from any thread at any time after the library is mapped
 * (before main, in constructors, in exit handlers), unless it says otherwise. None is
 * async-signal-safe, as malloc is not. Sizes and alignments are in bytes.
 *
 * Words: a *block* is what a call hands out; its *usable size* is the room it really has; a block is
 * *live* from the call that returned it to the call that frees it.
 *
 * Errors: a request that cannot be served returns NULL with errno = ENOMEM; a bad argument of a
 * function that POSIX or C23 lets fail returns EINVAL as that text says. An invalid pointer (freed
 * twice, not ours, interior) is reported in one line on standard error and the process is aborted.
 */
#ifndef HUMMOCK_HUMMOCK_H
#define HUMMOCK_HUMMOCK_H

#include <stddef.h>
#include <stdint.h>

#define HUMMOCK_VERSION_MAJOR 1
#define HUMMOCK_VERSION_MINOR 0
#define HUMMOCK_VERSION_PATCH 0

#ifdef __cplusplus
#define HUMMOCK_NOEXCEPT noexcept
extern "C" {
#else
#define HUMMOCK_NOEXCEPT
#endif

/* On Windows defined by the library itself; a program needs nothing to import functions. */
#if !defined(_WIN32)
#define HUMMOCK_EXPORT __attribute__((visibility("default")))
#elif !defined(HUMMOCK_EXPORT)
#define HUMMOCK_EXPORT
#endif

/* ---- The malloc family ------------------------------------------------------------------------ */

/* Returns a block of at least `size` bytes aligned for any C type (16), NULL + ENOMEM when it cannot.
 * Size 0 gives a unique block that may be freed (glibc). Sizes above PTRDIFF_MAX fail (C23).
 * Contents are indeterminate. Cost: 13 instructions when the thread's bin has a block. */
HUMMOCK_EXPORT void* hummock_malloc(size_t size) HUMMOCK_NOEXCEPT;

/* Ends the life of `block`; NULL does nothing. Any thread may free any block. Keeps errno (POSIX
 * 2024). Cost: 20 instructions for the thread that owns the block's slab. */
HUMMOCK_EXPORT void hummock_free(void* block) HUMMOCK_NOEXCEPT;

/* `count` × `size` bytes, all zero. NULL + ENOMEM when the product overflows or memory is short.
 * Fresh memory from the system is not cleared a second time. */
HUMMOCK_EXPORT void* hummock_calloc(size_t count, size_t size) HUMMOCK_NOEXCEPT;

/* Resizes `block` to `size`, moving it if needed; the first min(old, new) bytes keep their contents.
 * NULL block: malloc(size). Size 0: frees the block and returns NULL (glibc). On failure: NULL +
 * ENOMEM, and the old block is untouched. A block cut to under four fifths of its room is moved to
 * a smaller one, so shrinking gives memory back; one cut to 8 bytes or less is then aligned to 8 only.
 * Large blocks grow in place or by remapping. */
HUMMOCK_EXPORT void* hummock_realloc(void* block, size_t size) HUMMOCK_NOEXCEPT;

/* realloc(block, count × size), NULL + ENOMEM on overflow with the block untouched (POSIX 2024). */
HUMMOCK_EXPORT void* hummock_reallocarray(void* block, size_t count, size_t size) HUMMOCK_NOEXCEPT;

/* C23 aligned_alloc: `alignment` must be a power of two, else NULL + EINVAL; `size` need not be a
 * multiple of it. NULL + ENOMEM when alignment + size overflows. */
HUMMOCK_EXPORT void* hummock_aligned_alloc(size_t alignment, size_t size) HUMMOCK_NOEXCEPT;

/* POSIX: alignment a power of two multiple of sizeof(void*), else EINVAL; ENOMEM when short. Returns
 * the error, leaves errno and, on failure, *out untouched. */
HUMMOCK_EXPORT int hummock_posix_memalign(void** out, size_t alignment, size_t size) HUMMOCK_NOEXCEPT;

/* glibc memalign: an alignment that is no power of two is rounded up to the next one. */
HUMMOCK_EXPORT void* hummock_memalign(size_t alignment, size_t size) HUMMOCK_NOEXCEPT;

/* Page-aligned; pvalloc also rounds the size up to whole pages. Page size is read at run time. */
HUMMOCK_EXPORT void* hummock_valloc(size_t size) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void* hummock_pvalloc(size_t size) HUMMOCK_NOEXCEPT;

/* C23: free with the size (and alignment) the block was asked with. A size the block cannot have
 * been asked with is reported as misuse; NULL does nothing. */
HUMMOCK_EXPORT void hummock_free_sized(void* block, size_t size) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void hummock_free_aligned_sized(void* block, size_t alignment, size_t size) HUMMOCK_NOEXCEPT;

/* malloc whose *whole usable size* is zero; pair it with hummock_realloc_zero, which keeps every byte
 * beyond the old contents zero when the block came from one of these two (or is NULL) and the program
 * wrote only inside the sizes it asked for. */
HUMMOCK_EXPORT void* hummock_malloc_zero(size_t size) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void* hummock_realloc_zero(void* block, size_t size) HUMMOCK_NOEXCEPT;

/* The usable size of a live block; 0 for NULL. In checked mode, and of a guarded block (option `guards`): the
 * size asked for. O(1). */
HUMMOCK_EXPORT size_t hummock_usable_size(const void* block) HUMMOCK_NOEXCEPT;

/* The usable size that malloc(size) would give at least (a block of 4 KiB or more may have up to a quarter
 * more than `size`; a guarded one, or any in checked mode, has just `size`); 0 when no block can be that
 * large. Pure. */
HUMMOCK_EXPORT size_t hummock_good_size(size_t size) HUMMOCK_NOEXCEPT;

/* Gives free memory back to the system, from any thread, all but about `keep` bytes. Returns 1 when
 * something was released, else 0 (glibc malloc_trim). Cost: one system call a dirty run of pages. */
HUMMOCK_EXPORT int hummock_trim(size_t keep) HUMMOCK_NOEXCEPT;

/* ---- First-class heaps ------------------------------------------------------------------------ */

/* A heap is a set of blocks that can be ended together. All its functions may be called from any
 * thread (one lock a heap). Its blocks may also be passed to hummock_free, hummock_realloc and
 * hummock_usable_size (realloc keeps the block in its heap). After a fork the child's copy works. */
typedef struct hummock_heap hummock_heap_t;

/* What a heap holds now, in bytes; see hummock_heap_stats. In checked mode a freed block counts as live until
 * it leaves the quarantine, and with all that stands around it. */
typedef struct hummock_heap_stats {
  size_t size;         /* in: sizeof(hummock_heap_stats_t) of the caller */
  size_t live_bytes;   /* room of live blocks */
  size_t live_blocks;  /* their number */
  size_t mapped_bytes; /* slabs and large blocks the heap holds */
  size_t slabs;        /* slabs and large blocks, their number */
} hummock_heap_stats_t;

/* NULL + ENOMEM when memory is short. Costs about 2 KiB until used. */
HUMMOCK_EXPORT hummock_heap_t* hummock_heap_create(void) HUMMOCK_NOEXCEPT;
/* As the functions of the same name above, in `heap`. `heap` NULL means the calling thread's own. */
HUMMOCK_EXPORT void* hummock_heap_malloc(hummock_heap_t* heap, size_t size) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void* hummock_heap_calloc(hummock_heap_t* heap, size_t count, size_t size) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void* hummock_heap_realloc(hummock_heap_t* heap, void* block, size_t size) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void* hummock_heap_memalign(hummock_heap_t* heap, size_t alignment,
                                           size_t size) HUMMOCK_NOEXCEPT;
/* Frees a block of this heap; a block of another heap is reported as misuse. */
HUMMOCK_EXPORT void hummock_heap_free(hummock_heap_t* heap, void* block) HUMMOCK_NOEXCEPT;
/* Frees every block of the heap and the heap itself. No other thread may use it meanwhile or after.
 * NULL does nothing. Cost: one step a slab, not a block. */
HUMMOCK_EXPORT void hummock_heap_destroy(hummock_heap_t* heap) HUMMOCK_NOEXCEPT;
/* Fills `out` (its `size` field says how much of it the caller knows). 0, or EINVAL. */
HUMMOCK_EXPORT int hummock_heap_stats(hummock_heap_t* heap, hummock_heap_stats_t* out) HUMMOCK_NOEXCEPT;

/* ---- Statistics ------------------------------------------------------------------------------- */

#define HUMMOCK_CLASS_COUNT 82

/* One size class; blocks of `block_size` bytes. Index 0 is not used; the last is 8 bytes. */
typedef struct hummock_class_stats {
  size_t block_size;
  size_t slabs;       /* slabs of this class */
  size_t live_blocks; /* blocks handed out */
} hummock_class_stats_t;

/* Figures of the whole process, in bytes unless named otherwise. They are gathered by looking at every
 * slab, without stopping other threads: exact when nothing else runs, else within the traffic. Of the spaces
 * (space.h) only the one that serves malloc counts: its live blocks in `live`, all of it in `committed`,
 * `peak`, `mapped` and, its own records, `metadata`; hummock_space_stats tells more of it. */
typedef struct hummock_stats {
  size_t size;         /* in: sizeof(hummock_stats_t) of the caller */
  size_t live;         /* room of live blocks, those resting in other threads' caches included */
  size_t committed;    /* slabs and large blocks: what live blocks stand in */
  size_t dirty;        /* free, not yet given back to the system */
  size_t resident;     /* what the system says the process has in memory; 0 without /proc */
  size_t mapped;       /* address space taken from the system */
  size_t peak;         /* highest committed + dirty so far */
  size_t metadata;     /* the allocator's own records */
  size_t threads;      /* threads with a heap now */
  size_t heaps;        /* hummock_heap_t now */
  size_t large_blocks; /* blocks above 64 KiB, their number */
  size_t large_bytes;  /* and their room */
  size_t purged;       /* bytes given back so far */
  size_t classes;      /* entries of `per_class` filled */
  hummock_class_stats_t per_class[HUMMOCK_CLASS_COUNT];
  size_t huge_pinned;   /* on huge pages that the system had set aside: nobody else can have them */
  size_t huge_advised;  /* where transparent huge pages were asked for; the kernel gives them or not */
  size_t huge_refusals; /* requests for huge pages that were refused, their number */
} hummock_stats_t;

/* Fills `out` as far as its `size` field says the caller knows it. 0, or EINVAL for NULL or a size of
 * less than two fields. Cost: one step a slab; call it from a monitor, not from a loop. */
HUMMOCK_EXPORT int hummock_stats(hummock_stats_t* out) HUMMOCK_NOEXCEPT;

/* The same figures and more, as JSON: the object that `hummock stats --json` prints, which
 * docs/figures.schema.json describes; its member "version" changes when one is removed or changes its
 * meaning. Writes at most `room` bytes to `out`, the last of them NUL, and returns the length of the whole
 * text without the NUL: it was cut if that is not less than `room`. `out` may be NULL where `room` is 0. 0:
 * there is no memory for the work (some 24 KiB, given back). What is live may change between two calls, so
 * leave some room. Takes no block of the heap. Cost: one step a slab, some hundred microseconds at least. */
HUMMOCK_EXPORT size_t hummock_stats_json(char* out, size_t room) HUMMOCK_NOEXCEPT;

/* ---- The profile ------------------------------------------------------------------------------ */

/* Which places of the program asked for the memory that is live now: one block in `bytes` bytes, on average,
 * is sampled from now on, until stop. 0: as the option profile says (512 KiB); 1: every block. What was
 * handed out before is not seen, nor blocks of first-class heaps and spaces. Samples add up over starts and
 * stops. Each returns 0 or an error number, and may be called by any thread while others allocate:
 * EINVAL: `bytes` above 2^40; EPERM: in checked mode, or where a space serves malloc; ENOMEM: no memory for
 * the samples (13 MiB of address space, touched as they come), always on Windows. The child of a fork begins
 * with none and is not sampled until it starts itself. Cost while on: some 20 instructions a malloc and 1,600
 * a sample. */
HUMMOCK_EXPORT int hummock_profile_start(size_t bytes) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT int hummock_profile_stop(void) HUMMOCK_NOEXCEPT;

/* Writes the profile to a file, which is replaced: text that `pprof` reads (its heap profile: a line a stack,
 * live blocks and bytes, in brackets all that were handed out, then the addresses; then the process's map).
 * Figures are estimates for all blocks, not numbers of samples. 0; ENOENT: the profiler was never started;
 * EINVAL: `path` is NULL; or why the file cannot be written. Takes no block of the heap. */
HUMMOCK_EXPORT int hummock_profile_write(const char* path) HUMMOCK_NOEXCEPT;

/* ---- The library itself ----------------------------------------------------------------------- */

/* 1 when the process's malloc is this library's (preloaded or linked), 0 when only hummock_… are. */
HUMMOCK_EXPORT int hummock_is_active(void) HUMMOCK_NOEXCEPT;

/* "1.0.0". Static storage. */
HUMMOCK_EXPORT const char* hummock_version(void) HUMMOCK_NOEXCEPT;

/* Options by name, as in HUMMOCK_CONF (see hummock(7)). get copies the value's text, always ended by
 * NUL, into `value`; returns 0, ENOENT for an unknown name, ERANGE when `room` is too small. set
 * returns 0, ENOENT, EINVAL for a bad value, EPERM for an option that can only be given at start. */
HUMMOCK_EXPORT int hummock_option_get(const char* name, char* value, size_t room) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT int hummock_option_set(const char* name, const char* value) HUMMOCK_NOEXCEPT;

/* Calls `handler` with the one-line message when a call of any family is given a pointer that it finds to
 * be no live block before it has changed anything: the run time of another language raises its own error
 * there. The handler may leave by longjmp, or as Pascal's exceptions do, not by a C++ exception; when it
 * returns, the message is printed and the process aborted, as without a handler. NULL takes it away. What
 * is found later, a block freed twice or a broken heap, aborts as ever. Sets for the whole process; returns
 * 0, or EPERM in checked mode, whose reports are more than the message. */
HUMMOCK_EXPORT int hummock_on_bad_pointer(void (*handler)(const char* message)) HUMMOCK_NOEXCEPT;

/* Calls `handler` when a limit is reached that the options limit_soft or limit_hard set: `which` is one of
 * the two numbers, `in_use` and `limit` are bytes. Of the hard one in the call that fails, before it returns;
 * of the soft one in the call that goes over it or one of the next that leave the fast path, at most once in
 * ten milliseconds, and once if it is over when the handler is set. The handler may free and allocate; it
 * holds up the call, so it should be short. It is never called within itself, nor for what is refused while
 * it runs. NULL takes it away. Sets for the whole process, from any thread; returns 0. */
#define HUMMOCK_LIMIT_SOFT 1
#define HUMMOCK_LIMIT_HARD 2
typedef void (*hummock_limit_handler)(int which, size_t in_use, size_t limit);
HUMMOCK_EXPORT int hummock_on_limit(hummock_limit_handler handler) HUMMOCK_NOEXCEPT;

/* A program may define this to compile its options in, e.g. "decay_ms:100,checked:on". The
 * environment goes over it. */
extern const char* hummock_conf;

#ifdef __cplusplus
}
#endif

/* Further interfaces of the library. */
#include "observe.h"
#include "proxy.h"
#include "space.h"

#endif /* HUMMOCK_HUMMOCK_H */
