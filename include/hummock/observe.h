/* Hummock: looking into the heap from inside the program: live blocks, sparse slabs, totals by tag, names of
 * heaps, hooks for tools. Included by hummock.h. docs/observe.md tells how each is used.
 *
 * Every function may be called from any thread at any time, as those of hummock.h. */
#ifndef HUMMOCK_OBSERVE_H
#define HUMMOCK_OBSERVE_H

#include "hummock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Live blocks ------------------------------------------------------------------------------ */

/* Calls `visit` with the address and the room of each live block until it returns 0: of `heap`, or, where
 * that is NULL, of all the process's blocks that are in no first-class heap. 0, or EINVAL without a visitor,
 * or ENOTSUP: in checked mode, when a space serves malloc (use hummock_space_walk), and with NULL on Windows.
 *
 * Beside running threads it is safe, and stops nobody. A block that lives from before the call until after it
 * is told of once. One that was allocated, freed or moved meanwhile may be told of or not; so only look into
 * a block if nobody can free it. No lock is held while `visit` runs: it may allocate and free. A live block
 * whose first 16 bytes are a copy of a free block's is taken for free.
 * Cost: a look at each slab's header and each block: some 15 ms for a million blocks. */
HUMMOCK_EXPORT int hummock_heap_walk(hummock_heap_t* heap,
                                     int (*visit)(void* context, void* block, size_t size),
                                     void* context) HUMMOCK_NOEXCEPT;

/* ---- Sparse slabs ----------------------------------------------------------------------------- */

/* How much of the slab that `block` stands in is in use, in percent; blocks that rest in a thread's cache
 * count as in use. 100 for a large block, which has its memory for itself, and for a slab from which blocks
 * are just being handed out, as moving out of it gains nothing. -1: not a live block of Hummock's, checked
 * mode, or a space serves malloc. O(1), a hint: it may have changed by the time you read it.
 *
 * For active defragmentation: move the blocks of slabs below, say, 60. Allocate the new blocks of some
 * thousand first, copy, then free the old ones together: a block that is freed just before an allocation of
 * its size is what that allocation returns. */
HUMMOCK_EXPORT int hummock_slab_utilisation(const void* block) HUMMOCK_NOEXCEPT;

/* ---- Tags ------------------------------------------------------------------------------------- */

/* What the calling thread allocates from now on is for `tag`: a query, a tenant, a part of the program; any
 * number, 0 at first. Returns the tag before. Each thread has its own; a new thread begins with 0.
 *
 * Totals are counted where blocks leave the slabs for a thread's cache, some hundred bytes to 8 KiB of them
 * at a time, and for each block above 64 KiB: all are charged to the tag that the thread has then. What is
 * freed and allocated again within the cache is not counted. So a total says how much memory the tag has
 * drawn, to the few KiB of a cache; it is no sum of all mallocs, and nothing is taken off it by frees. Blocks
 * of first-class heaps are not counted: hummock_heap_stats has exact figures of each. There is room for
 * HUMMOCK_TAG_COUNT - 1 tags in a process; all others share the row of HUMMOCK_TAG_OTHERS. Not counted in
 * checked mode, and when a space serves malloc. Cost: some 40 instructions; those of the fast paths stay as
 * they are. */
#define HUMMOCK_TAG_COUNT 64
#define HUMMOCK_TAG_OTHERS UINT32_MAX
HUMMOCK_EXPORT uint32_t hummock_tag(uint32_t tag) HUMMOCK_NOEXCEPT;

typedef struct hummock_tag_stats {
  size_t size;     /* in: sizeof(hummock_tag_stats_t) of the caller */
  uint64_t bytes;  /* drawn so far */
  uint64_t blocks; /* their number */
} hummock_tag_stats_t;

/* Fills `out` as far as its `size` says. 0, EINVAL, or ENOENT: no thread ever had the tag, or it is one of
 * the others. Exact when no thread allocates. */
HUMMOCK_EXPORT int hummock_tag_stats(uint32_t tag, hummock_tag_stats_t* out) HUMMOCK_NOEXCEPT;

/* ---- Names ------------------------------------------------------------------------------------ */

/* Gives the heap a name, which stands beside its figures in `hummock stats`; its first 23 bytes are kept, of
 * which those that are no printable ASCII become '?'. NULL takes it away. 0, or EINVAL. */
HUMMOCK_EXPORT int hummock_heap_set_name(hummock_heap_t* heap, const char* name) HUMMOCK_NOEXCEPT;

/* ---- Hooks ------------------------------------------------------------------------------------ */

/* What a tool wants to be told of; a member may be NULL. */
typedef struct hummock_hooks {
  size_t size; /* in: sizeof(hummock_hooks_t) of the caller */
  void* context;
  /* After a block was handed out, before the program has it; `size` is what was asked for. */
  void (*allocated)(void* context, void* block, size_t size);
  /* After a realloc that copied nothing: the block is `block` now, and was `before`, most often the same. One
   * that copies calls `allocated` and then `released`. */
  void (*resized)(void* context, void* block, size_t size, void* before);
  /* Before a block is freed: it may still be looked at. It may be no live block: that is found
   * after. hummock_heap_destroy tells of none. */
  void (*released)(void* context, void* block);
  /* Memory or address space has come from the system or gone there: `what` is as in the region log
   * (docs/log.md), `address` may be NULL. Here locks of the allocator may be held: nothing of Hummock's may
   * be called, and no malloc. */
  void (*mapped)(void* context, const char* what, const void* address, size_t bytes);
} hummock_hooks_t;

/* Installs hooks for the whole process, or takes them away (NULL). `hooks` must stay as it is for ever, as
 * other threads may be about to use it after it was replaced. 0, EINVAL, or EPERM: in checked mode, and when
 * a space serves malloc. Without hooks nothing is spent.
 *
 * With `allocated`, `resized` or `released` every call of every thread takes the slow path: a pair of malloc
 * and free takes some 500 instructions, 50 ns, in place of 40. A thread's frees are told of from its first
 * allocation after the hooks came, which takes a step for each slab it has. malloc(0) may be served without a
 * call. The first three may allocate and free; what they allocate and free is not told of. They must not
 * throw, longjmp or end the thread. */
HUMMOCK_EXPORT int hummock_set_hooks(const hummock_hooks_t* hooks) HUMMOCK_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* HUMMOCK_OBSERVE_H */
