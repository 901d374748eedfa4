#include "modes/checked.h"

#include <string.h>

#include <initializer_list>

#include "base/options.h"
#include "base/system.h"
#include "heap/attach.h"
#include "heap/block.h"
#include "heap/large.h"
#include "heap/limit_notice.h"
#include "heap/user.h"
#include "modes/canary.h"
#include "modes/checked_record.h"
#include "modes/quarantine.h"
#include "os/os.h"
#include "trace/backtrace.h"

namespace hummock::modes::checked {
namespace {

constexpr unsigned kHeaps = 4;
constexpr uint64_t kMostAlign = uint64_t{1} << 35;  // so that the record's fields hold what they must

UserHeap* heaps[kHeaps];  // each set once, atomically

UserHeap* heap_for(uint32_t thread) {
  return heap::internal_heap(&heaps[thread % kHeaps]);
}

// Another thread may come by the block before it has a record (checked_end.cc).
char* take_raw(UserHeap* heap, size_t total, bool* zeroed) {
  static_assert(offsetof(Record, state) == sizeof(uintptr_t) && sizeof(State) == 4);
  return static_cast<char*>(user_take_marked(heap, total, static_cast<uintptr_t>(State::none), zeroed));
}

void clear(const char* raw, char* user, size_t size) {
  SlabHeader* header = pages::find_slab(raw);
  if (kind_of(header) == Kind::own_slab) {
    memset(user, 0, size);
  } else {
    heap::clear_large(header, static_cast<size_t>(user - raw));
  }
}

// Of a block of so many bytes.
size_t room_for(const char* raw, size_t total) {
  if (total <= slab::kMaxSmall) return slab::kTable.row[slab::class_of(total)].block_size;
  return heap::room_of(pages::find_slab(raw));
}

// The next three abort with a report if `call` must not free this block.
void expect_no_array(const char* call, Record* record) {
  if (relaxed(record->maker) == Maker::array && state_of(record) == State::live) say_array(call, record);
}

void claim(const char* call, Record* record) {
  if (!try_claim(record)) say_double_free(call, record);
  check_guards(call, record);
}

void check_align(const char* call, Record* record, size_t align) {
  // Each block is aligned to 1.
  if (align > 1 && record->align() != align) say_other_align(call, record, align);
}

Record* live_record(const char* call, const void* p) {
  Record* record = find_record(call, p);
  if (state_of(record) != State::live) say_freed(call, record);
  return record;
}

}  // namespace

void* allocate(UserHeap* heap, size_t align, size_t size, bool zero) {
  const size_t extra = align > Record::kUnit ? align : 0;
  size_t total;
  if (extra > kMostAlign || __builtin_add_overflow(size, sizeof(Record) + 2 * kGuard + extra, &total)) {
    return heap::no_memory();
  }
  const uint32_t thread = trace::thread_number();
  if (heap == nullptr) heap = heap_for(thread);
  if (heap == nullptr) return heap::no_memory();
  bool zeroed;
  char* raw = take_raw(heap, total, &zeroed);
  if (raw == nullptr) {
    empty_quarantine();
    heap::forget_refusals();
    raw = take_raw(heap, total, &zeroed);
    if (raw == nullptr) return heap::no_memory();
  }
  auto* record = reinterpret_cast<Record*>(raw);
  char* user = reinterpret_cast<char*>(base::align_up(
      reinterpret_cast<uintptr_t>(raw) + sizeof(Record) + kGuard, extra != 0 ? extra : Record::kUnit));
  const size_t after = static_cast<size_t>(raw + room_for(raw, total) - (user + size));
  if (zero && !zeroed) clear(raw, user, size);
  record->size = size;
  record->before = static_cast<uint32_t>(static_cast<size_t>(user - raw) / Record::kUnit);
  record->after = static_cast<uint16_t>(after < kMostGuard ? after : kMostGuard);
  record->align_log = align == 0 ? 0 : static_cast<uint16_t>(base::log2_floor(align));
  record->maker = Maker::other;
  record->hollow = false;
  fill_guards(record);
  if (!zero) fill(user, kFresh, size < kMostGuard ? size : kMostGuard);
  record->allocated = {current_stack(options::values.stacks), thread};
  seal(record);
  announce(record, zero);
  set_state(record, State::live);
  return user;
}

void retire(Record* record) {
  record->freed = {current_stack(options::values.stacks), trace::thread_number()};
  poison(record);
  announce_end(record);
  // release: who reads freed sees the stack of the free.
  set_state(record, State::freed);
  put_in_quarantine(record);
}

namespace {

// The caller has claimed the block. `heap`: the one that was named; null: none was.
void check_heap(const char* call, Record* record, const UserHeap* heap) {
  if (heap != nullptr && heap_of(record) != heap) say_other_heap(call, record);
}

}  // namespace

// The block is claimed before it is read: nobody else can let it go meanwhile.
void* reallocate(UserHeap* heap, void* p, size_t size, bool zero) {
  const char* call = heap == nullptr ? "realloc" : "hummock_heap_realloc";
  Record* record = live_record(call, p);
  expect_no_array(call, record);
  claim(call, record);
  check_heap(call, record, heap);
  if (heap == nullptr && !is_process_heap(heap_of(record))) heap = heap_of(record);
  void* fresh = allocate(heap, 0, size, zero);
  if (fresh == nullptr) {
    set_state(record, State::live);
    return nullptr;
  }
  memcpy(fresh, p, record->size < size ? record->size : size);
  retire(record);
  return fresh;
}

bool is_process_heap(const UserHeap* heap) {
  // Relaxed: who has a block of such a heap, or a pointer to it, came by it after it was set.
  for (UserHeap* const& each : heaps) {
    if (relaxed(each) == heap) return true;
  }
  return false;
}

size_t usable_size(const void* p) {
  return live_record("malloc_usable_size", p)->size;
}

void release(const char* call, void* p, const UserHeap* heap) {
  Record* record = find_record(call, p);
  claim(call, record);
  check_heap(call, record, heap);
  retire(record);
}

void release_sized(const char* call, void* p, size_t align, size_t size) {
  Record* record = find_record(call, p);
  expect_no_array(call, record);
  claim(call, record);
  if (record->size != size) say_other_size(call, record, size);
  check_align(call, record, align);
  retire(record);
}

void note_one(void* p) {
  set_relaxed(live_record("operator new", p)->maker, Maker::one);
}

void note_array(void* p) {
  set_relaxed(live_record("operator new[]", p)->maker, Maker::array);
}

void expect_one(void* p) {
  expect_no_array("operator delete", find_record("operator delete", p));
}

// Two threads that delete at once both find a block of new[]; claim() then reports the second.
void expect_array(void* p) {
  Record* record = find_record("operator delete[]", p);
  Maker maker = Maker::array;
  Maker claimed = Maker::claimed;
  const bool first =
      __atomic_compare_exchange(&record->maker, &maker, &claimed, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  if (first || maker != Maker::one || state_of(record) != State::live) return;
  say_not_array("operator delete[]", record);
}

void expect_aligned(void* p, size_t align) {
  Record* record = find_record("operator delete", p);
  // What other makers ask for, libraries with operators of their own may have rounded up.
  if (relaxed(record->maker) == Maker::other || state_of(record) != State::live) return;
  check_align("operator delete", record, align);
}

}  // namespace hummock::modes::checked
