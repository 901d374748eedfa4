// src/heap/remote.cc: the owner of a slab and another thread free one block at the same time. Either one of them is
// told, or the other's words of the block show it. The program wrote nothing to the block: its check is what the
// owner's free stores again. The owner's two stores land together here. If it is stopped between them, for as long
// as the other needs to hand the block over, then only its own list shows it.

#include "stores.pml"

#define LISTED LIVE  // in the check of a block of the owner's list
#define LINKED 1     // in its link
#define MARK 2       // in the link: freed by the other thread
#define CHAINED 3    // in the link, when it is handed over
#define CHANGED 4    // in the check
#define TAKEN 5
bit owner_frees, handed_over, told;
byte done;

proctype owner() {
  if
  :: link != LIVE -> told = 1
  :: else -> atomic { link = LINKED; check = LISTED; owner_frees = 1 }
  fi;
  done++
}

proctype other() {
  byte seen;
  STORE_BUFFER;
  seen = LOAD_CHECK;
#ifdef MUTANT_UNCHANGED
  skip;
#else
#ifdef MUTANT_CHANGED_BY_A_STORE
  store_check(CHANGED);
#else
  fence();
  check = CHANGED;
#endif
  seen = CHANGED;
#endif
  if
  :: LOAD_LINK != LIVE -> told = 1; goto out
  :: else
  fi;
  store_link(MARK);
  fence();
  if
  :: LOAD_CHECK != seen -> told = 1; goto out
  :: else
  fi;
  store_check(TAKEN);
  fence();
  if
  :: LOAD_LINK != MARK -> told = 1; goto out
  :: else
  fi;
  store_link(CHAINED);
  fence();  // the push
  handed_over = 1;
out:
  fence();
  done++
}

// Who meets the block finds the owner's link or check where the other's should be.
init {
  atomic { run owner(); run other() }
  (done == 2);
  assert(told || !owner_frees || !handed_over || link != CHAINED || check != TAKEN)
}
