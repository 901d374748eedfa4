#include "modes/checked.h"

#include <string.h>

#include <initializer_list>

#include "base/options.h"
#include "base/system.h"
#include "heap/attach.h"
#include "heap/block.h"
#include "heap/user.h"
#include "modes/checked_record.h"
#include "modes/quarantine.h"
#include "os/os.h"
#include "trace/backtrace.h"

namespace hummock::modes::checked {
namespace {

using RecordList = base::List<Record, &Record::next, &Record::prev>;

constexpr unsigned kHeaps = 4;
constexpr size_t kMostAlign = size_t{1} << 31;  // so that the record's fields hold what they must

os::Lock<os::Rank::checked> lock;
UserHeap* heaps[kHeaps];  // each set once, atomically
RecordList live;          // guarded by lock

// Both guarded by lock.
Quarantine freed;
// The last blocks that are too large for the quarantine keep their addresses but not their memory, so that a
// thread which frees one once more finds its record and not a hole.
Quarantine hollow;
constexpr size_t kMostHollow = 8;

Quarantine& quarantine_of(const Record* record) {
  return record->hollow ? hollow : freed;
}

UserHeap* own_heap() {
  const unsigned mine = trace::thread_number() % kHeaps;
  if (UserHeap* heap = __atomic_load_n(&heaps[mine], __ATOMIC_ACQUIRE)) return heap;
  UserHeap* fresh = heap::new_user_heap(true);
  UserHeap* none = nullptr;
  if (fresh == nullptr) return nullptr;
  if (__atomic_compare_exchange_n(&heaps[mine], &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    return fresh;
  }
  delete_user_heap(fresh);
  return none;
}

// ---- The lists; the caller has the lock ---------------------------------------------------------

void take_out_live(Record* record) {
  if (next_looked == record) next_looked = record->next;
  live.remove(record);
}

// ---- The end of a block -------------------------------------------------------------------------

// Out of quarantine for good.
void let_go(Record* record) {
  if (!is_whole(record)) {
    report(report_line() << "the record of a freed block at " << static_cast<const void*>(record)
                         << " was overwritten");
  }
  check_guards("free", record);
  check_poison("free", record);
  UserHeap* heap = record->heap;
  const bool awaited = is_awaited(record);
  record->seal = 0;
  announce_room(record);
  const bool whole = !record->hollow || allow_inside(record);
  if (whole) heap::user_take_back(heap, record);  // else its addresses are lost
  // release: pairs with the acquire of all_left; all of the above is done.
  if (awaited) __atomic_fetch_sub(&heap->leaving, 1, __ATOMIC_RELEASE);
}

// Waits until nobody holds a block of the heap that he took out of quarantine; no more come. It takes as long
// as a few frees, unless he stopped for good: to report something, or under the very signal we run in.
bool all_left(const UserHeap* heap) {
  for (int i = 0; __atomic_load_n(&heap->leaving, __ATOMIC_ACQUIRE) != 0; ++i) {
    if (i == 2000) return false;
    i < 1000 ? os::yield() : os::sleep_ms(1);
  }
  return true;
}

// Aborts with a report if `call` must not free this block. Of several threads that try at once, only the one
// whose exchange finds the block live goes on, and has it to itself.
void claim(const char* call, Record* record) {
  if (relaxed(record->array) == Array::yes) {
    report(report_line() << call << "(" << static_cast<const void*>(record->user())
                         << "): the block is of operator new[], only delete[] may free it",
           record);
  }
  State state = State::live;
  State freeing = State::freeing;
  // acquire: pairs with the release of a realloc that gave the block back.
  if (!__atomic_compare_exchange(&record->state, &state, &freeing, false, __ATOMIC_ACQUIRE,
                                 __ATOMIC_RELAXED)) {
    await_freed(record);
    report(report_line() << call << "(" << static_cast<const void*>(record->user())
                         << "): double free: the block of " << record->size << " bytes is free already",
           record);
  }
  check_guards(call, record);
}

void let_go_all(Record* surplus) {
  while (surplus != nullptr) {
    Record* oldest = surplus;
    surplus = oldest->next;
    let_go(oldest);
  }
}

// The block is claimed.
void retire(Record* record) {
  record->freed_in = trace::thread_number();
  record->freed_by = current_stack(options::values.stacks);
  const size_t most = options::values.quarantine;
  record->hollow = record->size > most && may_be_hollow(record);
  poison(record);
  announce_end(record);
  if (record->hollow) deny_inside(record);
  Record* surplus;
  {
    os::LockGuard guard(lock);
    take_out_live(record);
    // release: who reads freed sees the stack of the free.
    set_state(record, State::freed);
    Quarantine& all = quarantine_of(record);
    push(all, record);
    surplus = record->hollow ? take_surplus(all, SIZE_MAX, kMostHollow) : take_surplus(all, most, SIZE_MAX);
  }
  let_go_all(surplus);
}

// Memory is short.
void empty_quarantines() {
  for (Quarantine* all : {&hollow, &freed}) {
    Record* surplus;
    {
      os::LockGuard guard(lock);
      surplus = take_surplus(*all, 0, 0);
    }
    let_go_all(surplus);
  }
}

Record* live_record(const char* call, const void* p) {
  Record* record = find_record(call, p);
  if (state_of(record) == State::live) return record;
  await_freed(record);
  report(report_line() << call << "(" << p << "): the block of " << record->size << " bytes was freed",
         record);
}

}  // namespace

void* allocate(UserHeap* heap, size_t align, size_t size, bool zero) {
  const size_t extra = align > Record::kUnit ? align : 0;
  size_t total;
  if (extra > kMostAlign || __builtin_add_overflow(size, sizeof(Record) + 2 * kGuard + extra, &total)) {
    return heap::no_memory();
  }
  if (heap == nullptr) heap = own_heap();
  if (heap == nullptr) return heap::no_memory();
  char* raw = static_cast<char*>(user_take(heap, 0, total, zero));
  if (raw == nullptr) {
    empty_quarantines();
    raw = static_cast<char*>(user_take(heap, 0, total, zero));
  }
  if (raw == nullptr) return nullptr;
  auto* record = reinterpret_cast<Record*>(raw);
  char* user = reinterpret_cast<char*>(base::align_up(
      reinterpret_cast<uintptr_t>(raw) + sizeof(Record) + kGuard, extra != 0 ? extra : Record::kUnit));
  const size_t after = static_cast<size_t>(raw + heap::room_of(pages::find_slab(raw)) - (user + size));
  record->size = size;
  record->heap = heap;
  record->before = static_cast<uint32_t>(static_cast<size_t>(user - raw) / Record::kUnit);
  record->after = static_cast<uint16_t>(after < kMostGuard ? after : kMostGuard);
  record->align_log = align == 0 ? 0 : static_cast<uint8_t>(base::log2_floor(align));
  record->array = Array::no;
  record->hollow = false;
  fill_guards(record);
  if (!zero) memset(user, kFresh, size < kMostGuard ? size : kMostGuard);
  record->allocated_in = trace::thread_number();
  record->allocated_by = current_stack(options::values.stacks);
  seal(record);
  announce(record, zero);
  set_state(record, State::live);
  os::LockGuard guard(lock);
  live.push_front(record);
  return user;
}

namespace {

// The caller has claimed the block. `heap`: the one that was named; null: none was.
void check_heap(const char* call, Record* record, const void* p, const UserHeap* heap) {
  if (heap == nullptr || record->heap == heap) return;
  report(report_line() << call << "(" << p << "): the block is of another heap", record);
}

}  // namespace

// The block is claimed before it is read: nobody else can let it go meanwhile.
void* reallocate(UserHeap* heap, void* p, size_t size, bool zero) {
  const char* call = heap == nullptr ? "realloc" : "hummock_heap_realloc";
  Record* record = live_record(call, p);
  claim(call, record);
  check_heap(call, record, p, heap);
  if (heap == nullptr && !is_process_heap(record->heap)) heap = record->heap;
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
  check_heap(call, record, p, heap);
  retire(record);
}

void release_sized(const char* call, void* p, size_t align, size_t size) {
  Record* record = find_record(call, p);
  claim(call, record);
  if (record->size != size) {
    report(report_line() << call << "(" << p << "): the block was asked with " << record->size
                         << " bytes, not " << size,
           record);
  }
  if (align > 1 && record->align() != align) {  // each block is aligned to 1
    report(report_line() << call << "(" << p << "): the block was asked with alignment " << record->align()
                         << ", not " << align,
           record);
  }
  retire(record);
}

bool forget(UserHeap* heap) {
  {
    os::LockGuard guard(lock);
    for (Record* record = live.front(); record != nullptr;) {
      Record* next = record->next;
      if (record->heap == heap) {
        take_out_live(record);
        announce_end(record);
        announce_room(record);
      }
      record = next;
    }
    for (Quarantine* all : {&freed, &hollow}) drop(*all, heap);
  }
  return all_left(heap);
}

void note_array(void* p) {
  set_relaxed(live_record("operator new[]", p)->array, Array::yes);
}

// Two threads that delete at once both find a block of new[]; claim() then reports the second.
void expect_array(void* p) {
  Record* record = find_record("operator delete[]", p);
  Array array = Array::yes;
  Array claimed = Array::claimed;
  const bool first =
      __atomic_compare_exchange(&record->array, &array, &claimed, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  if (first || array == Array::claimed || state_of(record) != State::live) return;
  report(report_line() << "operator delete[](" << p << "): the block is not of operator new[]", record);
}

namespace {

bool is_sound(Record* record) {
  return is_whole(record) && guards_hold(record) &&
         (state_of(record) != State::freed || poison_holds(record));
}

[[noreturn]] void say_unsound(Record* record) {
  if (!is_whole(record)) {
    report(report_line() << "at the end: the record of a block at " << static_cast<const void*>(record)
                         << " was overwritten");
  }
  check_guards("at the end", record);
  check_poison("at the end", record);
  base::stop();
}

// The next few of a list; the first unsound one of them, or null. With the lock held, but not while a report
// is made: a handler of its abort may call us.
Record* look_at_some() {
  constexpr unsigned kSome = 16;
  os::LockGuard guard(lock);
  for (unsigned i = 0; i < kSome && next_looked != nullptr; ++i) {
    Record* record = next_looked;
    if (!is_sound(record)) return record;
    next_looked = record->next;
  }
  return nullptr;
}

enum class Where { live, freed, hollow };

bool begin_looking(Where where) {
  os::LockGuard guard(lock);
  next_looked = where == Where::live ? live.front() : where == Where::freed ? freed.oldest : hollow.oldest;
  return next_looked != nullptr;
}

bool is_looking() {
  os::LockGuard guard(lock);
  return next_looked != nullptr;
}

}  // namespace

// A block that is freed meanwhile goes from the first list to the end of another, and is looked at there.
void check_all() {
  if (!heap::is_checked()) return;
  for (const Where where : {Where::live, Where::freed, Where::hollow}) {
    for (bool more = begin_looking(where); more; more = is_looking()) {
      if (Record* record = look_at_some()) say_unsound(record);
    }
  }
}

void lock_for_fork() {
  lock.lock_for_fork();
}
void unlock_after_fork() {
  lock.unlock_after_fork();
}
void unlock_in_child() {
  trace::forget_thread_number();
  lock.unlock_in_child();
}
bool is_locked() {
  return lock.is_held();
}

}  // namespace hummock::modes::checked
