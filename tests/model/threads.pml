// The threads that there may be. Uses heap.pml.

// What a thread does comes in any order: the inbox may be read and the slab adopted or made at any
// time, as if for another class.
proctype heap_thread(byte me; bit stays; bit again) {
  byte first, last, count;  // the remote cache
  short old, word;
  byte bound, to, b, n, p, t, m, mask;
  bit queue, current;
  byte list;

life:
  do
  // malloc: take_blocks, retire
  :: atomic { current && live < BLOCKS && mallocs > 0 -> hand_out() }
  :: ONE_STEP { current && live == BLOCKS && COUNT(remote) != 0 && mallocs > 0 -> take_remote(); hand_out() }
  :: atomic { current && live == BLOCKS && COUNT(remote) == 0 -> current = 0 }
     retire()
  // next_slab: the inbox, the list, adopt, create
  :: atomic { inbox[me - A] == HEADER -> take_inbox(EMPTY); t = 0 }
     read_inbox()
  :: atomic { !current && list == PARTIAL -> unlist(); current = 1 }
  :: atomic { !current && listed && shard_lock == NOBODY && mallocs > 0 -> shard_lock = me; current = 1 }
     take_over()
#ifdef MUTANT_OWNER_LATE
     ; owner = me
#endif
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
        ONE_STEP { take_remote() }
#ifdef MUTANT_OWNER_LATE
        owner = me;
#endif
        atomic {
          keep_slab();
          block[p] = OUT;  // the block is kept at hand: to be handed out, or freed to its slab
          p = 0;
          out++
        }
     fi
  :: atomic { count > 0 -> start_push() }
     hand_over()
#endif
  // emptied
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
  short old, word;
  byte bound, to, b, n, p, t, m, mask;
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

#ifdef SWEEPS
// src/heap/idle.cc, src/slab/gone.cc: takes blocks back, and hands them over again; some are in no chain then.
inline leave_out() {
  b = CHAIN(word);
  first = 0;
  last = 0;
  do
  :: b != 0 ->
     assert(block[b] == HELD);
     t = link[b];
     link[b] = 0;
     if
     :: mask = mask | (1 << b)
     :: link[b] = first;
        last = (first == 0 -> b : last);
        first = b
     fi;
     b = t
  :: else -> break
  od;
  t = 0
}

proctype sweeper(byte me) {
  byte first, last, count, sweeps;
  short old, word, flags;
  byte bound, to, b, n, t, m, mask;
  bit queue;

  do
  :: sweeps < SWEEPS ->
     sweeps++;
     atomic {
       word = remote;
       count = COUNT(word);
       if
       :: count == 0 || count == seen -> word = 0; count = 0; goto next
       :: else ->
          remote = FLAGS(word);
          mask = ((word & GONE) != 0 -> gone : 0);
          seen = count
       fi
     }
     atomic {
       n = mask;
       leave_out();
#ifdef MUTANT_NO_TURN
       flags = (mask != 0 -> GONE : 0);
#else
       flags = (mask == n -> word & (GONE | TURN) : GONE | ((word & TURN) ^ TURN));
#endif
       n = 0;
       word = 0
     }
     if
     :: (flags & GONE) != 0 -> gone = mask
     :: else
     fi;
     mask = 0;
     do
     :: word = remote;
        queue = (ASKS_NOTIFY(word) && COUNT(word) + count >= notify);
        atomic {
          if
          :: remote == word ->
             assert((word & GONE) == 0);
             if
             :: first != 0 -> link[last] = CHAIN(word)
             :: else -> first = CHAIN(word)
             fi;
             remote = PACK(first, COUNT(word) + count, (queue -> QUEUED : FLAGS(word)) | flags);
             if
             :: queue -> assert(queuer == NOBODY); queuer = me
             :: else
             fi;
             first = 0;
             last = 0;
             flags = 0;
             break
          :: else -> queue = 0
          fi
        }
     od;
     told();
next:
     skip
  :: break
  od;
  done++
}
#endif

// Nobody frees here from outside its lock, so it has no inbox, and its slab names no owner: its header may
// still be flagged.
proctype first_class_heap(byte me) {
  bit current;

  if
  :: atomic { span_free -> create() }
     notify = WANT;
#ifdef MUTANT_NAMED_FIRST_CLASS
     owner = me;
#endif
     atomic { destroy() }
  :: true
  fi;
  done++
}
