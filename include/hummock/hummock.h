/* Hummock: a memory allocator for multi-core machines. The C interface.
 *
 * Unless it says otherwise, every function here may be called from any thread at any time once the library
 * is mapped: before main, in constructors, in exit handlers. Like malloc, none is async-signal-safe. Sizes
 * and alignments are in bytes.
 *
 * Words: a *block* is the memory that a call returns. Its *usable size* is the room it really has. A block is
 * *live* from the call that returns it to the call that frees it.
 *
 * Errors: a request that Hummock cannot serve returns NULL with errno = ENOMEM. Where POSIX or C23 let a
 * function fail for a bad argument, it returns EINVAL as they say. For an invalid pointer (freed twice, not
 * ours, inside a block) Hummock prints one line on standard error and aborts the process; in checked mode,
 * and for a guarded block, lines with stacks follow it.
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

/* On Windows only the library defines it; a program imports the functions without it. */
#if !defined(_WIN32)
#define HUMMOCK_EXPORT __attribute__((visibility("default")))
#elif !defined(HUMMOCK_EXPORT)
#define HUMMOCK_EXPORT
#endif

/* Attributes for compilers. HUMMOCK_MALLOC: the result is a new block, and ignoring it is a mistake.
 * HUMMOCK_ALLOC_SIZE and _ALIGN name the arguments with its size and alignment. A compiler then takes the
 * size asked for as the block's size: with _FORTIFY_SOURCE do not write beyond it, even where
 * hummock_usable_size reports more. */
#if defined(__GNUC__)
#define HUMMOCK_NODISCARD __attribute__((warn_unused_result))
#define HUMMOCK_MALLOC __attribute__((malloc, warn_unused_result))
#define HUMMOCK_ALLOC_SIZE(...) __attribute__((alloc_size(__VA_ARGS__)))
#define HUMMOCK_ALLOC_ALIGN(argument) __attribute__((alloc_align(argument)))
#define HUMMOCK_RETURNS_NONNULL __attribute__((returns_nonnull))
#else
#define HUMMOCK_NODISCARD
#define HUMMOCK_MALLOC
#define HUMMOCK_ALLOC_SIZE(...)
#define HUMMOCK_ALLOC_ALIGN(argument)
#define HUMMOCK_RETURNS_NONNULL
#endif

/* ---- The malloc family ------------------------------------------------------------------------ */

/* Returns a block of at least `size` bytes, aligned for any C type (16), or NULL + ENOMEM. Size 0 returns a
 * unique block that may be freed (as in glibc). Sizes above PTRDIFF_MAX fail (C23). The contents are
 * indeterminate. Cost: 15 instructions when the thread's bin has a block. */
HUMMOCK_EXPORT HUMMOCK_MALLOC HUMMOCK_ALLOC_SIZE(1) void* hummock_malloc(size_t size) HUMMOCK_NOEXCEPT;

/* Frees `block`; NULL does nothing. Any thread may free any block. Leaves errno as it is (POSIX 2024).
 * Cost: 25 instructions in the thread that owns the block's slab. */
HUMMOCK_EXPORT void hummock_free(void* block) HUMMOCK_NOEXCEPT;

/* Returns `count` × `size` bytes, all zero, or NULL + ENOMEM when the product overflows or memory is short.
 * Does not clear memory that is fresh from the system. */
HUMMOCK_EXPORT HUMMOCK_MALLOC HUMMOCK_ALLOC_SIZE(1, 2) void* hummock_calloc(size_t count,
                                                                            size_t size) HUMMOCK_NOEXCEPT;

/* Resizes `block` to `size`, moving it if needed; the first min(old, new) bytes keep their contents. With a
 * NULL block it is malloc(size). With size 0 it frees the block and returns NULL (as in glibc). On failure it
 * returns NULL + ENOMEM and leaves the block untouched. A block cut to less than four fifths of its usable
 * size moves to a smaller one, so shrinking returns memory; one cut to 8 bytes or less is then only aligned
 * to 8. Where there is no memory to move to, it stays as it is, so shrinking does not fail (except in checked
 * mode). Large blocks grow in place or by remapping; those of a first-class heap in place, or they move. */
HUMMOCK_EXPORT HUMMOCK_NODISCARD HUMMOCK_ALLOC_SIZE(2) void* hummock_realloc(void* block,
                                                                             size_t size) HUMMOCK_NOEXCEPT;

/* realloc(block, count × size). On overflow: NULL + ENOMEM, the block is untouched (POSIX 2024). */
HUMMOCK_EXPORT HUMMOCK_NODISCARD HUMMOCK_ALLOC_SIZE(2, 3) void* hummock_reallocarray(
    void* block, size_t count, size_t size) HUMMOCK_NOEXCEPT;

/* C23 aligned_alloc: `alignment` must be a power of two, else NULL + EINVAL; `size` need not be a
 * multiple of it. NULL + ENOMEM when alignment + size overflows. */
HUMMOCK_EXPORT HUMMOCK_MALLOC HUMMOCK_ALLOC_SIZE(2)
    HUMMOCK_ALLOC_ALIGN(1) void* hummock_aligned_alloc(size_t alignment, size_t size) HUMMOCK_NOEXCEPT;

/* As in POSIX: `alignment` must be a power of two and a multiple of sizeof(void*), else EINVAL; ENOMEM when
 * memory is short. Returns the error, and sets errno to it as glibc does. On failure *out is untouched. */
HUMMOCK_EXPORT HUMMOCK_NODISCARD int hummock_posix_memalign(void** out, size_t alignment,
                                                            size_t size) HUMMOCK_NOEXCEPT;

/* As in glibc: rounds an alignment that is not a power of two up to the next one. */
HUMMOCK_EXPORT HUMMOCK_MALLOC HUMMOCK_ALLOC_SIZE(2) void* hummock_memalign(size_t alignment,
                                                                           size_t size) HUMMOCK_NOEXCEPT;

/* Page-aligned blocks; pvalloc also rounds the size up to whole pages. The page size is the system's. */
HUMMOCK_EXPORT HUMMOCK_MALLOC HUMMOCK_ALLOC_SIZE(1) void* hummock_valloc(size_t size) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT HUMMOCK_MALLOC void* hummock_pvalloc(size_t size) HUMMOCK_NOEXCEPT;

/* As in C23: free, with the size (and alignment) that the program asked for. A size that it cannot have asked
 * for is misuse, and is reported. NULL does nothing. */
HUMMOCK_EXPORT void hummock_free_sized(void* block, size_t size) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT void hummock_free_aligned_sized(void* block, size_t alignment, size_t size) HUMMOCK_NOEXCEPT;

/* malloc_zero clears the *whole usable size*. realloc_zero then keeps every byte beyond the old contents
 * zero, if the block came from one of these two (or is NULL) and the program wrote only inside the sizes it
 * asked for. */
HUMMOCK_EXPORT HUMMOCK_MALLOC HUMMOCK_ALLOC_SIZE(1) void* hummock_malloc_zero(size_t size) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT HUMMOCK_NODISCARD HUMMOCK_ALLOC_SIZE(2) void* hummock_realloc_zero(void* block, size_t size)
    HUMMOCK_NOEXCEPT;

/* The usable size of a live block; 0 for NULL. In checked mode, and for a guarded block (option `guards`), it
 * is the size asked for. O(1). */
HUMMOCK_EXPORT size_t hummock_usable_size(const void* block) HUMMOCK_NOEXCEPT;

/* The least usable size that malloc(size) would return; 0 when no block can be that large. A block of 4 KiB
 * to 64 KiB may have up to a quarter more than `size`, a larger one up to 64 KiB more. A guarded block has
 * exactly `size`. In checked mode, and where a space serves malloc, the answer is `size`. Has no side
 * effects. */
HUMMOCK_EXPORT size_t hummock_good_size(size_t size) HUMMOCK_NOEXCEPT;

/* Returns free memory of all threads to the system, except about `keep` bytes. Returns 1 when it released
 * something, else 0 (as glibc's malloc_trim). Cost: one system call for each run of dirty pages. */
HUMMOCK_EXPORT int hummock_trim(size_t keep) HUMMOCK_NOEXCEPT;

/* ---- First-class heaps ------------------------------------------------------------------------ */

/* A heap is a set of blocks that can be freed together. Any thread may call its functions (each heap has one
 * lock). hummock_free, hummock_realloc and hummock_usable_size also take its blocks; realloc keeps a block in
 * its heap. After a fork the child's copy works. */
typedef struct hummock_heap hummock_heap_t;

/* What a heap holds now, in bytes; see hummock_heap_stats. In checked mode a freed block counts as live until
 * it leaves the quarantine, together with its canaries and records. */
typedef struct hummock_heap_stats {
  size_t size;         /* in: sizeof(hummock_heap_stats_t) of the caller */
  size_t live_bytes;   /* usable size of live blocks */
  size_t live_blocks;  /* number of live blocks */
  size_t mapped_bytes; /* slabs and large blocks that the heap holds */
  size_t slabs;        /* number of slabs and large blocks */
} hummock_heap_stats_t;

/* Returns a new heap, or NULL + ENOMEM. A heap's record takes 1.4 KiB. */
HUMMOCK_EXPORT HUMMOCK_NODISCARD hummock_heap_t* hummock_heap_create(void) HUMMOCK_NOEXCEPT;
/* As the functions of the same names above, in `heap`; NULL means the calling thread's own heap. */
HUMMOCK_EXPORT HUMMOCK_MALLOC HUMMOCK_ALLOC_SIZE(2) void* hummock_heap_malloc(hummock_heap_t* heap,
                                                                              size_t size) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT HUMMOCK_MALLOC HUMMOCK_ALLOC_SIZE(2,
                                                 3) void* hummock_heap_calloc(hummock_heap_t* heap,
                                                                              size_t count,
                                                                              size_t size) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT HUMMOCK_NODISCARD HUMMOCK_ALLOC_SIZE(3) void* hummock_heap_realloc(
    hummock_heap_t* heap, void* block, size_t size) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT HUMMOCK_MALLOC HUMMOCK_ALLOC_SIZE(3) void* hummock_heap_memalign(hummock_heap_t* heap,
                                                                                size_t alignment,
                                                                                size_t size) HUMMOCK_NOEXCEPT;
/* Frees a block of this heap. A block of another heap is misuse, and is reported. With a NULL heap it is
 * hummock_free. */
HUMMOCK_EXPORT void hummock_heap_free(hummock_heap_t* heap, void* block) HUMMOCK_NOEXCEPT;
/* Frees every block of the heap, and the heap itself. No other thread may use it during the call or later.
 * NULL does nothing. A heap that was destroyed before is reported, while its handle is not a new heap's.
 * Cost: one step for each slab, not for each block. In checked mode it checks each block first, and puts it
 * into quarantine like any freed block. */
HUMMOCK_EXPORT void hummock_heap_destroy(hummock_heap_t* heap) HUMMOCK_NOEXCEPT;
/* Fills `out`, as far as its `size` field says. Returns 0, or EINVAL. */
HUMMOCK_EXPORT int hummock_heap_stats(hummock_heap_t* heap, hummock_heap_stats_t* out) HUMMOCK_NOEXCEPT;

/* ---- Statistics ------------------------------------------------------------------------------- */

#define HUMMOCK_CLASS_COUNT 82

/* One size class: blocks of `block_size` bytes. Index 0 is unused; the last class has blocks of 8 bytes. */
typedef struct hummock_class_stats {
  size_t block_size;
  size_t slabs;       /* slabs of this class */
  size_t live_blocks; /* blocks handed out */
} hummock_class_stats_t;

/* Figures of the whole process, in bytes unless named otherwise. Hummock looks at every slab and stops no
 * thread: they are exact when nothing else runs, else off by what other threads do meanwhile. Of the spaces
 * (space.h) only the one that serves malloc counts: its live blocks in `live`; all of it in `committed`,
 * `peak` and `mapped`; its own records in `metadata`. hummock_space_stats has more. */
typedef struct hummock_stats {
  size_t size;         /* in: sizeof(hummock_stats_t) of the caller */
  size_t live;         /* usable size of live blocks, including blocks cached by other threads */
  size_t committed;    /* slabs and large blocks, which hold the live blocks */
  size_t dirty;        /* free, and not yet returned to the system */
  size_t resident;     /* what the system says the process has in memory; 0 without /proc */
  size_t mapped;       /* address space taken from the system */
  size_t peak;         /* highest committed + dirty so far */
  size_t metadata;     /* the allocator's own records */
  size_t threads;      /* threads with a heap now */
  size_t heaps;        /* hummock_heap_t now */
  size_t large_blocks; /* number of blocks above 64 KiB */
  size_t large_bytes;  /* their usable size */
  size_t purged;       /* bytes returned to the system so far */
  size_t classes;      /* number of entries of `per_class` that are filled */
  hummock_class_stats_t per_class[HUMMOCK_CLASS_COUNT];
  size_t huge_pinned;   /* on reserved huge pages, which no other process can use meanwhile */
  size_t huge_advised;  /* where Hummock asked for transparent huge pages; the kernel may not give them */
  size_t huge_refusals; /* number of requests for huge pages that the system refused */
} hummock_stats_t;

/* Fills `out`, as far as its `size` field says. Returns 0, or EINVAL for NULL or a size of less than two
 * fields. Cost: one step for each slab; call it from a monitor, not from a loop. */
HUMMOCK_EXPORT int hummock_stats(hummock_stats_t* out) HUMMOCK_NOEXCEPT;

/* The same figures and more as JSON: the object that `hummock stats --json` prints. docs/figures.schema.json
 * describes it; its member "version" changes when a member is removed or changes its meaning. Writes at most
 * `room` bytes to `out`, the last of them NUL, and returns the length of the whole text without the NUL: if
 * that is `room` or more, the text was cut. `out` may be NULL if `room` is 0. Returns 0 when there is no
 * memory for the work (some 24 KiB, returned afterwards). Figures may grow between two calls, so leave some
 * room. Allocates no block. Cost: one step for each slab, some hundred microseconds at least. */
HUMMOCK_EXPORT size_t hummock_stats_json(char* out, size_t room) HUMMOCK_NOEXCEPT;

/* ---- The profile ------------------------------------------------------------------------------ */

/* Finds out which places of the program allocated the memory that is live: from start to stop, Hummock
 * samples one block in `bytes` bytes on average. 0: as the option `profile` says (512 KiB); 1: every block.
 * It does not see blocks handed out before, nor those of first-class heaps and spaces. Samples add up over
 * several starts and stops. Any thread may call these while others allocate. They return 0 or an error
 * number: EINVAL for `bytes` above 2^40; EPERM in checked mode, or when a space serves malloc; ENOMEM when
 * there is no memory for the samples (13 MiB of address space, touched as they come), and always on Windows.
 * The child of a fork begins without samples and is not sampled until it calls start itself. Cost while on:
 * some 15 instructions for each malloc and free, and 1,600 for each sample. */
HUMMOCK_EXPORT int hummock_profile_start(size_t bytes) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT int hummock_profile_stop(void) HUMMOCK_NOEXCEPT;

/* Writes the profile to the file `path`, and replaces what was there. It is text that `pprof` reads: for each
 * stack a line with live blocks and bytes, in brackets all that were handed out, and the addresses; then the
 * process's map. The figures are estimates for all blocks, not numbers of samples. Returns 0; ENOENT when the
 * profiler was never started; EINVAL when `path` is NULL; or why the file cannot be written. Allocates no
 * block. */
HUMMOCK_EXPORT int hummock_profile_write(const char* path) HUMMOCK_NOEXCEPT;

/* ---- The library itself ----------------------------------------------------------------------- */

/* 1 when the process's malloc is Hummock's (preloaded or linked); 0 when only the hummock_… functions are. */
HUMMOCK_EXPORT int hummock_is_active(void) HUMMOCK_NOEXCEPT;

/* "1.0.0", in static storage. */
HUMMOCK_EXPORT HUMMOCK_RETURNS_NONNULL const char* hummock_version(void) HUMMOCK_NOEXCEPT;

/* Options by name, as in HUMMOCK_CONF (see hummock(7)). get copies the value as text, always ended by NUL,
 * into `value`, and returns 0, ENOENT for an unknown name, or ERANGE when `room` is too small. set returns 0,
 * ENOENT, EINVAL for a bad value, or EPERM for an option that can only be set at start. */
HUMMOCK_EXPORT int hummock_option_get(const char* name, char* value, size_t room) HUMMOCK_NOEXCEPT;
HUMMOCK_EXPORT int hummock_option_set(const char* name, const char* value) HUMMOCK_NOEXCEPT;

/* Sets a handler for bad pointers, so that the run time of another language can raise its own error. Hummock
 * calls it with the one-line message when a call finds that its pointer is not a live block, before it has
 * changed anything. The handler may leave by longjmp, or as Pascal's exceptions do, but not by a C++
 * exception. If it returns, Hummock prints the message and aborts the process, as without a handler. What
 * Hummock finds later, such as a block freed twice or a broken heap, always aborts. NULL removes the handler.
 * There is one for the whole process. Returns 0, or EPERM in checked mode, whose reports hold more than the
 * message. */
HUMMOCK_EXPORT int hummock_on_bad_pointer(void (*handler)(const char* message)) HUMMOCK_NOEXCEPT;

/* Sets a handler that is called when the process reaches one of its limits (options limit_soft and
 * limit_hard): `which` is one of the two numbers below, `in_use` and `limit` are bytes. For the hard limit
 * the call that fails calls it, before it returns. For the soft limit the call that exceeds it does, or one
 * of the next that leave the fast path: at most once in ten milliseconds, and once if the limit is exceeded
 * when the handler is set. The handler may allocate and free; it delays the call, so keep it short. It is
 * never called within itself, nor for a request that is refused while it runs. NULL removes the handler.
 * There is one for the whole process; any thread may set it. Returns 0. */
#define HUMMOCK_LIMIT_SOFT 1
#define HUMMOCK_LIMIT_HARD 2
typedef void (*hummock_limit_handler)(int which, size_t in_use, size_t limit);
HUMMOCK_EXPORT int hummock_on_limit(hummock_limit_handler handler) HUMMOCK_NOEXCEPT;

/* A program may define this to compile its options in, e.g. "decay_ms:100,checked:on". The environment
 * overrides it. */
extern const char* hummock_conf;

#ifdef __cplusplus
}
#endif

/* Further interfaces of the library. */
#include "observe.h"
#include "proxy.h"
#include "space.h"

#endif /* HUMMOCK_HUMMOCK_H */
