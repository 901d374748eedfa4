#include "modes/sample_table.h"

#include <string.h>

#include "os/os.h"
#include "pages/slab_header.h"
#include "trace/code_file.h"

namespace hummock::modes::sampling {
namespace {

using Profile = hummock_profile_t;
using Entry = hummock_profile_sample_t;
using Stack = hummock_profile_stack_t;

static_assert(sizeof(Profile) % 4096 == 0);

constexpr uint64_t kWriting = 1;
constexpr unsigned kWays = 1024;   // a block's sample may be in so many places, one after the other
constexpr unsigned kProbes = 128;  // a stack may be in so many places of the index

Profile* table;  // atomic: released when its head is written
unsigned owner;  // the table's process. Written before the table

// Null in a child without fork handlers, as after vfork: the table that it shares is its parent's.
Profile* own_table() {
  Profile* in = current_table();
  return in != nullptr && owner == os::process_id() ? in : nullptr;
}

// How many entries are handed out; the head says the same to readers. Atomic, relaxed: each is handed out
// once.
struct Used {
  uint32_t stacks, frames, modules;
} used;

template <class T>
T load(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}
template <class T>
void add(T& word, T value) {
  __atomic_fetch_add(&word, value, __ATOMIC_RELAXED);
}
// Others may have overwritten the sum, so it may be less than what is subtracted.
void take_off(uint64_t& word, uint64_t value) {
  __atomic_fetch_sub(&word, value, __ATOMIC_RELAXED);
}

// The next free number of a table with `size` entries; `size`: it is full.
uint32_t next_number(uint32_t& counter, uint32_t size, uint32_t count = 1) {
  uint32_t number = load(counter);
  do {
    if (number > size || size - number < count) return size;
  } while (!__atomic_compare_exchange_n(&counter, &number, number + count, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return number;
}

uint64_t mix(uint64_t word) {
  word *= 0x9e3779b97f4a7c15u;
  return word ^ (word >> 32);
}

uint64_t hash_of(void* const* frames, unsigned count) {
  uint64_t hash = count;
  for (unsigned i = 0; i < count; ++i) hash = mix(hash ^ reinterpret_cast<uintptr_t>(frames[i]));
  return hash | 1;
}

// ---- Modules ------------------------------------------------------------------------------------

bool is_known(const Profile* to, const trace::CodeFile& file) {
  uint32_t count = load(used.modules);
  while (count != 0) {
    const hummock_profile_module_t& each = to->module[--count];
    // acquire: pairs with the release in note_module.
    if (__atomic_load_n(&each.start, __ATOMIC_ACQUIRE) == file.start)
      return load(each.end) == file.end && load(each.base) == file.base;
  }
  return false;
}

// If two threads both write one, it does no harm.
void note_module(Profile* to, const void* code) {
  trace::CodeFile file;
  if (!trace::find_code_file(reinterpret_cast<uintptr_t>(code) - 1, &file) || is_known(to, file)) return;
  const uint32_t number = next_number(used.modules, HUMMOCK_PROFILE_MODULES);
  if (number == HUMMOCK_PROFILE_MODULES) return;
  hummock_profile_module_t& entry = to->module[number];
  trace::path_of_code_file(file, entry.path, sizeof entry.path);
  set_relaxed(entry.end, uint64_t{file.end});
  set_relaxed(entry.base, uint64_t{file.base});
  set_relaxed(entry.since, os::now_ns());
  __atomic_store_n(&entry.start, uint64_t{file.start}, __ATOMIC_RELEASE);  // last: is_known reads it first
  __atomic_store_n(&to->head.modules, load(used.modules), __ATOMIC_RELEASE);
}

// ---- Stacks -------------------------------------------------------------------------------------

bool is_same(const Profile* in, const Stack& stack, uint64_t hash, void* const* frames, unsigned count) {
  if (load(stack.hash) != hash || load(stack.depth) != count) return false;
  const uint32_t first = load(stack.first);
  if (first > HUMMOCK_PROFILE_FRAMES - count) return false;
  for (unsigned i = 0; i < count; ++i) {
    if (load(in->frame[first + i]) != reinterpret_cast<uintptr_t>(frames[i])) return false;
  }
  return true;
}

// Returns 0 if the tables are full.
uint32_t make_stack(Profile* in, uint64_t hash, void* const* frames, unsigned count) {
  const uint32_t first = next_number(used.frames, HUMMOCK_PROFILE_FRAMES, count);
  const uint32_t number =
      first != HUMMOCK_PROFILE_FRAMES ? next_number(used.stacks, HUMMOCK_PROFILE_STACKS) : 0;
  if (number == 0 || number == HUMMOCK_PROFILE_STACKS) return 0;
  for (unsigned i = 0; i < count; ++i) {
    note_module(in, frames[i]);
    __atomic_store_n(&in->frame[first + i], reinterpret_cast<uintptr_t>(frames[i]), __ATOMIC_RELAXED);
  }
  Stack& stack = in->stack[number];
  // A reader may find this number while we write: until it has a depth, it is an empty stack.
  set_relaxed(stack.first, first);
  set_relaxed(stack.since, os::now_ns());
  set_relaxed(stack.mark, load(in->head.mark));  // it had no live blocks at the last peak
  set_relaxed(stack.hash, hash);
  // release: pairs with the acquire in the thread that writes a profile, so that it sees first and frames.
  __atomic_store_n(&stack.depth, uint32_t{count}, __ATOMIC_RELEASE);
  __atomic_store_n(&in->head.frames, load(used.frames), __ATOMIC_RELEASE);
  __atomic_store_n(&in->head.stacks, load(used.stacks), __ATOMIC_RELEASE);
  return number;
}

// The number of the stack, known or new. Two threads that bring the same stack at once may both add it: then
// the index leads to one, and the other stays empty.
uint32_t find_stack(Profile* in, void* const* frames, unsigned count) {
  if (count == 0) return 0;
  const uint64_t hash = hash_of(frames, count);
  for (unsigned i = 0; i < kProbes; ++i) {
    uint32_t& place = in->index[(hash + i) % HUMMOCK_PROFILE_INDEX];
    // acquire: pairs with the release below, so that the stack's fields are seen.
    uint32_t number = __atomic_load_n(&place, __ATOMIC_ACQUIRE);
    if (number == 0) {
      const uint32_t fresh = make_stack(in, hash, frames, count);
      if (fresh == 0 ||
          __atomic_compare_exchange_n(&place, &number, fresh, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        return fresh;
    }
    if (number >= HUMMOCK_PROFILE_STACKS) return 0;
    if (is_same(in, in->stack[number], hash, frames, count)) return number;
  }
  return 0;
}

// ---- Sums ---------------------------------------------------------------------------------------

// Before a stack's live bytes change, stores what it had at the last peak, unless that is done.
void note_peak(Profile* of, Stack& stack) {
  const uint32_t mark = load(of->head.mark);
  uint32_t own = load(stack.mark);
  if (own == mark || load(of->head.rising) != 0) return;
  const uint64_t bytes = load(stack.live_bytes), blocks = load(stack.live_blocks);
  if (!__atomic_compare_exchange_n(&stack.mark, &own, mark, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return;
  __atomic_store_n(&stack.peak_bytes, bytes, __ATOMIC_RELAXED);
  __atomic_store_n(&stack.peak_blocks, blocks, __ATOMIC_RELAXED);
}

// This is the peak so far: all stacks' live bytes belong to it.
void end_rise(hummock_profile_head_t* head) {
  if (load(head->rising) == 0) return;
  if (__atomic_exchange_n(&head->rising, 0u, __ATOMIC_RELAXED) != 0) add(head->mark, 1u);
}

void note_rise(hummock_profile_head_t* head, uint64_t live) {
  uint64_t most = load(head->peak_bytes);
  while (live > most) {
    if (!__atomic_compare_exchange_n(&head->peak_bytes, &most, live, true, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
      continue;
    __atomic_store_n(&head->peak_time, os::now_ns(), __ATOMIC_RELAXED);
    __atomic_store_n(&head->rising, 1u, __ATOMIC_RELAXED);
    return;
  }
}

void count_new(Profile* in, Stack& stack, const Sample& sample) {
  add(stack.samples, 1u);
  add(stack.total_bytes, sample.bytes);
  add(stack.total_blocks, sample.blocks);
  add(in->head.samples, uint64_t{1});
  add(in->head.total_bytes, sample.bytes);
  add(in->head.total_blocks, sample.blocks);
}

void count_live(Profile* in, Stack& stack, const Sample& sample) {
  note_peak(in, stack);
  add(stack.live_bytes, sample.bytes);
  add(stack.live_blocks, sample.blocks);
  add(in->head.live_blocks, sample.blocks);
  const uint64_t live = __atomic_add_fetch(&in->head.live_bytes, sample.bytes, __ATOMIC_RELAXED);
  note_rise(&in->head, live);
}

// The range of lifetimes that it falls into.
unsigned age_range(uint64_t ns) {
  unsigned range = 0;
  for (uint64_t end = 100000; range + 1 < HUMMOCK_PROFILE_AGES && ns >= end; end *= 10) ++range;
  return range;
}

// The i-th place that a block's sample may have. The upper bits of the product spread addresses at even
// distances evenly, so that the table can be nearly full.
Entry& place_of(Profile* in, const void* block, unsigned i) {
  constexpr unsigned kBits = 17;
  static_assert(HUMMOCK_PROFILE_SAMPLES == 1 << kBits);
  const uint64_t mixed = (reinterpret_cast<uintptr_t>(block) >> 3) * 0x9e3779b97f4a7c15u;
  return in->sample[((mixed >> (64 - kBits)) + i) % HUMMOCK_PROFILE_SAMPLES];
}

bool keep(Profile* in, const Entry& sample) {
  for (unsigned i = 0; i < kWays; ++i) {
    Entry& entry = place_of(in, reinterpret_cast<const void*>(sample.block), i);
    uint64_t none = 0;
    if (load(entry.block) != 0) continue;
    // acquire: pairs with the release of take_sample, so that its reads come before our writes.
    if (!__atomic_compare_exchange_n(&entry.block, &none, kWriting, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
      continue;
    entry.size = sample.size;
    entry.bytes = sample.bytes;
    entry.blocks = sample.blocks;
    entry.time = sample.time;
    entry.stack = sample.stack;
    entry.thread = sample.thread;
    // release: a reader outside that finds the address finds the rest written. The block's owner needs no
    // more.
    __atomic_store_n(&entry.block, sample.block, __ATOMIC_RELEASE);
    return true;
  }
  return false;
}

}  // namespace

void set_table(Profile* fresh, unsigned process) {
  used = {1, 0, 0};
  owner = process;
  if (fresh != nullptr) fresh->head.stacks = 1;
  __atomic_store_n(&table, fresh, __ATOMIC_RELEASE);
}

Profile* current_table() {
  return __atomic_load_n(&table, __ATOMIC_ACQUIRE);
}

void tell_state(bool on, uint64_t mean) {
  Profile* in = current_table();
  if (in == nullptr) return;
  if (mean != 0) __atomic_store_n(&in->head.mean, mean, __ATOMIC_RELAXED);
  __atomic_store_n(&in->head.on, on ? 1u : 0u, __ATOMIC_RELAXED);
}

void add_sample(const Sample& sample, void* const* frames, unsigned count) {
  Profile* in = own_table();
  if (in == nullptr) return;
  const uint32_t number = find_stack(in, frames, count);
  if (number == 0) add(in->head.stacks_dropped, uint64_t{1});
  Stack& stack = in->stack[number];
  count_new(in, stack, sample);
  const Entry entry = {reinterpret_cast<uintptr_t>(sample.block),
                       sample.size,
                       sample.bytes,
                       sample.blocks,
                       os::now_ns(),
                       number,
                       sample.thread};
  if (!keep(in, entry)) return add(in->head.samples_dropped, uint64_t{1});
  count_live(in, stack, sample);
}

bool take_sample(const void* block, Entry* out) {
  Profile* in = own_table();
  if (in == nullptr) return false;
  for (unsigned i = 0; i < kWays; ++i) {
    Entry& entry = place_of(in, block, i);
    uint64_t own = reinterpret_cast<uintptr_t>(block);
    if (__atomic_load_n(&entry.block, __ATOMIC_ACQUIRE) != own) continue;
    *out = {own, entry.size, entry.bytes, entry.blocks, entry.time, entry.stack, entry.thread};
    // release: pairs with the acquire in keep().
    return __atomic_compare_exchange_n(&entry.block, &own, uint64_t{0}, false, __ATOMIC_RELEASE,
                                       __ATOMIC_RELAXED);
  }
  return false;
}

void end_sample(const Entry& sample) {
  Profile* in = own_table();
  if (in == nullptr || sample.stack >= HUMMOCK_PROFILE_STACKS) return;
  Stack& stack = in->stack[sample.stack];
  end_rise(&in->head);
  note_peak(in, stack);
  add(stack.freed_bytes[age_range(os::now_ns() - sample.time)], sample.bytes);
  take_off(stack.live_bytes, sample.bytes);
  take_off(stack.live_blocks, sample.blocks);
  take_off(in->head.live_blocks, sample.blocks);
  take_off(in->head.live_bytes, sample.bytes);
}

void put_back(const Entry& sample) {
  Profile* in = own_table();
  if (in != nullptr && !keep(in, sample)) end_sample(sample);
}

}  // namespace hummock::modes::sampling
