// What a workload is: a row of its family's table (workloads/*.cc) and a Load that does the work.
#pragma once
#include <stddef.h>
#include <stdint.h>

class Run;
class Worker;

// One run of a workload on several threads. Every part has an empty default.
class Load {
 public:
  virtual void set_up(Run&) {}      // once, before the threads: books from the arena
  virtual void prepare(Worker&) {}  // each thread, before the clock starts
  virtual void work(Worker&) {}     // each thread, timed: ends when worker.more() says so
  virtual void clean(Worker&) {}    // each thread, after the clock stopped: frees what it still has
  virtual void finish(Run&) {}      // once, after the threads ended: frees the rest
};

// Lists end at the first 0.
struct Threads {
  unsigned value[8];
};
struct Sizes {
  size_t value[18];
};

// The cells of one of the bench's sets: all threads × all sizes. No seconds and no operations: not in the
// set.
struct Plan {
  Threads threads = {};
  Sizes sizes = {};
  double seconds = 0;       // of a run; of fixed work, about how long it takes
  uint64_t operations = 0;  // a thread
  double settle = 0;        // seconds until settled memory is read; 0: it is not
};

struct Workload {
  const char* name;
  const char* group;
  const char* title;
  const char* description;
  const char* unit;  // of an operation
  Threads threads;   // useful counts, the first is the default
  Sizes sizes;       // the same of --size; empty when the workload has none
  Plan quick = {};
  Plan normal = {};
  Plan full = {};
  void (*run)(Run&);
  const char* program = nullptr;  // that it needs; where there is none the workload is not listed
};

struct Family {
  const Workload* workloads;
  size_t count;
};

template <size_t kCount>
constexpr Family family_of(const Workload (&workloads)[kCount]) {
  return {workloads, kCount};
}

// In the order of the list.
Family basic_family();
Family random_family();
Family large_family();
Family realloc_family();
Family server_family();
Family queue_family();
Family sharing_family();
Family seed_family();
Family spaces_family();
Family shrink_family();
Family frame_family();
Family challenge_family();
Family memory_family();
Family trace_family();
Family program_family();
Family judge_family();
