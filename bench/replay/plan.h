// What hummock replay hands to hummock-replay: the calls of one process of a trace, thread by thread. A file
// in the machine's byte order: the head, a PlanThread for each thread, the events.
#pragma once
#include <stdint.h>

constexpr char kPlanMagic[8] = {'H', 'U', 'M', 'P', 'L', 'A', 'N', '1'};

// Beside the calls as include/hummock/record.h numbers them: `slot` is the thread that begins here.
constexpr uint8_t kStartThread = 32;

struct PlanHead {
  char magic[8];
  uint32_t threads;
  uint32_t slots;
  uint64_t events;  // those that start threads included
  uint64_t allocations, releases, resizes;
  uint64_t bytes;      // asked for, by realloc too
  uint64_t live_peak;  // most bytes asked for that lived at a time
};

struct PlanThread {
  uint64_t first, count;  // of its events
};

// A slot holds one block at a time. `turn` is how many events that slot has seen before: until it has, this
// one waits.
struct PlanEvent {
  uint64_t size;
  uint32_t slot;
  uint32_t turn;
  uint32_t position;  // among the calls of all threads
  uint8_t call;
  uint8_t align;  // binary logarithm; 0: that of all blocks
  uint16_t zero;
};
