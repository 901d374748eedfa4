#include "heap/checked.h"

#include <string.h>

#include "base/options.h"
#include "heap/attach.h"
#include "heap/block.h"
#include "heap/checked_record.h"
#include "heap/user.h"
#include "os/backtrace.h"

namespace hummock::heap::checked {
namespace {

using base::Line;
using RecordList = base::List<Record, &Record::next, &Record::prev>;

constexpr unsigned kHeaps = 4;

os::Lock lock;
Heap* heaps[kHeaps];  // guarded by lock until set, then fixed
RecordList live;      // guarded by lock
RecordList freed;     // the quarantine, oldest first. Guarded by lock.
size_t freed_bytes;   // guarded by lock

Heap* own_heap() {
  const unsigned mine = os::thread_number() % kHeaps;
  if (Heap* heap = __atomic_load_n(&heaps[mine], __ATOMIC_ACQUIRE)) return heap;
  Heap* fresh = new_user_heap();
  Heap* none = nullptr;
  if (fresh == nullptr) return nullptr;
  if (__atomic_compare_exchange_n(&heaps[mine], &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    return fresh;
  }
  delete_user_heap(fresh);
  return none;
}

__attribute__((noinline)) void note(Record* record, State which) {
  Event& event = which == State::live ? record->allocated : record->freed;
  event.thread = os::thread_number();
  event.frames = os::callers(record->frames_of(which), record->most_frames);
}

// Out of quarantine for good.
void let_go(Record* record) {
  if (record->seal != record->expected_seal()) {
    base::die(Line() << "the record of a freed block at " << static_cast<const void*>(record)
                     << " was overwritten");
  }
  check_guards("free", record);
  check_poison("free", record);
  record->seal = 0;
  user_give(record->heap, record);
}

// The oldest of the quarantine when it holds too much, else null.
Record* take_surplus(size_t most) {
  os::LockGuard guard(lock);
  if (freed_bytes <= most) return nullptr;
  Record* record = freed.front();
  if (record == nullptr) return nullptr;
  freed.remove(record);
  freed_bytes -= record->room;
  return record;
}

void release_record(const char* call, Record* record) {
  if (record->state == State::freed) {
    report(Line() << call << "(" << static_cast<const void*>(record->user) << "): double free: the block of "
                  << record->size << " bytes is free already",
           record);
  }
  if (record->array) {
    report(Line() << call << "(" << static_cast<const void*>(record->user)
                  << "): the block is of operator new[], only delete[] may free it",
           record);
  }
  check_guards(call, record);
  note(record, State::freed);
  {
    os::LockGuard guard(lock);
    live.remove(record);
    record->state = State::freed;
    seal(record);
    poison(record);
    freed.push_back(record);
    freed_bytes += record->room;
  }
  while (Record* oldest = take_surplus(options::values.quarantine)) let_go(oldest);
}

Record* live_record(const char* call, const void* p) {
  Record* record = find_record(call, p);
  if (record->state == State::live) return record;
  report(Line() << call << "(" << p << "): the block of " << record->size << " bytes was freed", record);
}

template <class Visit>
void for_each(RecordList& list, Visit visit) {
  for (Record* record = list.front(); record != nullptr;) {
    Record* next = record->next;
    visit(record);
    record = next;
  }
}

}  // namespace

void* allocate(Heap* heap, size_t align, size_t size, bool zero) {
  const size_t room_before = record_size() + kGuard;
  const size_t extra = align > slab::kStep ? align : 0;
  size_t total;
  if (__builtin_add_overflow(size, room_before + extra + kGuard, &total)) return no_memory();
  if (heap == nullptr) heap = own_heap();
  if (heap == nullptr) return no_memory();
  char* raw = static_cast<char*>(user_take(heap, 0, total, zero));
  if (raw == nullptr) return nullptr;
  auto* record = reinterpret_cast<Record*>(raw);
  record->user = reinterpret_cast<char*>(
      base::align_up(reinterpret_cast<uintptr_t>(raw) + room_before, extra != 0 ? extra : slab::kStep));
  record->size = size;
  record->align = align;
  record->room = find_block("malloc", raw).room;
  record->heap = heap;
  record->state = State::live;
  record->array = false;
  record->most_frames = static_cast<uint32_t>(options::values.stacks);
  fill_guards(record);
  if (!zero) memset(record->user, kFresh, size < kMostGuard ? size : kMostGuard);
  note(record, State::live);
  os::LockGuard guard(lock);
  seal(record);
  live.push_front(record);
  return record->user;
}

void* reallocate(Heap* heap, void* p, size_t size, bool zero) {
  Record* record = live_record("realloc", p);
  check_guards("realloc", record);
  if (heap == nullptr && !is_process_heap(record->heap)) heap = record->heap;
  void* fresh = allocate(heap, 0, size, zero);
  if (fresh == nullptr) return nullptr;
  memcpy(fresh, p, record->size < size ? record->size : size);
  release_record("realloc", record);
  return fresh;
}

bool is_process_heap(const Heap* heap) {
  for (const Heap* each : heaps) {
    if (each == heap) return true;
  }
  return false;
}

size_t usable_size(const void* p) {
  return live_record("malloc_usable_size", p)->size;
}

void release(const char* call, void* p) {
  release_record(call, find_record(call, p));
}

void release_sized(const char* call, void* p, size_t align, size_t size) {
  Record* record = find_record(call, p);
  if (record->state == State::live && record->size != size) {
    report(Line() << call << "(" << p << "): the block was asked with " << record->size << " bytes, not "
                  << size,
           record);
  }
  if (record->state == State::live && align != 0 && record->align != align) {
    report(Line() << call << "(" << p << "): the block was asked with alignment " << record->align << ", not "
                  << align,
           record);
  }
  release_record(call, record);
}

void forget(Heap* heap) {
  os::LockGuard guard(lock);
  for_each(live, [&](Record* record) {
    if (record->heap == heap) live.remove(record);
  });
  for_each(freed, [&](Record* record) {
    if (record->heap != heap) return;
    freed.remove(record);
    freed_bytes -= record->room;
  });
}

void note_array(void* p) {
  live_record("operator new[]", p)->array = true;
}

void expect_array(void* p) {
  Record* record = find_record("operator delete[]", p);
  if (record->state == State::live && !record->array) {
    report(Line() << "operator delete[](" << p << "): the block is not of operator new[]", record);
  }
  record->array = false;
}

void check_all() {
  if (!is_checked()) return;
  os::LockGuard guard(lock);
  const auto check = [](Record* record) {
    if (record->seal != record->expected_seal()) {
      base::die(Line() << "at the end: the record of a block at " << static_cast<const void*>(record)
                       << " was overwritten");
    }
    check_guards("at the end", record);
  };
  for_each(live, check);
  for_each(freed, [&](Record* record) {
    check(record);
    check_poison("at the end", record);
  });
}

void lock_for_fork() {
  lock.lock_for_fork();
}
void unlock_after_fork() {
  lock.unlock_after_fork();
}
void unlock_in_child() {
  lock.unlock_in_child();
}
bool is_locked() {
  return lock.is_held();
}

}  // namespace hummock::heap::checked
