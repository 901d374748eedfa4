// What all parts share: sizes, the remote word, the slab's header, and what the proof knows.

#ifndef BLOCKS
#define BLOCKS 3
#endif
#ifndef WANT
#define WANT 1
#endif
#ifndef MALLOCS
#define MALLOCS 4
#endif
#ifndef BATCH
#define BATCH 2
#endif
#ifndef FREERS
#define FREERS 2
#endif
#ifndef HEAPS
#define HEAPS 2
#endif
#ifdef FIRST_CLASS
#define FIRST_CLASS_HEAPS 1
#else
#define FIRST_CLASS_HEAPS 0
#endif
#ifdef SWEEPS
#define SWEEPERS 1
#else
#define SWEEPERS 0
#endif
#define THREADS (HEAPS + FREERS + FIRST_CLASS_HEAPS + SWEEPERS)

// The remote word: chain 3 bits, count 3 bits, queued, shared; gone, turn.
#define QUEUED 64
#define SHARED 128
#define CHAIN(word) ((word) & 7)
#define COUNT(word) (((word) >> 3) & 7)
#define FLAGS(word) ((word) & (QUEUED | SHARED))
#define GONE 256
#define TURN 512
#define PACK(chain, count, flags) ((chain) | ((count) << 3) | (flags))

// Where somebody may take blocks back, a word is taken in several steps.
#ifdef SWEEPS
#define ONE_STEP
#else
#define ONE_STEP atomic
#endif

// Threads; a heap is known by its thread's number.
#define NOBODY 0
#define SHARD 1
#define A 2
#define B 3
#define FREER1 4
#define FREER2 5
#define USER 6   // a first-class heap
#define SWEEPER 7
#define INBOX 16  // who has the queued flag: inbox of heap h is INBOX + h

// An inbox holds nothing, the header, or the seal.
#define EMPTY 0
#define HEADER 1
#define SEALED 2

// The heap's lists.
#define NO_LIST 0
#define PARTIAL 1
#define FULL_LIST 2

// ---- The header.
byte owner;
short remote;
byte home;
byte shared_live;
byte notify = WANT;
bit listed;
bit is_full;
byte live;              // blocks in use, as the slab counts
byte link[BLOCKS + 1];  // 0 ends a chain
#ifdef SWEEPS
byte gone;              // a bit for each block, as if pages had one each
byte seen;              // the count of the last sweep
#endif

byte shard_lock;
byte inbox[5];  // of heap h: h - A
bit span_free = 1;  // the page heap has the span

// ---- What the program and the proof know.
mtype = { FREE, OUT, HELD };         // in the slab, in use, freed and on its way back
mtype block[BLOCKS + 1] = FREE;
byte out;       // blocks in use
byte mallocs = MALLOCS;
byte holder;    // who may touch the owner's line: a thread, SHARD (its lock's holder), NOBODY
byte queuer;    // who has the queued flag: a thread, INBOX + heap, nobody
byte heaps_done, done;
bit spare;         // a heap that stays has the slab as its current one

#define MAY_TOUCH (holder == me || (holder == SHARD && shard_lock == me))
