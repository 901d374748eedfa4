#include "modes/sampling.h"

#include <errno.h>
#include <string.h>

#include "base/keep_errno.h"
#include "base/version.h"
#include "heap/attach.h"
#include "heap/block.h"
#include "heap/large.h"
#include "heap/observer.h"
#include "heap/user.h"
#include "modes/guards.h"
#include "modes/recording.h"
#include "modes/sample_chance.h"
#include "os/os.h"
#include "os/probe.h"
#include "trace/backtrace.h"

namespace hummock::modes::sampling {
namespace {

constexpr char kVariable[] = "HUMMOCK_RUN_PROFILE=";

// ---- State. Atomic, relaxed unless said: a late reader samples one block more, or less.

uint64_t mean_now;   // 0: off
uint64_t profiled;   // that of the profile; 0: there is none
uint64_t mean_last;  // that of the start: children go on with it, where somebody shares memory for them
bool claims;         // a first sample looks for shared memory
bool opening;        // somebody makes a table. acquire and release pair with each other
UserHeap* home;      // of sampled blocks. Atomic: released when it is ready

// One heap for all samples, which are rare.
UserHeap* own_heap() {
  return heap::internal_heap(&home, true);
}

// ---- The table ----------------------------------------------------------------------------------

void write_head(hummock_profile_t* table) {
  hummock_profile_head_t* head = &table->head;
  head->version = HUMMOCK_PROFILE_VERSION;
  head->size = sizeof *table;
  head->started = os::now_ns();
  memcpy(head->library, base::kVersion, sizeof base::kVersion);
  os::program_name(head->program, sizeof head->program);
  __atomic_store_n(&head->magic, HUMMOCK_PROFILE_MAGIC,
                   __ATOMIC_RELEASE);  // last: who reads it sees the rest
}

void* claim_table() {
  return os::claim_shared(kVariable, sizeof(hummock_profile_t), offsetof(hummock_profile_t, head.pid));
}

// False: there is no table. `find` says where memory for one is to be had.
template <class Find>
bool open_table(Find find) {
  if (current_table() != nullptr) return true;
  if (__atomic_exchange_n(&opening, true, __ATOMIC_ACQUIRE)) return false;
  if (current_table() == nullptr) {
    if (auto* table = static_cast<hummock_profile_t*>(find())) {
      const unsigned process = os::process_id();
      table->head.pid = process;
      write_head(table);
      set_table(table, process);
      tell_state(true, relaxed(profiled));
    }
  }
  __atomic_store_n(&opening, false, __ATOMIC_RELEASE);
  return current_table() != nullptr;
}

// That of who started us, or a new one.
void* find_memory() {
  void* memory = claim_table();
  return memory != nullptr ? memory : os::map_shared(HUMMOCK_PROFILE_NAME, sizeof(hummock_profile_t));
}

// Counts that were drawn for another mean are no more.
void renew_counts() {
  for (const Heap* heap = heap::all_heaps(); heap != nullptr; heap = heap->next_record)
    set_relaxed(const_cast<Heap*>(heap)->until_sample, uint64_t{0});
}

// Sequentially consistent, and written anew until it is what is wanted: see settle_fast_limit.
void settle_mean() {
  const auto wanted = [] {
    const uint64_t profile = __atomic_load_n(&profiled, __ATOMIC_SEQ_CST);
    return profile != 0 ? profile : guards::mean();
  };
  uint64_t mean;
  do {
    mean = wanted();
    if (__atomic_exchange_n(&mean_now, mean, __ATOMIC_SEQ_CST) != mean) renew_counts();
  } while (mean != wanted());
  heap::settle_fast_limit();
}

void switch_to(uint64_t mean) {
  __atomic_store_n(&profiled, mean, __ATOMIC_SEQ_CST);
  settle_mean();
}

void draw_count(Heap* heap, uint64_t mean) {
  // No system call, because this call may make others. Threads and runs must differ, no more.
  const uint64_t seed = slab::secret() ^ reinterpret_cast<uintptr_t>(heap) ^ os::now_ns();
  if (heap->sample_random == 0) heap->sample_random = seed * 0x9e3779b97f4a7c15u | 1;
  heap->sample_mean = mean;
  set_relaxed(heap->until_sample, next_count(&heap->sample_random, mean));
}

void add(void* block, size_t size) {
  if (relaxed(profiled) == 0) return;
  if (current_table() == nullptr) {
    const bool look = __atomic_exchange_n(&claims, false, __ATOMIC_RELAXED);
    if (look && !open_table(claim_table)) switch_to(0);  // nobody would see the samples
    if (current_table() == nullptr) return;
  }
  const base::KeepErrno keep;
  const uint64_t mean = heap::thread_heap->sample_mean;
  const Weight weight = weight_of(size, mean);
  void* frames[HUMMOCK_PROFILE_DEPTH];
  const unsigned count = trace::callers(frames, HUMMOCK_PROFILE_DEPTH);
  add_sample({block, size, weight.bytes, weight.blocks, heap::thread_heap->thread_id}, frames, count);
  HUMMOCK_PROBE3(otel_memory, alloc, block, size, weight.bytes);
  // The request has waited for a call that leaves the fast path: this thread holds no lock here.
  unsigned calls = 1;
  if (heap::is_asked()) heap::observer.serve(&calls);
}

void end(const hummock_profile_sample_t& sample) {
  HUMMOCK_PROBE1(otel_memory, free, sample.block);
  end_sample(sample);
}

}  // namespace

uint64_t mean() {
  return __atomic_load_n(&mean_now, __ATOMIC_SEQ_CST);
}

namespace {

// Hooks are no reason: they come and go.
bool is_excluded() {
  return heap::is_replaced() || recording::is_on();
}

int why_not(uint64_t mean) {
  if (mean > kMostMean) return EINVAL;
  heap::initialise();
  return is_excluded() ? EPERM : 0;
}

int set_mean_now(uint64_t mean) {
  switch_to(mean);
  tell_state(mean != 0, mean);
  return 0;
}

}  // namespace

int set_mean(uint64_t mean) {
  if (const int error = why_not(mean)) return error;
  return mean == 0 || open_table(find_memory) ? set_mean_now(mean) : ENOMEM;
}

bool set_mean_some(uint64_t mean, os::SharedInSteps* so_far, int* error) {
  *error = why_not(mean);
  if (*error != 0) return true;
  if (mean != 0 && current_table() == nullptr) {
    if (so_far->memory == nullptr) {
      if (os::shares_memory(kVariable) && open_table(claim_table)) return false;
      if (!os::map_shared_some(so_far, HUMMOCK_PROFILE_NAME, sizeof(hummock_profile_t))) return false;
      *error = ENOMEM;
      return so_far->memory == nullptr;
    }
    if (open_table([so_far] { return so_far->memory; })) so_far->memory = nullptr;
    return false;
  }
  *error = set_mean_now(mean);
  return true;
}

void start(uint64_t mean) {
  if (is_excluded()) return;
  set_relaxed(mean_last, mean);
  // Memory of our own is made at once: later the program may have given up the right to.
  if (!os::shares_memory(kVariable)) {
    set_mean(mean);
    return;
  }
  set_relaxed(claims, true);
  switch_to(mean);
}

void in_child() {
  if (is_excluded()) return;
  set_table(nullptr, 0);
  opening = false;
  claims = os::shares_memory(kVariable) && mean_last != 0;
  switch_to(claims ? mean_last : 0);
  if (heap::thread_heap->attached) heap::thread_heap->sample_random = 0;  // else it draws as its parent
}

void renew_guards() {
  if (is_excluded()) return;
  guards::renew();
  settle_mean();
}

bool is_due(size_t size) {
  const uint64_t mean = relaxed(mean_now);
  if (mean == 0) return false;
  Heap* heap = heap::attach();
  if (heap == nullptr || heap == &heap::ended_heap) return false;
  const bool stale =
      heap->sample_random == 0 || heap->sample_mean != mean || relaxed(heap->until_sample) == 0;
  if (stale) draw_count(heap, mean);
  if (stale && heap::passes(heap, size)) return false;
  draw_count(heap, mean);
  return true;
}

void* allocate_small(size_t align, size_t size, bool zero) {
  void* block = guards::allocate(align, size);
  if (block == nullptr && relaxed(profiled) != 0) {
    UserHeap* heap = own_heap();
    const base::KeepErrno keep;
    block = heap != nullptr ? user_take(heap, align, size, zero) : nullptr;
  }
  if (block != nullptr) add(block, size);
  return block;
}

void mark_large(void* block, size_t size) {
  UserHeap* heap = relaxed(profiled) != 0 ? own_heap() : nullptr;
  if (heap == nullptr) return;
  add(block, size);
  set_relaxed(pages::find_header(block)->user, heap);
}

void forget(const void* p) {
  hummock_profile_sample_t sample;
  if (take_sample(p, &sample)) end(sample);
}

bool release(const heap::Block& block, void* p) {
  const bool large = block.is_large();
  const Kind kind = large ? heap::claim_large("free", block.header) : Kind::slab;
  forget(p);
  if (!large) return false;
  block.header->user = nullptr;
  heap::release_large(block.header, kind);
  return true;
}

Rest begin_resize(const heap::Block& block) {
  Rest rest = {};
  if (block.heap == nullptr || !block.heap->samples) return rest;
  rest.had = take_sample(block.header->start, &rest.sample);
  block.header->user = nullptr;
  return rest;
}

void end_resize(const Rest& rest, const heap::Block& block, void* resized, size_t size) {
  if (resized == nullptr) {
    if (!rest.had) return;
    put_back(rest.sample);
    block.header->user = block.heap;
    return;
  }
  if (rest.had) end(rest.sample);
  if (relaxed(mean_now) != 0 && !heap::passes(heap::thread_heap, size) && is_due(size))
    mark_large(resized, size);
}

}  // namespace hummock::modes::sampling
