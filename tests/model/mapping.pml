// src/pages/huge_block.cc, kept.cc, region_map.cc: blocks with mappings of their own, among mappings of others.
//
// A place is where a block may begin. The kernel gives a free one to whoever asks. MAP says where a live block of
// ours begins, one bit a place: who clears it may look at the block's header, and frees, resizes or moves the block.
// With AGAIN somebody frees, once, a block that a thread has. Each kernel call, each access to the map, and each
// section under the lock is a step.

#ifndef PLACES
#define PLACES 2
#endif
#ifndef STEPS
#define STEPS 3
#endif

#define NOBODY 0
#define OURS 1     // mapped by the allocator
#define FOREIGN 2  // mapped by the rest of the program

byte kernel[PLACES] = NOBODY;
bit tail_there[PLACES];   // what is behind the block is mapped
bit map[PLACES];
mtype = { NONE, LIVE, KEPT, DROPPED, STUCK };
mtype block[PLACES] = NONE;  // what the proof knows of each place
bit tail[PLACES];            // it is the block's tail, as its header says; guarded by the lock
bit longer[PLACES];            // it is the block's own
byte user[PLACES];           // who has the block
bit misused;                 // somebody freed a block of another's
byte done;

// Whoever looks finds what is true: a bit means a mapping of ours, and who has a block between two calls finds it,
// or is told that it was freed.
#define SOUND(p) (!map[p] || kernel[p] == OURS)
active proctype sound() {
end:
  if
  :: atomic { !SOUND(0) -> assert(false) }
  :: atomic { !SOUND(PLACES - 1) -> assert(false) }
  fi
}

// What is behind a place is unmapped by who took it out, once.
inline cut(p) {
  atomic { assert(tail_there[p]); tail_there[p] = 0 }
}

inline enter(p) {
  atomic { assert(!map[p]); map[p] = 1; assert(kernel[p] == OURS) }
}

// free and realloc: the block is the caller's alone, or it is told.
inline claim(p) {
#ifdef MUTANT_LOOK_FIRST
  known = map[p];
  assert(!known || kernel[p] == OURS);  // the header is read
#endif
#ifdef MUTANT_NO_CLAIM
  known = map[p];
  map[p] = 0;
#else
  atomic { known = map[p]; map[p] = 0 }
#endif
  if
  :: !known -> assert(misused); goto told
  :: known -> assert(kernel[p] == OURS); known = 0
  fi
}

// at = a free place, or PLACES.
inline ask(who) {
  atomic {
    if
    :: kernel[0] == NOBODY -> at = 0; kernel[0] = who
    :: kernel[PLACES - 1] == NOBODY -> at = PLACES - 1; kernel[PLACES - 1] = who
    :: at = PLACES
    fi
  }
}

inline cut_own(p) {
  if
  :: longer[p] -> assert(tail_there[p]); tail_there[p] = 0; longer[p] = 0
  :: else
  fi
}

// The kernel may refuse, where it would have to part a mapping and has no record left.
inline unmap_block(p) {
  if
  :: atomic { assert(kernel[p] == OURS); kernel[p] = NOBODY; cut_own(p); block[p] = NONE }
#ifndef MUTANT_NO_STUCK
  :: block[p] = STUCK
#else
  :: block[p] = NONE
#endif
  fi
}

inline allocate() {
  atomic {  // under the lock: a kept one, or one that is stuck
    at = PLACES;
    if
    :: block[0] == KEPT || block[0] == STUCK -> at = 0
    :: block[PLACES - 1] == KEPT || block[PLACES - 1] == STUCK -> at = PLACES - 1
    :: true
    fi;
    if
    :: at < PLACES ->
       assert(!map[at] && (misused || user[at] == 0));
       block[at] = LIVE
    :: else
    fi
  }
  if
  :: at == PLACES ->
     ask(OURS);
     if
     :: at < PLACES -> atomic { assert(block[at] == NONE && !longer[at] && (misused || user[at] == 0)); block[at] = LIVE }
     :: else
     fi
  :: else
  fi;
  if
  :: at < PLACES -> enter(at); user[at] = _pid
  :: else
  fi;
  mine = at
}

// What is behind the block becomes its own, or its tail.
inline resize() {
  claim(mine);
  if
#ifndef MUTANT_TAIL_BLIND
  :: atomic { tail[mine] -> tail[mine] = 0; assert(tail_there[mine]); longer[mine] = 1 }
#else
  :: tail[mine] -> atomic { tail[mine] = 0; assert(tail_there[mine]); longer[mine] = 1 }
#endif
  :: atomic { !tail[mine] && !tail_there[mine] -> tail_there[mine] = 1; longer[mine] = 1 }
  :: atomic { !tail[mine] && !longer[mine] && tail_there[mine] -> skip }  // refused: it was taken out, and is still mapped
  :: atomic { longer[mine] -> longer[mine] = 0; tail[mine] = 1 }
  fi;
#ifndef MUTANT_NO_RETURN
  enter(mine)
#endif
}

inline move() {
  claim(mine);
  ask(OURS);
  if
  :: at < PLACES ->
     atomic { t = tail[mine]; tail[mine] = 0 }
     if
     :: t -> cut(mine); t = 0
     :: else
     fi;
#ifdef MUTANT_MOVE_LATE
     enter(mine);
#endif
     if
     :: atomic {  // moved: what the pages left is anybody's
          assert(kernel[mine] == OURS);
          kernel[mine] = NOBODY;
          cut_own(mine);
          block[mine] = NONE;
          user[mine] = 0
        }
#ifdef MUTANT_MOVE_LATE
        map[mine] = 0;
#endif
        block[at] = LIVE;
        enter(at);
        atomic { user[at] = _pid; mine = at }
     :: unmap_block(at);
#ifndef MUTANT_NO_RETURN
#ifndef MUTANT_MOVE_LATE
        enter(mine)
#endif
#endif
     fi
  :: else -> enter(mine)
  fi
}

inline free() {
#ifndef MUTANT_LEAVE_LATE
  claim(mine);
#endif
  atomic {  // under the lock
    user[mine] = 0;
    if
    :: tail[mine] -> tail[mine] = 0; longer[mine] = 1
    :: else
    fi;
    if
    :: block[mine] = KEPT; mine = PLACES
    :: block[mine] = DROPPED
    fi
  }
  if
  :: mine < PLACES ->
     unmap_block(mine);
#ifdef MUTANT_LEAVE_LATE
     map[mine] = 0;
#endif
     mine = PLACES
  :: else
  fi
}

// A tick: a kept mapping goes, or a tail.
inline tick() {
  atomic {
    at = PLACES;
    if
#ifndef MUTANT_DROP_BLIND
    :: block[0] == KEPT -> at = 0; block[0] = DROPPED
    :: block[PLACES - 1] == KEPT -> at = PLACES - 1; block[PLACES - 1] = DROPPED
#else
    :: block[0] == KEPT -> at = 0
    :: block[PLACES - 1] == KEPT -> at = PLACES - 1
#endif
    :: true
    fi
  }
  if
  :: at < PLACES -> unmap_block(at)
  :: else ->
     atomic {
       if
       :: tail[0] -> tail[0] = 0; at = 0
       :: tail[PLACES - 1] -> tail[PLACES - 1] = 0; at = PLACES - 1
       :: true
       fi
     }
     if
     :: at < PLACES -> cut(at)
     :: else
     fi
  fi
}

proctype thread() {
  byte mine = PLACES, at, step;
  bit t, known;
  do
  :: step == STEPS -> break
  :: step < STEPS ->
     step++;
     if
     :: mine == PLACES -> allocate()
     :: mine < PLACES ->
        assert(misused || (map[mine] && user[mine] == _pid));  // free and realloc find their block
        if
        :: resize()
        :: move()
        :: free()
        fi
     :: tick()
     fi
  od;
  if
  :: mine < PLACES -> free()
  :: else
  fi;
told:
  atomic { done++ }
}

// Frees a block that another thread has.
proctype again() {
  byte mine = PLACES;
  bit known;
  if
  :: atomic { user[0] != 0 -> mine = 0; misused = 1 }
  :: atomic { user[PLACES - 1] != 0 -> mine = PLACES - 1; misused = 1 }
  :: true
  fi;
  if
  :: mine < PLACES -> free()
  :: else
  fi;
told:
  atomic { done++ }
}

// The rest of the program maps and unmaps.
proctype others() {
  byte at, step;
  do
  :: step == 2 -> break
  :: step < 2 ->
     step++;
     ask(FOREIGN);
     if
     :: at < PLACES ->
        assert(!map[at]);  // free() of its address is told as foreign
        kernel[at] = NOBODY
     :: else
     fi
  od;
  atomic { done++ }
}

init {
  byte p;
  atomic {
    run thread();
    run thread();
    run others();
#ifdef AGAIN
    run again()
#else
    done++
#endif
  }
  (done == 4);
  // Nothing is lost: what is mapped is kept, or stuck, and can be had again.
  atomic {
    p = 0;
    do
    :: p == PLACES -> break
    :: p < PLACES ->
       assert(misused || kernel[p] == NOBODY || block[p] == KEPT || block[p] == STUCK);
       assert(misused || !map[p]);
       p++
    od
  }
}
