// src/heap/remote.cc: blocks on their way back to a slab of others. Uses shard.pml.

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
inline look_again() {
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
  remote = PACK(first, COUNT(word) + count, (queue -> QUEUED : FLAGS(word)) | (word & (GONE | TURN)));
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

inline settle_if_due() {
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

// Who pushed tells whom it concerns.
inline told() {
  if
  :: (word & SHARED) != 0 -> settle_if_due()
  :: atomic { (word & SHARED) == 0 && !queue -> word = 0; count = 0 }
  :: atomic { (word & SHARED) == 0 && queue -> word = 0; count = 0; queue = 0 }
     post();
     if
     :: atomic { t -> t = 0; clear_queued() }
        look_again()
     :: else
     fi
  fi
}

// Hands over the blocks first…last, after start_push.
inline hand_over() {
  push_remote();
  told()
}
