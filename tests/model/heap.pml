// src/heap/{refill,release,attach}.cc: a heap's own work. Uses remote_free.pml.

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
     ONE_STEP {
       t = 0;
       unlist();
       take_remote();
       file_slab()
     }
     give_back_if_empty()
  :: else -> look_again()
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

// Which of the two is a matter of speed alone.
inline retire() {
  if
  :: atomic { true -> keep_slab() }
  :: give_away()
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
     look_again()
  :: else
  fi
}
