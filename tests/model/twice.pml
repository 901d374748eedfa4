// src/heap/remote.cc: threads that free one block of another's slab at the same time. At most one hands it over.

#include "stores.pml"

#ifndef FREERS
#define FREERS 3
#endif

#ifdef MUTANT_MARK_SHARED
#define MARK(me) LAST
#else
#define MARK(me) (me)      // in the link: freed by
#endif
#define LAST 7             // in the link: the last of a chain
#define TAKEN(me) (8 + me) // in the check
byte handed_over;
byte done;

proctype freer(byte me) {
  byte seen;
  STORE_BUFFER;
  seen = LOAD_CHECK;
  if
  :: LOAD_LINK != LIVE -> goto told
  :: else
  fi;
  store_link(MARK(me));
#ifndef MUTANT_NO_FIRST_FENCE
  fence();
#endif
  if
  :: LOAD_CHECK != seen -> goto told
  :: else
  fi;
#ifndef MUTANT_CHECK_KEPT
  store_check(TAKEN(me));
#endif
#ifndef MUTANT_NO_SECOND_FENCE
  fence();
#endif
#ifndef MUTANT_MARK_UNSEEN
  if
  :: LOAD_LINK != MARK(me) -> goto told
  :: else
  fi;
#endif
  store_link(LAST);
#ifdef MUTANT_CHECK_KEPT
  store_check(TAKEN(me));
#endif
  fence();  // the push
  handed_over++;
  assert(handed_over == 1);
told:
  fence();
  done++
}

init {
  byte i;
  atomic {
    do
    :: i == FREERS -> break
    :: i < FREERS -> i++; run freer(i)
    od
  }
  (done == FREERS)
}
