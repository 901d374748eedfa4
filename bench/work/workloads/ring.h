// A ring through which one thread passes blocks to another.
#pragma once
#include <sched.h>

#include <atomic>

#include "run.h"

class Ring {
 public:
  static constexpr size_t kRoom = 1024;

  // Puts as many as fit; returns how many.
  size_t put(char* const* blocks, size_t count) {
    const size_t end = end_.load(std::memory_order_relaxed);
    const size_t room = kRoom - (end - begin_.load(std::memory_order_acquire));
    if (count > room) count = room;
    for (size_t i = 0; i < count; ++i) slots_[(end + i) % kRoom] = blocks[i];
    end_.store(end + count, std::memory_order_release);
    return count;
  }

  size_t take(char** blocks, size_t most) {
    const size_t begin = begin_.load(std::memory_order_relaxed);
    size_t count = end_.load(std::memory_order_acquire) - begin;
    if (count > most) count = most;
    for (size_t i = 0; i < count; ++i) blocks[i] = slots_[(begin + i) % kRoom];
    begin_.store(begin + count, std::memory_order_release);
    return count;
  }

 private:
  alignas(128) std::atomic<size_t> begin_;
  alignas(128) std::atomic<size_t> end_;
  alignas(128) char* slots_[kRoom];
};

// `count` rings on lines of their own.
inline Ring* make_rings(size_t count) {
  const auto start = reinterpret_cast<uintptr_t>(arena_take(count * sizeof(Ring) + 128));
  return reinterpret_cast<Ring*>((start + 127) & ~uintptr_t{127});
}

// For a thread that waits for another: gives the processor away soon, since there may be fewer than threads.
class Patience {
 public:
  void wait() {
    if (++tries_ < 50) return;
    sched_yield();
  }
  void done() { tries_ = 0; }

 private:
  unsigned tries_ = 0;
};
