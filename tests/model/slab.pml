// src/slab/slab.cc

// Every block of a chain was freed once, and not handed out since; nor was any that is gone.
inline drain(chain) {
  b = CHAIN(chain);
  n = COUNT(chain);
#ifdef SWEEPS
  if
  :: ((chain) & GONE) != 0 ->
     do
     :: m < BLOCKS ->
        m++;
        if
        :: ((mask >> m) & 1) != 0 ->
           assert(n > 0 && block[m] == HELD && live > 0);
           block[m] = FREE;
           live--;
           n--
        :: else
        fi
     :: else -> break
     od;
     m = 0;
     mask = 0
  :: else
  fi;
#endif
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

// The word and the mask are read one after the other, and the word is compared and exchanged then.
#ifdef SWEEPS
inline take_word(left) {
  do
  :: old = remote;
#ifndef MUTANT_MASK_LATE
     mask = ((old & GONE) != 0 -> gone : 0);
#endif
     atomic {
       if
       :: remote == old -> remote = remote & (left); break
       :: else
       fi
     }
  od
#ifdef MUTANT_MASK_LATE
  ;
  mask = ((old & GONE) != 0 -> gone : 0)
#endif
}
#else
inline take_word(left) {
  old = remote;
  remote = remote & (left)
}
#endif

inline take_remote() {
  take_word(QUEUED | SHARED);
  atomic {
    assert(holder == me);
    drain(old);
    old = 0
  }
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
  :: mallocs > 0 && live < BLOCKS ->
     assert(holder == me);
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
