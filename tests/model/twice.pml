// src/heap/remote.cc: threads that free one block of another's slab at the same time. At most one hands it over.
//
// A processor keeps its stores back for a while, in order, and sees its own: each thread has a buffer, which is
// written out at any time, at the latest at a fence or an exchange.

#ifndef FREERS
#define FREERS 3
#endif

#define LIVE 0             // what a live block has in its words, as the program left it
#ifdef MUTANT_MARK_SHARED
#define MARK(me) LAST
#else
#define MARK(me) (me)      // in the link: freed by
#endif
#define LAST 7             // in the link: the last of a chain
#define TAKEN(me) (8 + me) // in the check
byte link = LIVE;
byte check = LIVE;
byte handed_over;
byte done;

// A store of each word may be waiting, and which is the older.
#define LOAD_LINK (has_link -> kept_link : link)
#define LOAD_CHECK (has_check -> kept_check : check)

#define OLDEST_OUT \
  :: atomic { has_link && (!has_check || link_first) -> link = kept_link; has_link = 0; kept_link = 0; link_first = 0 } \
  :: atomic { has_check && (!has_link || !link_first) -> check = kept_check; has_check = 0; kept_check = 0 }

inline some_out() {
  do
  OLDEST_OUT
  :: break
  od
}
inline fence() {
  do
  OLDEST_OUT
  :: !has_link && !has_check -> break
  od
}

inline store_link(value) {
  atomic { !has_link -> kept_link = value; has_link = 1; link_first = !has_check }
  some_out()
}
inline store_check(value) {
  atomic { !has_check -> kept_check = value; has_check = 1; link_first = has_link }
  some_out()
}

proctype freer(byte me) {
  byte seen, kept_link, kept_check;
  bit has_link, has_check, link_first;
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
