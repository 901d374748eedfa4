// src/shard/shard.cc: shared slabs. Uses slab.pml.

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
    remote = remote & ~SHARED;
    holder = me;
    unlock()
  }
}

// Leaves t = 1 when the slab was taken.
inline take_if_empty() {
#ifndef SWEEPS
  atomic {
    t = (COUNT(old) >= shared_live);
    if
    :: t -> take_word(QUEUED)
    :: else
    fi
  }
#else
  do
  :: mask = ((old & GONE) != 0 -> gone : 0);
     atomic {
       if
#ifndef MUTANT_FINISH_BLIND
       :: COUNT(old) < shared_live -> mask = 0; break
       :: COUNT(old) >= shared_live && remote == old -> remote = remote & QUEUED; t = 1; break
       :: COUNT(old) >= shared_live && remote != old -> old = remote
#else
       :: COUNT(old) < shared_live -> mask = 0; break
       :: else -> old = remote; remote = remote & QUEUED; t = 1; break
#endif
       fi
     }
  od
#endif
}

inline finish() {
  atomic {
    assert(holder == SHARD && shard_lock == me);
    t = 0;
    listed = 0;
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
  :: (old & SHARED) != 0 ->
     take_if_empty();
     if
     :: t -> finish()
     :: atomic {
          !t ->
          assert(MAY_TOUCH);
          listed = (listed || COUNT(old) >= notify);
          old = 0;
          unlock()
        }
     fi
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
