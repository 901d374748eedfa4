// src/pages/span_cache.h: one span, entries of two near caches, a thread for each, and threads that close
// entries or put other spans there. Every step is one atomic access, in the order of the code: all of them are
// seq_cst.

#define LARGE 1
#define CACHED 2
#define FREE 3
byte kind = LARGE;
byte holder = 1;  // whose the span is; 0: nobody's

#define CLOSED 0
#define OPEN 1  // or another span's
#define LEADS 2
byte entry[3];  // the first is no thread's
byte done;

// take_cached: a look, then the exchange.
inline exchange(me, won) {
  won = 0;
  if
  :: kind == CACHED ->
     atomic {
       if
       :: kind == CACHED -> assert(holder == 0); kind = FREE; holder = me; won = 1
       :: else
       fi
     }
  :: else
  fi
}

// make_cached, look_at_entry, keep_in_other. The entry may be refused to it.
inline keep(me, before, won) {
#ifdef MUTANT_LOOKS_FIRST
  before = entry[me];
#endif
  atomic { assert(kind == LARGE && holder == me); holder = 0; kind = CACHED }
#ifndef MUTANT_LOOKS_FIRST
  before = entry[me];
#endif
  if
  :: before == LEADS
  :: before != LEADS ->
     won = 0;
     if
     :: atomic { entry[me] == before -> entry[me] = LEADS; won = 1 }
     :: entry[me] != before
     :: before == CLOSED  // no more may be open
     fi;
     if
     :: won
#ifdef MUTANT_KEPT_REFUSED
     :: !won
#else
     :: !won -> exchange(me, won)
#endif
     fi
  fi
}

// A thread that frees the span when it has it, and else takes it where its entry leads.
proctype thread(byte me) {
  byte before, turn;
  bit won;
  do
  :: turn == 3 -> break
  :: turn < 3 ->
     turn++;
     if
     :: kind == LARGE && holder == me -> keep(me, before, won)
     :: else ->
        if
        :: entry[me] == LEADS ->
#ifdef MUTANT_TAKES_BLIND
           if
           :: kind == CACHED -> atomic { assert(holder == 0); kind = LARGE; holder = me }
           :: else
           fi
#else
           exchange(me, won);
           if
           :: won -> kind = LARGE
           :: else
           fi
#endif
        :: else
        fi
     fi
  od;
  done++
}

// Closes an entry, or puts another span there, and owns what it finds. From the page heap the span may be handed
// out again, while entries still lead to it.
proctype closer(byte me) {
  byte at, before, turn, seen;
  bit won;
  do
  :: turn == 2 -> break
  :: turn < 2 ->
     turn++;
     if
     :: at = 1
     :: at = 2
     fi;
#ifdef MUTANT_CLOSES_LATE
     seen = kind;
#else
     seen = CACHED;
#endif
     atomic {
       before = entry[at];
       if
       :: entry[at] = CLOSED
       :: entry[at] = OPEN
       fi
     }
     if
     :: before == LEADS && seen == CACHED ->
        exchange(me, won);
        if
        :: won -> atomic { holder = 1; kind = LARGE }
        :: else
        fi
     :: else
     fi
  od;
  done++
}

init {
  atomic { run thread(1); run thread(2); run closer(3); run closer(4) }
  (done == 4);
  assert(kind != CACHED || entry[1] == LEADS || entry[2] == LEADS)
}
