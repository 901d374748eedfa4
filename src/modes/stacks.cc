#include "modes/stacks.h"

#include <stddef.h>
#include <string.h>

#include "base/annotate.h"
#include "base/message.h"
#include "base/system.h"
#include "pages/metadata.h"
#include "trace/backtrace.h"

namespace hummock::modes {
namespace {

constexpr unsigned kTableBits = 16;
constexpr uint32_t kMostStacks = 1 << 18;  // 32 MiB; code made at run time could bring ever new ones

Stack* table[1u << kTableBits];  // atomic
uint32_t stacks;                 // atomic, relaxed

uint64_t hash_of(void* const* frames, unsigned count) {
  uint64_t hash = count;
  for (unsigned i = 0; i < count; ++i) {
    hash = (hash ^ reinterpret_cast<uintptr_t>(frames[i])) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  return hash;
}

// Two stacks of one hash would have to meet by chance among 2^64; that they differ in length is told.
Stack* find(Stack* first, uint64_t hash, unsigned count) {
  Stack* stack = first;
  while (stack != nullptr && (stack->hash != hash || stack->count != count)) stack = stack->next;
  return stack;
}

// If two threads bring the same stack at once, one of the two copies may be wasted.
__attribute__((noinline)) Stack* keep(void* const* frames, unsigned count, uint64_t hash) {
  if (__atomic_fetch_add(&stacks, 1, __ATOMIC_RELAXED) >= kMostStacks) {
    __atomic_fetch_sub(&stacks, 1, __ATOMIC_RELAXED);
    return nullptr;
  }
  auto* fresh = static_cast<Stack*>(pages::new_record(offsetof(Stack, frames) + count * sizeof(void*)));
  if (fresh == nullptr) return nullptr;
  fresh->hash = hash;
  fresh->count = count;
  memcpy(fresh->frames, frames, count * sizeof(void*));
  Stack** place = &table[hash >> (64 - kTableBits)];
  Stack* first = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  do {
    if (Stack* same = find(first, hash, count)) return same;
    fresh->next = first;
    // release: pairs with the acquires of who looks for it.
  } while (!__atomic_compare_exchange_n(place, &first, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  return fresh;
}

}  // namespace

Stack* current_stack(unsigned most) {
  if (most == 0) return nullptr;
  void* frames[kMostFrames];
  const base::Unwatched unwatched;
  const unsigned count = trace::callers(frames, most);
  if (count == 0) return nullptr;
  const uint64_t hash = hash_of(frames, count);
  Stack* found = find(__atomic_load_n(&table[hash >> (64 - kTableBits)], __ATOMIC_ACQUIRE), hash, count);
  return found != nullptr ? found : keep(frames, count, hash);
}

void say_event(const char* what, uint32_t thread, const Stack* stack) {
  base::say(trace::report_line() << "  " << what << " by thread " << thread << (stack != nullptr ? ":" : ""));
  if (stack != nullptr) trace::print_frames(stack->frames, stack->count);
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
