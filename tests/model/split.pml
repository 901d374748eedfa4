// src/pages/purge.cc: threads that give back the free slots of one huge page, whose bytes count until it is split,
// while others free and take slots of it. The lock is dropped around the system calls.

#ifndef SLOTS
#define SLOTS 3
#endif

#define FREE 0     // with memory
#define CLEAN 1    // free, without
#define IN_USE 2
byte slot[SLOTS] = IN_USE;
bit away[SLOTS];  // looks used: somebody gives it back
bit loose = 1;      // counts in advised
byte advised = 1;   // × 2 MiB
byte busy;          // threads that purge slots of it: HugePage::purging
byte lock;
byte done;

inline acquire() { atomic { lock == 0 -> lock = _pid } }
inline release() { atomic { assert(lock == _pid); lock = 0 } }

inline drop_advised() {
  assert(advised > 0);
  advised--
}

// The lock is held. mask: the free slots.
inline collect() {
  atomic {
    i = 0;
    mask = 0;
    do
    :: i == SLOTS -> break
    :: i < SLOTS ->
       if
       :: slot[i] == FREE && !away[i] -> mask = mask | (1 << i)
       :: else
       fi;
       i++
    od;
    i = 0
  }
}

inline give_back() {
  atomic {
    do
    :: i == SLOTS -> i = 0; break
    :: i < SLOTS ->
       if
       :: mask & (1 << i) ->
          assert(slot[i] == FREE);  // nobody has it: its contents may go
          slot[i] = CLEAN
       :: else
       fi;
       i++
    od
  }
}

inline mark(value) {
  do
  :: i == SLOTS -> i = 0; break
  :: i < SLOTS ->
     if
     :: mask & (1 << i) -> away[i] = value
     :: else
     fi;
     i++
  od
}

proctype purger() {
  byte i, mask;
  bit split;
  byte turn;
  do
  :: turn == 2 -> break
  :: turn < 2 ->
     turn++;
     acquire();
     collect();
     if
     :: mask == 0 -> release()
     :: mask != 0 ->
        atomic {
          split = loose;
#ifndef MUTANT_SHOWN
          mark(1);
#endif
          busy++;
#ifndef MUTANT_SPLIT_LATE
          if
          :: split -> loose = 0; drop_advised()
          :: else
          fi
#endif
        }
        release();
        give_back();
        acquire();
        atomic {
#ifdef MUTANT_SPLIT_LATE
          if
          :: split -> loose = 0; drop_advised()
          :: else
          fi;
#endif
          mark(0);
          assert(busy > 0);
          busy--;
          mask = 0;
          split = 0
        }
        release()
     fi
  od;
  atomic { done++ }
}

// Frees and takes.
proctype user() {
  byte i, turn;
  do
  :: turn == 4 -> break
  :: turn < 4 ->
     turn++;
     select (i : 0 .. (SLOTS - 1));
     acquire();
     if
     :: slot[i] == IN_USE && !away[i] -> slot[i] = FREE
     :: slot[i] != IN_USE && !away[i] -> slot[i] = IN_USE
     :: else
     fi;
     release()
  od;
  atomic { done++ }
}

// collapse_one: a page that is full, and that nobody purges, counts again. If the system refuses, no longer.
proctype collapser() {
  byte i;
  acquire();
  atomic {
    if
    :: !loose && busy == 0 && slot[0] == IN_USE && slot[1] == IN_USE -> loose = 1; advised++; i = 1
    :: else
    fi
  }
  release();
  if
  :: i == 1 ->
     acquire();
     atomic {
       if
       :: loose -> loose = 0; drop_advised()
       :: true  // served, or small already
       fi
     }
     release()
  :: else
  fi;
  atomic { done++ }
}

init {
  byte i;
  atomic { run purger(); run purger(); run user(); run collapser() }
  (done == 4);
  atomic {
    assert(advised == loose);
    assert(busy == 0);
    do
    :: i == SLOTS -> break
    :: i < SLOTS -> assert(!away[i]); i++
    od
  }
}
