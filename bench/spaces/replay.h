// Replays a script, and keeps what every timed call took every time.
#pragma once
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "calls.h"
#include "clock.h"
#include "memory.h"
#include "script.h"

class Record {
 public:
  Record(size_t steps, unsigned replays)
      : spans_(arena_array<uint32_t>(steps * replays)), steps_(steps), replays_(replays) {}

  // Ticks that a step took in a replay, with what reading the counter costs.
  uint32_t* of_replay(unsigned replay) { return spans_ + replay * steps_; }
  uint32_t at(size_t step, unsigned replay) const { return spans_[replay * steps_ + step]; }
  unsigned replays() const { return replays_; }

  double overhead = 0;        // ticks that reading the counter costs: mean over the time of the replays
  uint64_t failures = 0;      // mallocs that returned null, in all replays of all threads
  uint64_t minor_faults = 0;  // page faults in the timed ones

 private:
  uint32_t* spans_;
  size_t steps_;
  unsigned replays_;
};

inline constexpr size_t kPage = 4096;

inline uint32_t short_span(uint64_t span) {
  return span > ~uint32_t{0} ? ~uint32_t{0} : static_cast<uint32_t>(span);
}

// A program writes what it allocates: here the first word and the last byte, and when the memory is to become
// resident a byte of each page.
inline void write_block(char* block, const Step& step, bool all_pages) {
  for (size_t at = kPage; all_pages && at < step.size; at += kPage) block[at] = 1;
  const uint64_t stamp = uint64_t{step.slot} << 32 | step.size;
  memcpy(block, &stamp, sizeof stamp);
  block[step.size - 1] = static_cast<char>(step.slot | 1);
}

inline void check_block(const char* block, size_t slot) {
  uint64_t stamp;
  memcpy(&stamp, block, sizeof stamp);
  const size_t size = stamp & ~uint32_t{0};
  // The last byte of a block of 16 bytes or more is none of the stamp's.
  if (stamp >> 32 != slot || size < 16 || block[size - 1] != static_cast<char>(slot | 1))
    fail(3, "the block at %p is not as it was written", static_cast<const void*>(block));
}

// One replay. Without `spans` it is for the memory and for checks: pages are written and blocks looked at.
template <class Calls>
__attribute__((noinline)) uint64_t replay_once(const Script& script, const Calls& calls, char** slots,
                                               uint32_t* spans) {
  uint64_t failures = 0;
  const size_t count = script.count();
  for (size_t i = 0; i < count; ++i) {
    const Step step = script.steps()[i];
    const auto handle = calls.handle();
    uint64_t start, end;
    if (step.size != 0) {
      start = ticks();
      char* block = static_cast<char*>(calls.take(handle, step.size));
      end = ticks();
      slots[step.slot] = block;
      failures += block == nullptr;
      if (block != nullptr) write_block(block, step, spans == nullptr);
    } else {
      char* block = slots[step.slot];
      if (spans == nullptr && block != nullptr) check_block(block, step.slot);
      start = ticks();
      calls.release(handle, block);
      end = ticks();
    }
    if (spans != nullptr) spans[i] = short_span(end - start);
  }
  return failures;
}

// A thread that plays the same script beside the measured one, on blocks of its own, until it is told to
// stop.
template <class Make>
struct Companion {
  const Script* script;
  const Make* make;
  const bool* stop;  // atomic
  char** slots;
  uint32_t* spans;  // as many stores as the measured thread's
  bool ready;       // atomic; release by the companion, acquire by who waits for it
  uint64_t failures;
  pthread_t thread;
};

template <class Make>
void* accompany(void* context) {
  auto* own = static_cast<Companion<Make>*>(context);
  const auto calls = (*own->make)();
  for (int i = 0; i < 2; ++i) own->failures += replay_once(*own->script, calls, own->slots, nullptr);
  __atomic_store_n(&own->ready, true, __ATOMIC_RELEASE);
  while (!__atomic_load_n(own->stop, __ATOMIC_RELAXED))
    own->failures += replay_once(*own->script, calls, own->slots, own->spans);
  return nullptr;
}

// Twice unmeasured, so that the memory is resident and warm; then as often as the record has room for. With
// more threads than one, the others do the same meanwhile. make() is called by each for what it is to use.
template <class Make>
void replay(const Script& script, const Make& make, unsigned threads, Record& record) {
  auto* others = arena_array<Companion<Make>>(threads);
  bool stop = false;
  for (unsigned i = 1; i < threads; ++i) {
    others[i] = {
        &script, &make, &stop, arena_array<char*>(script.slots()), arena_array<uint32_t>(script.count()),
        false,   0,     {}};
    if (pthread_create(&others[i].thread, nullptr, accompany<Make>, &others[i]) != 0)
      fail(3, "no thread more than %u", i);
  }
  const auto calls = make();
  char** slots = arena_array<char*>(script.slots());
  for (int i = 0; i < 2; ++i) record.failures += replay_once(script, calls, slots, nullptr);
  for (unsigned i = 1; i < threads; ++i)
    while (!__atomic_load_n(&others[i].ready, __ATOMIC_ACQUIRE)) sched_yield();
  const uint64_t before = usage_now().minor_faults;
  for (unsigned i = 0; i < record.replays(); ++i) {
    record.failures += replay_once(script, calls, slots, record.of_replay(i));
    // After each replay, not once at the start: the processor's clock is not the same all the time.
    record.overhead += empty_span() / record.replays();
  }
  record.minor_faults = usage_now().minor_faults - before;
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  for (unsigned i = 1; i < threads; ++i) {
    pthread_join(others[i].thread, nullptr);
    record.failures += others[i].failures;
  }
}
