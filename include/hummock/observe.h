/* Hummock: what a program can ask about its own heap: live blocks, sparse slabs, totals by tag, names of
 * heaps, hooks for tools. Included by hummock.h. docs/observe.md says how to use each.
 *
 * Every function may be called from any thread at any time, as those of hummock.h. */
#ifndef HUMMOCK_OBSERVE_H
#define HUMMOCK_OBSERVE_H

#include "hummock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Live blocks ------------------------------------------------------------------------------ */

/* Calls `visit` with the address and usable size of each live block of `heap`, until it returns 0. With NULL
 * it visits all blocks of the process that are in no first-class heap. Returns 0; EINVAL without a visitor;
 * or ENOTSUP in checked mode, when a space serves malloc (use hummock_space_walk), and with NULL on Windows.
 *
 * It is safe beside running threads and stops none of them. It visits a block once that lives from before the
 * call until after it. A block that is allocated, freed or moved meanwhile may be visited or not, so only
 * look into a block that nobody can free. No lock is held while `visit` runs: it may allocate and free. A
 * live block whose first 16 bytes are a copy of a free block's counts as free. Cost: a look at each slab's
 * header and each block; some 15 ms for a million blocks. */
HUMMOCK_EXPORT int hummock_heap_walk(hummock_heap_t* heap,
                                     int (*visit)(void* context, void* block, size_t size),
                                     void* context) HUMMOCK_NOEXCEPT;

/* ---- Sparse slabs ----------------------------------------------------------------------------- */

/* How much of the slab that holds `block` is in use, in percent; blocks in a thread's cache count as in use.
 * 100 for a large block, which has its memory to itself, and for a slab from which blocks are handed out just
 * now, because moving out of it gains nothing. -1 when `block` is not a live block of Hummock's, in checked
 * mode, and when a space serves malloc. O(1). A hint: it may have changed by the time you read it.
 *
 * For active defragmentation: move the blocks of slabs below, say, 60. Allocate the new blocks of some
 * thousand first, copy, then free the old ones together: a block that is freed just before an allocation of
 * its size is what that allocation returns. */
HUMMOCK_EXPORT int hummock_slab_utilisation(const void* block) HUMMOCK_NOEXCEPT;

/* ---- Tags ------------------------------------------------------------------------------------- */

/* Charges what the calling thread allocates from now on to `tag`: a query, a tenant, a part of the program.
 * Any number will do; each thread has its own tag and begins with 0. Returns the tag before.
 *
 * Hummock counts blocks when they leave the slabs for a thread's cache, some hundred bytes to 16 KiB at a
 * time, and each block above 64 KiB. It charges them to the tag that the thread has then, and does not count
 * what is freed and allocated again within the cache. So a total says how much memory the tag has drawn, to
 * the few KiB of a cache. It is not the sum of all mallocs, and frees subtract nothing. Blocks of first-class
 * heaps are not counted: hummock_heap_stats has exact figures of each heap. A process has room for
 * HUMMOCK_TAG_COUNT - 1 tags; all others share the row of HUMMOCK_TAG_OTHERS. Nothing is counted in checked
 * mode or when a space serves malloc. Cost: some 40 instructions; the fast paths cost no more. */
#define HUMMOCK_TAG_COUNT 64
#define HUMMOCK_TAG_OTHERS UINT32_MAX
HUMMOCK_EXPORT uint32_t hummock_tag(uint32_t tag) HUMMOCK_NOEXCEPT;

typedef struct hummock_tag_stats {
  size_t size;     /* in: sizeof(hummock_tag_stats_t) of the caller */
  uint64_t bytes;  /* drawn so far */
  uint64_t blocks; /* number of blocks drawn so far */
} hummock_tag_stats_t;

/* Fills `out`, as far as its `size` says. Returns 0, EINVAL, or ENOENT when no thread ever had the tag or it
 * shares the row of the others. Exact when no thread allocates. */
HUMMOCK_EXPORT int hummock_tag_stats(uint32_t tag, hummock_tag_stats_t* out) HUMMOCK_NOEXCEPT;

/* ---- Names ------------------------------------------------------------------------------------ */

/* Gives the heap a name, which `hummock stats` prints beside its figures. It keeps the first 23 bytes and
 * replaces those that are not printable ASCII by '?'. NULL removes the name. Returns 0, or EINVAL. */
HUMMOCK_EXPORT int hummock_heap_set_name(hummock_heap_t* heap, const char* name) HUMMOCK_NOEXCEPT;

/* ---- Hooks ------------------------------------------------------------------------------------ */

/* The functions of a tool that Hummock calls; each may be NULL. */
typedef struct hummock_hooks {
  size_t size; /* in: sizeof(hummock_hooks_t) of the caller */
  void* context;
  /* When a block is handed out, before the program has it; `size` is the size asked for. */
  void (*allocated)(void* context, void* block, size_t size);
  /* After a realloc that left the block where it is; `before` is `block`. A realloc that moves it calls
   * `allocated` and then `released`. */
  void (*resized)(void* context, void* block, size_t size, void* before);
  /* Before a block is freed: the hook may still look at it. It may turn out not to be a live block, which
   * Hummock only finds afterwards. hummock_heap_destroy does not call it. */
  void (*released)(void* context, void* block);
  /* When memory or address space comes from the system or goes back: `what` is as in the region log
   * (docs/log.md), `address` may be NULL. Hummock may hold locks, so this hook must call neither Hummock nor
   * malloc. */
  void (*mapped)(void* context, const char* what, const void* address, size_t bytes);
} hummock_hooks_t;

/* Installs hooks for the whole process; NULL removes them. `hooks` must never change or go away, because
 * other threads may still use it after it was replaced. Returns 0, EINVAL, or EPERM in checked mode and when
 * a space serves malloc. Without hooks there is no cost.
 *
 * With `allocated`, `resized` or `released`, every call of every thread takes the slow path: a pair of malloc
 * and free takes some 500 instructions, 50 ns, in place of 40. The hooks see a thread's frees from its first
 * allocation after they were installed, which takes a step for each slab of the thread. malloc(0) may call no
 * hook. The first three hooks may allocate and free; they do not see what they allocate and free themselves.
 * They must not throw, longjmp or end the thread. */
HUMMOCK_EXPORT int hummock_set_hooks(const hummock_hooks_t* hooks) HUMMOCK_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* HUMMOCK_OBSERVE_H */
