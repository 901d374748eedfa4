// Remote frees, inboxes, shared slabs, adoption and thread exit: one step per atomic operation.
// The code: src/slab/slab.cc, src/heap/{remote,refill,release,attach}.cc, src/shard/shard.cc; an inline
// bears its function's name. There is one slab header, which is a slab again and again; two heaps with
// their threads; threads that only free; and, if asked for, a first-class heap whose record is used again.
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
//   FIRST_CLASS  there is a first-class heap, too
//   MUTANT_…  a wrong protocol: an error must be found

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
#define THREADS (HEAPS + FREERS + 1)
#else
#define THREADS (HEAPS + FREERS)
#endif

// The remote word: chain 3 bits, count 3 bits, queued, shared.
#define QUEUED 64
#define SHARED 128
#define CHAIN(word) ((word) & 7)
#define COUNT(word) (((word) >> 3) & 7)
#define FLAGS(word) ((word) & (QUEUED | SHARED))
#define PACK(chain, count, flags) ((chain) | ((count) << 3) | (flags))

// Threads; a heap is known by its thread's number.
#define NOBODY 0
#define SHARD 1
#define A 2
#define B 3
#define FREER1 4
#define FREER2 5
#define USER 6   // a first-class heap
#define INBOX 8   // who has the queued flag: inbox of heap h is INBOX + h

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
byte remote;
byte home;
byte shared_live;
byte notify = WANT;
bit listed;
bit is_full;
bit home_frees;
byte live;              // blocks in use, as the slab counts
byte link[BLOCKS + 1];  // 0 ends a chain

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

// ---- src/slab/slab.cc

// Every block of a chain was freed once, and not handed out since.
inline drain(chain) {
  b = CHAIN(chain);
  n = COUNT(chain);
  do
  :: n > 0 ->
     assert(b != 0 && block[b] == HELD && live > 0);
     block[b] = FREE;
     live--;
     n--;
     t = link[b];
     link[b] = 0;
     b = t
  :: else -> break
  od;
  assert(b == 0);
  t = 0
}

inline take_remote() {
  old = remote;
  remote = FLAGS(remote);
  assert(holder == me);
  drain(old);
  old = 0
}

inline find(wanted) {
  b = 1;
  do
  :: block[b] == wanted -> break
  :: else -> b++
  od
}

// A block of the slab goes to the program.
inline hand_out() {
  if
  :: mallocs > 0 ->
     assert(holder == me && live < BLOCKS);
     find(FREE);
     block[b] = OUT;
     b = 0;
     live++;
     out++;
     mallocs--
  :: else
  fi
}

// The rest: notify and owner.
inline create() {
  span_free = 0;
  assert(owner == NOBODY && holder == NOBODY && live == 0);
  assert((remote & ~QUEUED) == 0);
  holder = me;
  home_frees = 0;
  is_full = 0;
  listed = 0;
  home = me;  // nobody reads it before a block is handed out
  current = 1
}

inline destroy() {
  atomic {
    assert(holder == me && live == 0 && !span_free);
    owner = NOBODY;
    holder = NOBODY;
    span_free = 1
  }
}

inline give_back() {
  atomic {
    assert(holder == me && COUNT(remote) == 0 && live == 0)
    destroy()
  }
}

// ---- src/shard/shard.cc

inline unlock() {
  assert(shard_lock == me);
  shard_lock = 0
}

// The caller has the lock, and knows that the slab is shared. Releases the lock.
inline take_over() {
  atomic {
    assert(MAY_TOUCH);
    listed = 0;
    home = me
  }
  notify = WANT;
#ifndef MUTANT_OWNER_LATE
  owner = me;
#endif
  atomic {
    assert(holder == SHARD && shard_lock == me && (remote & SHARED) != 0);
    old = remote;
    remote = remote & QUEUED;
    holder = me;
    drain(old);
    old = 0;
    unlock()
  }
#ifdef MUTANT_OWNER_LATE
  owner = me;
#endif
}

inline finish() {
  atomic {
    assert(holder == SHARD && shard_lock == me && (remote & SHARED) != 0);
    listed = 0;
    old = remote;
    remote = remote & QUEUED;
    holder = me;
    assert(COUNT(old) == live);
    drain(old);
    old = 0;
    unlock()
  }
  destroy()
}

inline settle() {
#ifdef MUTANT_SETTLE_BLIND
  old = remote;
  atomic { shard_lock == NOBODY -> shard_lock = me }
#else
  atomic { shard_lock == NOBODY -> shard_lock = me; old = remote }
#endif
  if
  :: atomic { (old & SHARED) == 0 -> old = 0; unlock() }
  :: atomic { (old & SHARED) != 0 && COUNT(old) >= shared_live -> old = 0 }
     finish()
  :: atomic {
       (old & SHARED) != 0 && COUNT(old) < shared_live ->
       assert(MAY_TOUCH);
       listed = (listed || COUNT(old) >= notify);
       old = 0;
       unlock()
     }
  fi
}

inline give_away() {
  atomic {
    assert(holder == me && owner == me && !listed && list == NO_LIST && home == me);
    shared_live = live;
    notify = (BLOCKS - live >= WANT -> 0 : WANT - (BLOCKS - live));
    is_full = 0
  }
  owner = SHARD;
  atomic {
    assert(holder == me);
    old = remote;
    remote = remote | SHARED;
    holder = SHARD;
    t = (COUNT(old) >= notify || COUNT(old) >= shared_live);
    old = 0
  }
  if
#ifndef MUTANT_GIVER_BLIND
  :: t -> t = 0; settle()
#else
  :: t -> t = 0
#endif
  :: else
  fi
}

// ---- src/heap/remote.cc

inline clear_queued() {
  assert((remote & QUEUED) != 0 && queuer == me);
  remote = remote & ~QUEUED;
  queuer = NOBODY
}

// Leaves t = 1 when nobody is there.
inline post() {
  to = owner;
  atomic {
    if
    :: to <= SHARD || inbox[to - A] == SEALED -> t = 1
    :: else ->
       assert(queuer == me);                // inbox_next is written
       assert(inbox[to - A] != HEADER);     // else it would be its own successor
       inbox[to - A] = HEADER;
       queuer = INBOX + to
    fi;
    to = 0
  }
}

// Who cleared the flag looks again: at a slab that has an owner with enough for it to hear of, and at a
// shared one.
inline reconsider() {
#ifdef MUTANT_NO_LOOK
  skip
#else
  do
  :: atomic { (remote & SHARED) != 0 -> t = 1; break }
#ifndef MUTANT_LOOK_AT_SHARED_ONLY
  :: atomic { (remote & (SHARED | QUEUED)) == 0 && COUNT(remote) != 0 -> word = remote }
     bound = notify;
     to = owner;
     atomic {
       if
       :: COUNT(word) >= bound && to > SHARD && remote == word ->
          assert(queuer == NOBODY);
          remote = remote | QUEUED;
          queuer = me
       :: else
       fi;
       t = (COUNT(word) >= bound && to > SHARD);
       word = 0;
       bound = 0;
       to = 0
     }
     if
     :: atomic { !t -> break }
     :: atomic { t && queuer != me -> t = 0 }
     :: atomic { t && queuer == me -> t = 0 }
        post();
        if
        :: atomic { t -> t = 0; clear_queued() }
        :: atomic { !t -> break }
        fi
     fi
#endif
  :: else -> break
  od;
  if
  :: t -> t = 0; settle()
  :: else
  fi
#endif
}

inline replace_remote() {
  link[last] = CHAIN(word);
  remote = PACK(first, COUNT(word) + count, (queue -> QUEUED : FLAGS(word)));
  first = 0;
  last = 0;
  if
  :: queue -> assert(queuer == NOBODY); queuer = me
  :: else
  fi
}

#ifdef MUTANT_NO_FLAG
#define ASKS_NOTIFY(word) (((word) & SHARED) == 0)
#else
#define ASKS_NOTIFY(word) (FLAGS(word) == 0)
#endif

// In an atomic step: the compare-and-swap, when it does not depend on `notify`. Else first ≠ 0 after.
inline start_push() {
  word = remote;
  if
  :: ASKS_NOTIFY(word)
  :: else -> replace_remote()
  fi
}

inline push_remote() {
  do
  :: first == 0 -> break
  :: else ->
     queue = (COUNT(word) + count >= notify);
     atomic {
       if
       :: remote == word -> replace_remote()
       :: else -> queue = 0; start_push()
       fi
     }
  od
}

inline after_remote_free() {
  bound = notify;
  atomic {
    t = (COUNT(word) < bound && COUNT(word) + count >= bound) || COUNT(word) + count >= shared_live;
    bound = 0;
    word = 0;
    count = 0
  }
  if
  :: t -> t = 0; settle()
  :: else
  fi
}

// Hands over the blocks first…last, after start_push.
inline hand_over() {
  push_remote();
  if
  :: (word & SHARED) != 0 -> after_remote_free()
  :: atomic { (word & SHARED) == 0 && !queue -> word = 0; count = 0 }
  :: atomic { (word & SHARED) == 0 && queue -> word = 0; count = 0; queue = 0 }
     post();
     if
     :: atomic { t -> t = 0; clear_queued() }
        reconsider()
     :: else
     fi
  fi
}

// ---- src/heap/refill.cc

inline unlist() {
  assert(holder == me && list == (is_full -> FULL_LIST : PARTIAL));
  is_full = 0;
  list = NO_LIST
}

// Leaves t = 1 when it has to go back.
inline file_slab() {
  assert(holder == me && list == NO_LIST);
  if
  :: live == 0 -> t = 1
  :: else -> list = PARTIAL
  fi
}

inline give_back_if_empty() {
  if
  :: t -> t = 0; give_back()
  :: else
  fi
}

// After the exchange, which found the header.
inline read_inbox() {
  atomic {
    t = ((owner) == me);
#ifndef MUTANT_CLEAR_LATE
    clear_queued()
#endif
  }
  if
  :: atomic { t && current -> t = 0 }  // the next refill drains it
  :: t && !current ->
     atomic {
       t = 0;
       unlist();
       take_remote();
       file_slab()
     }
     give_back_if_empty()
  :: else -> reconsider()
  fi;
#ifdef MUTANT_CLEAR_LATE
  atomic { clear_queued() }
#endif
}

inline take_inbox(rest) {
  t = (inbox[me - A] == HEADER);
  inbox[me - A] = rest;
  if
  :: t -> assert(queuer == INBOX + me); queuer = me
  :: else
  fi
}

inline keep_slab() {
  assert(holder == me && owner == me && list == NO_LIST);
  is_full = (live == BLOCKS);
  list = (is_full -> FULL_LIST : PARTIAL)
}

inline retire() {
  if
  :: atomic { home_frees -> keep_slab() }
  :: else -> give_away()
  fi
}

inline leave_slabs() {
  if
  :: atomic {
       current || list != NO_LIST ->
       if
       :: list != NO_LIST -> unlist()
       :: else
       fi;
       current = 0
     }
     if
     :: live == 0 -> give_back()
     :: else -> give_away()
     fi
  :: else
  fi
}

// ---- src/heap/release.h, release.cc

inline put_block() {
  assert(holder == me && block[p] == HELD && live > 0);
  block[p] = FREE;
  p = 0;
  live--
}

inline pick() {
  find(OUT);
  p = b;
  b = 0;
  block[p] = HELD;
  out--
}

inline keep_for_later() {
  link[p] = first;
  last = (first == 0 -> p : last);
  first = p;
  p = 0;
  count++
}

inline release_own() {
  put_block();
  if
  :: is_full -> unlist(); list = PARTIAL
  :: else
  fi;
  if
  :: live == 0 && !current -> unlist(); t = 1
  :: else
  fi
}

// ---- src/heap/attach.cc

inline seal() {
#ifdef MUTANT_NO_SEAL
  atomic { take_inbox(EMPTY) }
#else
  atomic { take_inbox(SEALED) }
#endif
  if
  :: atomic { t -> t = 0; clear_queued() }
     reconsider()
  :: else
  fi
}

// ---- The threads

// What a thread does comes in any order: the inbox may be read and the slab adopted or made at any
// time, as if for another class.
proctype heap_thread(byte me; bit stays; bit again) {
  byte first, last, count;  // the remote cache
  byte old, word, bound, to, b, n, p, t;
  bit queue, current;
  byte list;

life:
  do
  // malloc: take_blocks, retire
  :: atomic { current && live < BLOCKS && mallocs > 0 -> hand_out() }
  :: atomic { current && live == BLOCKS && COUNT(remote) != 0 && mallocs > 0 -> take_remote(); hand_out() }
  :: atomic { current && live == BLOCKS && COUNT(remote) == 0 -> current = 0 }
     retire()
  // next_slab: the inbox, the list, adopt, create
  :: atomic { inbox[me - A] == HEADER -> take_inbox(EMPTY); t = 0 }
     read_inbox()
  :: atomic { !current && list == PARTIAL -> unlist(); current = 1 }
  :: atomic { !current && listed && shard_lock == NOBODY && mallocs > 0 -> shard_lock = me; current = 1 }
     take_over()
  :: atomic { !current && span_free && mallocs > 0 -> create() }
     notify = WANT;
     owner = me
#ifndef HEAPS_FREE_NOTHING
  // free: own, others', given away by this heap
  :: atomic { out > 0 && owner == me -> pick(); release_own() }
     give_back_if_empty()
  :: atomic { out > 0 && owner != me && home != me && count < BATCH -> pick(); keep_for_later() }
  :: atomic { out > 0 && owner != me && home == me && count < BATCH -> pick() }
     if
     :: atomic { (remote & SHARED) == 0 -> keep_for_later() }
     :: atomic { (remote & SHARED) != 0 && shard_lock == NOBODY -> shard_lock = me }
        take_over();
        atomic {
          home_frees = 1;
          keep_slab();
          block[p] = OUT;  // the block is kept at hand: to be handed out, or freed to its slab
          p = 0;
          out++
        }
     fi
  :: atomic { count > 0 -> start_push() }
     hand_over()
#endif
  // keep_one_spare
  :: atomic { current && live == 0 -> current = 0; give_back() }
  :: break
  od;
  if
  :: !stays ->
     atomic { take_inbox(EMPTY) }
     if
     :: atomic { t -> t = 0 }
        read_inbox()
     :: else
     fi;
     leave_slabs()
  :: else
  fi;
  if
  :: atomic { count > 0 -> start_push() }
     hand_over()
  :: else
  fi;
  if
  :: stays -> spare = spare | current
  :: else ->
     seal();
     if
     :: atomic { again -> again = 0; inbox[me - A] = EMPTY }
        goto life
     :: else
     fi
  fi;
  atomic { heaps_done++; done++ }
}

proctype freer(byte me) {
  byte first, last, count;
  byte old, word, bound, to, b, n, p, t;
  bit queue;

  do
  :: atomic {
       out > 0 ->
       pick();
       keep_for_later();
       do
       :: out > 0 && count < BATCH -> pick(); keep_for_later()
       :: break
       od;
       start_push()
     }
     hand_over()
  :: atomic { heaps_done == HEAPS && out == 0 -> break }
  od;
  done++
}

// Nobody frees here from outside its lock, so all it has to do with the rest is that its slab's header
// may still be flagged. It is destroyed with its slab; then a thread gets its record, and ends.
proctype first_class_heap(byte me) {
  byte old, word, bound, to, b, n, t;
  bit current;

  if
  :: atomic { span_free -> create() }
     notify = WANT;
     owner = me;
     if
     :: atomic { inbox[me - A] == HEADER -> take_inbox(EMPTY); clear_queued(); t = 0 }  // current
     :: true
     fi;
     atomic { current = 0; destroy() }
  :: true
  fi;
  // delete_user_heap
#ifndef MUTANT_NO_SEAL_OF_FIRST_CLASS
  atomic { take_inbox(SEALED) }
  if
  :: atomic { t -> t = 0; clear_queued() }
     reconsider()
  :: else
  fi;
#endif
  // new_record, attach
  atomic { assert(inbox[me - A] != HEADER); inbox[me - A] = EMPTY }
  // detach
  atomic { take_inbox(SEALED) }
  if
  :: atomic { t -> t = 0; clear_queued() }
     reconsider()
  :: else
  fi;
  done++
}

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
