#include "modes/stacks.h"

#include <stddef.h>
#include <string.h>

#include "base/annotate.h"
#include "base/bits.h"
#include "base/message.h"
#include "base/system.h"
#include "pages/metadata.h"
#include "trace/backtrace.h"

namespace hummock::modes {
namespace {

struct Stack {
  uint64_t hash;
  StackNumber number;
  StackNumber next;  // of the same place in the table; fixed once the stack can be found
  uint64_t count;
  void* frames[1];  // `count` of them
};

// A stack's number says where it is: 1 + its place in the pools, which are one after another, in units.
constexpr size_t kUnit = alignof(Stack);
constexpr size_t kPool = 64 << 10;
constexpr size_t kPools = 512;  // 32 MiB in all; code made at run time could bring ever new stacks
char* pools[kPools];            // atomic; each set once
size_t used;                    // bytes of them. Atomic, relaxed

constexpr unsigned kTableBits = 16;
StackNumber table[1u << kTableBits];  // atomic

uint64_t hash_of(void* const* frames, unsigned count) {
  // The turn brings the high bits down, where the next product spreads them.
  uint64_t hash = count;
  for (unsigned i = 0; i < count; ++i) {
    hash = (hash << 29 | hash >> 35) ^ reinterpret_cast<uintptr_t>(frames[i]);
    hash *= 0x9e3779b97f4a7c15ull;
  }
  return hash;
}

// Whoever read the number with an acquire sees its pool and its stack.
Stack* stack_of(StackNumber number) {
  if (number == 0) return nullptr;
  const size_t place = size_t{number - 1} * kUnit;
  return reinterpret_cast<Stack*>(__atomic_load_n(&pools[place / kPool], __ATOMIC_RELAXED) + place % kPool);
}

// Two stacks of one hash would have to meet by chance among 2^64; that they differ in length is told.
StackNumber find(StackNumber first, uint64_t hash, unsigned count) {
  const Stack* stack = stack_of(first);
  while (stack != nullptr && (stack->hash != hash || stack->count != count)) stack = stack_of(stack->next);
  return stack != nullptr ? stack->number : 0;
}

// If two threads bring a pool at once, one of the two is wasted.
char* pool_at(size_t index) {
  char* pool = __atomic_load_n(&pools[index], __ATOMIC_ACQUIRE);
  if (pool != nullptr) return pool;
  auto* fresh = static_cast<char*>(pages::new_record(kPool));
  if (fresh == nullptr) return nullptr;
  const bool first =
      __atomic_compare_exchange_n(&pools[index], &pool, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return first ? fresh : pool;
}

// Room that nobody else has; null: no memory, or there are enough stacks.
Stack* new_stack(unsigned count) {
  const size_t bytes = offsetof(Stack, frames) + count * sizeof(void*);
  size_t before = __atomic_load_n(&used, __ATOMIC_RELAXED);
  size_t place;
  char* pool;
  do {
    const bool fits = before % kPool + bytes <= kPool;
    place = fits ? before : base::align_up(before, kPool);
    if (place >= kPools * kPool) return nullptr;
    pool = pool_at(place / kPool);
    if (pool == nullptr) return nullptr;
  } while (
      !__atomic_compare_exchange_n(&used, &before, place + bytes, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  auto* stack = reinterpret_cast<Stack*>(pool + place % kPool);
  stack->number = static_cast<StackNumber>(1 + place / kUnit);
  return stack;
}

// If two threads bring the same stack at once, one of the two copies may be wasted.
__attribute__((noinline)) StackNumber keep(void* const* frames, unsigned count, uint64_t hash) {
  Stack* fresh = new_stack(count);
  if (fresh == nullptr) return 0;
  fresh->hash = hash;
  fresh->count = count;
  memcpy(fresh->frames, frames, count * sizeof(void*));
  StackNumber* place = &table[hash >> (64 - kTableBits)];
  StackNumber first = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  do {
    if (const StackNumber same = find(first, hash, count)) return same;
    fresh->next = first;
    // release: pairs with the acquires of who looks for it.
  } while (
      !__atomic_compare_exchange_n(place, &first, fresh->number, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  return fresh->number;
}

}  // namespace

StackNumber current_stack(unsigned most) {
  if (most == 0) return 0;
  void* frames[kMostFrames];
  const base::Unwatched unwatched;
  const unsigned count = trace::callers(frames, most);
  if (count == 0) return 0;
  const uint64_t hash = hash_of(frames, count);
  const StackNumber first = __atomic_load_n(&table[hash >> (64 - kTableBits)], __ATOMIC_ACQUIRE);
  const StackNumber found = find(first, hash, count);
  return found != 0 ? found : keep(frames, count, hash);
}

void say_event(const char* what, Event event) {
  const Stack* stack = stack_of(event.stack);
  base::say(trace::report_line() << "  " << what << " by thread " << event.thread
                                 << (stack != nullptr ? ":" : ""));
  if (stack != nullptr) trace::print_frames(stack->frames, static_cast<unsigned>(stack->count));
}

void end_report() {
  void* frames[kMostFrames];
  const base::Unwatched unwatched;
  const unsigned count = trace::callers(frames, kMostFrames);
  base::say(trace::report_line() << "  this call by thread " << trace::thread_number()
                                 << (count != 0 ? ":" : ""));
  trace::print_frames(frames, count);
  base::stop();
}

}  // namespace hummock::modes
