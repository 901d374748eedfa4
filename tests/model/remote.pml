// Remote frees, inboxes, shared slabs, adoption and thread exit: one step per atomic operation.
// The code: src/slab/slab.cc, src/heap/{remote,refill,release,attach}.cc, src/shard/shard.cc; an inline
// bears its function's name. There is one slab header, which is a slab again and again; two heaps with
// their threads; threads that only free; and, if asked for, a first-class heap.
//
// What is joined in one `atomic` loses no behaviour:
//   - what only one thread may touch (a chain that was taken, the owner's line; assertions on `holder`
//     show that it is so) joins a step of that thread;
//   - taking the lock joins the step after it, releasing it the step before it;
//   - a load that only a compare-and-swap or exchange of the same word follows joins it, and so does a
//     load whose answer nobody else can change (owner == me, my inbox is not empty);
//   - the program's taking of a block from its pool joins the first step of the free.
// Blocks that the program holds are alike, and so are free ones: the lowest is taken each time.
//
// Sizes and variants, all by -D:
//   BLOCKS    of the slab, at most 7
//   WANT      a quarter of its capacity, in the code
//   MALLOCS   in all
//   BATCH     most blocks handed over at once
//   FREERS    1 or 2
//   HEAPS     1 or 2
//   STAY_A, STAY_B   the heap's thread does not end
//   REATTACH  heap A's record is used again by another thread
//   HEAPS_FREE_NOTHING  the heaps' threads leave that to the others
//   SWEEPS    how often somebody takes back what others freed and gives pages of it to the system
//   FIRST_CLASS  there is a first-class heap, too
//   MUTANT_…  a wrong protocol: an error must be found

// Lowest first: each part uses those before it.
#include "state.pml"
#include "slab.pml"
#include "shard.pml"
#include "remote_free.pml"
#include "heap.pml"
#include "threads.pml"

#ifdef STAY_A
#define STAYS_A 1
#else
#define STAYS_A 0
#endif
#ifdef STAY_B
#define STAYS_B 1
#else
#define STAYS_B 0
#endif
#ifdef REATTACH
#define AGAIN_A 1
#else
#define AGAIN_A 0
#endif

// Every block came back, every thread did all it had to.
init {
  atomic {
    run heap_thread(A, STAYS_A, AGAIN_A);
#if HEAPS == 2
    run heap_thread(B, STAYS_B, 0);
#endif
#ifdef FIRST_CLASS
    run first_class_heap(USER);
#endif
#ifdef SWEEPS
    run sweeper(SWEEPER);
#endif
    run freer(FREER1);
#if FREERS == 2
    run freer(FREER2)
#endif
  }
  atomic {
    done == THREADS ->
    assert(shard_lock == NOBODY && out == 0);
    assert(((remote & QUEUED) != 0) == (queuer != NOBODY));
    assert(queuer == NOBODY || (queuer == INBOX + A && STAYS_A) || (queuer == INBOX + B && STAYS_B));
    if
    :: span_free -> assert(holder == NOBODY && owner == NOBODY && !listed && COUNT(remote) == 0)
    :: else ->
       // Nobody forgot it: the heap that has it keeps it for its next malloc, or will hear of it, or
       // too few blocks came back from others to be told of.
       assert((remote & SHARED) == 0 && holder == (owner));
       assert((holder == A && STAYS_A) || (holder == B && STAYS_B));
       assert(spare || COUNT(remote) < notify || queuer == INBOX + holder)
    fi
  }
}
