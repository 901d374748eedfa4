// src/pages/region_map.cc: two regions, 2 TiB apart, want one entry, while others look addresses of both up.
// Loads that nothing orders happen in any order; that the number is stored with release is the order of the stores.

#define NONE 0
byte distance;  // leads to the headers of region 1 or 2
byte number;    // says whose entry it is
byte entered;   // whose blocks the program has
byte done;

proctype region(byte me) {
  bit won;
#ifdef MUTANT_NUMBER_FIRST
  atomic {
    if
    :: number == NONE -> number = me; won = 1
    :: else
    fi
  }
  if
  :: won -> distance = me
  :: else
  fi;
#else
  atomic {  // compare and swap
    if
    :: distance == NONE -> distance = me; won = 1
    :: else
    fi
  }
  if
  :: won -> number = me
  :: else  // goes elsewhere
  fi;
#endif
#ifdef MUTANT_STORED_BLIND
  if
  :: !won -> distance = me
  :: else
  fi;
#endif
  if
  :: won -> atomic { assert(entered == NONE); entered = me }
  :: else
  fi;
  done++
}

// find_header for an address of region `me`, guessed or had: never another region's headers.
proctype reader(byte me) {
  byte seen_number, seen_distance, turn;
  do
  :: turn == 2 -> break
  :: turn < 2 ->
     turn++;
#ifndef MUTANT_NO_ACQUIRE
     seen_number = number;
     seen_distance = distance;
#else
     if
     :: seen_number = number; seen_distance = distance
     :: seen_distance = distance; seen_number = number
     fi;
#endif
     assert(seen_number != me || seen_distance == me);
     // Who has a block finds it.
     if
     :: entered == me -> assert(number == me && distance == me)
     :: else
     fi
  od;
  done++
}

init {
  atomic { run region(1); run region(2); run reader(1); run reader(2) }
  (done == 4);
  assert(number == distance && entered == number)
}
