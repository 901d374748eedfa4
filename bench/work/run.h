// Runs a Load on threads that start together, and gathers what is reported.
#pragma once
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "arena.h"
#include "child.h"
#include "json.h"
#include "latency.h"
#include "memory.h"
#include "rng.h"
#include "workload.h"

struct Options {
  const Workload* workload = nullptr;
  unsigned threads = 0;
  size_t size = 0;
  double seconds = 0.5;
  uint64_t operations = 0;  // a thread; 0: until `seconds` have passed
  uint64_t seed = 1;
  double settle = 1.0;
  bool series = false;
  const char* trace = nullptr;        // file to replay
  const char* write_trace = nullptr;  // file to write the synthetic trace to
};

// One thread's part. Fields that its thread writes often stand on lines of its own.
class alignas(128) Worker {
 public:
  // Counts operations; false when the thread is to stop.
  bool more(uint64_t done) {
    operations += done;
    return operations < limit && !stop->load(std::memory_order_relaxed);
  }
  bool stopped() const { return stop->load(std::memory_order_relaxed); }

  // Requested bytes that live; a thread may free what another allocated.
  void live_add(int64_t bytes) {
    const int64_t now = live.load(std::memory_order_relaxed) + bytes;
    live.store(now, std::memory_order_relaxed);
    if (now > live_peak) live_peak = now;
  }

  Rng rng;
  uint64_t operations;
  uint64_t limit;
  const std::atomic<bool>* stop;
  std::atomic<int64_t> live;
  int64_t live_peak;
  uint64_t finished_at;
  unsigned index;
  unsigned threads;
  size_t size;
  Latency* latency;  // only this thread's
  Load* load;
  Run* run;
};

// A place where the threads wait for the main thread.
class Gate {
 public:
  void reset(unsigned threads);
  void arrive_and_wait();  // a thread
  // The main thread: true once all have arrived, false after `milliseconds`.
  bool all_arrived(unsigned milliseconds);
  void open();

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t arrived_ = PTHREAD_COND_INITIALIZER;
  pthread_cond_t opened_ = PTHREAD_COND_INITIALIZER;
  unsigned missing_ = 0;
  bool open_ = false;
};

class Run {
 public:
  explicit Run(const Options& options);

  const Options& options;
  unsigned threads() const { return options.threads; }
  size_t size() const { return options.size; }
  // Operations a thread for workloads of fixed work: --ops, or `otherwise`.
  uint64_t operations_or(uint64_t otherwise) const {
    return options.operations != 0 ? options.operations : otherwise;
  }

  struct Span {
    uint64_t operations;
    double seconds;
    double cpu_seconds;
  };
  // All of a load on `threads` threads (0: as asked for). With `fixed`, a load that ends by itself: more()
  // only counts. Several calls add up.
  Span execute(Load& load, unsigned threads = 0, bool fixed = false);

  // For workloads that are other programs, in place of execute: what one pass of it took.
  void add_child(const ChildUse& use, uint64_t operations);
  // Until enough passes were added.
  bool more_children() const;

  // Reads resident memory into the series, when it is due; or takes that of a child.
  void watch();
  void watch(size_t resident);
  // Waits until memory has settled, with a little traffic as of a program at rest, and reads it.
  void settle();
  void report();

  // The table of a workload that has one.
  Json& rows();
  // Live bytes that the load knows better than the workers' counts.
  void live_is_at_least(uint64_t bytes) {
    if (bytes > live_peak_) live_peak_ = bytes;
  }
  // What stands under "latency", when a load gathers its own.
  Latency& latency();

 private:
  void begin();
  bool due() const;
  void make_workers(Load& load, unsigned threads, bool fixed);
  Span measure(Load& load, unsigned threads);
  void wait(Gate& gate, unsigned threads, double seconds);
  void note_live(unsigned threads);
  void write_latency(Json& json);
  void write_memory(Json& json);
  void write_series(Json& json);

  static constexpr size_t kPoints = 200;
  struct Point {
    double time;
    size_t resident;
  };

  Worker* workers_ = nullptr;
  unsigned workers_room_ = 0;
  Latency* latency_ = nullptr;
  Json* rows_ = nullptr;
  std::atomic<bool> stop_{false};
  bool begun_ = false;
  uint64_t begun_at_ = 0;

  Span total_ = {0, 0, 0};
  double system_seconds_ = 0;
  uint64_t minor_faults_ = 0;
  uint64_t major_faults_ = 0;
  uint64_t live_peak_ = 0;
  size_t start_bytes_ = 0;
  size_t peak_bytes_ = 0;
  size_t settled_bytes_ = 0;
  uint64_t children_ = 0;

  Point* points_ = nullptr;
  size_t point_count_ = 0;
  double interval_ = 0.01;
  double next_point_ = 0;
};

// Starts a thread with a small stack; ends the program when that fails.
pthread_t start_thread(void* (*body)(void*), void* argument);

// Runs `body` in a new thread and waits for it: a thread that ends and hands its blocks on.
template <class Body>
void run_in_new_thread(Body& body) {
  auto start = [](void* it) -> void* {
    (*static_cast<Body*>(it))();
    return nullptr;
  };
  pthread_join(start_thread(start, &body), nullptr);
}
