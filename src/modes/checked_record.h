// Checked mode's record before each block: [record | guard | block | guard].
#ifndef HUMMOCK_MODES_CHECKED_RECORD_H
#define HUMMOCK_MODES_CHECKED_RECORD_H

#include "base/annotate.h"
#include "base/message.h"
#include "heap/modes.h"
#include "modes/canary.h"
#include "modes/stacks.h"

namespace hummock::modes::checked {

// none → live → freeing → freed → none; and from freeing back to live when a realloc finds no memory. The
// thread that brings a block to freeing frees it; if two try at once, the other is reported. `none`: there is
// no record yet, or none any more. All values are unlikely in memory that was overwritten.
enum class State : uint32_t {
  none = 0x656e6f6e,
  live = 0x6576696c,
  freeing = 0x676e6966,
  freed = 0x64656566
};

// What allocated the block: operator new, or new[], whose delete[] claims it before it is freed. Anything
// else may be the new[] of a library with operators of its own, hidden inside it (-static-libstdc++), which
// call malloc and free.
enum class Maker : uint8_t { other, one, array, claimed };

// Small, because each block has one, and with its front guard one line of the processor's cache. The block's
// place is stored in units of 16 bytes. Its heap is its slab's.
struct alignas(16) Record {
  uintptr_t seal;      // over the fields that matter, so that an overwritten record shows. Atomic
  State state;         // atomic; a release to live or freed makes the events readable
  Maker maker;         // atomic
  bool hollow;         // freed, but too large for the quarantine
  size_t size;         // exactly what the program asked for
  uint32_t before;     // from the record to the block, in units
  uint16_t after;      // guarded bytes behind the block
  uint16_t align_log;  // of the alignment asked for; 0: none
  Event allocated;
  union {  // written by the thread that brought the block to freeing
    Event freed;
    Record* next;  // of those that are about to be freed with their heap
  };

  char* user() { return reinterpret_cast<char*>(this) + size_t{before} * kUnit; }
  size_t align() const { return align_log == 0 ? 0 : size_t{1} << align_log; }
  size_t room() const { return size_t{before} * kUnit + size + after; }
  uintptr_t expected_seal() const;

  static constexpr size_t kUnit = 16;
};
static_assert(sizeof(Record) == 48 && offsetof(Record, state) == sizeof(void*));
static_assert(offsetof(Record, align_log) == offsetof(Record, before) + 6);

// Each factor is odd: whichever field alone changes, the sum changes.
inline uintptr_t Record::expected_seal() const {
  uint64_t place;  // from `before` to `align_log`
  __builtin_memcpy(&place, &before, sizeof place);
  const uint64_t sum = reinterpret_cast<uintptr_t>(this) * 0x9e3779b97f4a7c15ull +
                       uint64_t{size} * 0xff51afd7ed558ccdull + place * 0xd6e8feb86659fd93ull +
                       uint64_t{allocated.stack} * 0xa0761d6478bd642full;
  return static_cast<uintptr_t>(sum ^ (sum >> 32)) | 1;
}

// Frees a block that the caller has claimed (modes/checked.cc).
void retire(Record* record);

// ---- Reports (modes/checked_report.cc): of what was found; the process ends ---------------------

// p is no block's start.
[[noreturn]] void say_not_block(const char* call, const void* p);
// The block's record is as it should be in what follows.
[[noreturn]] void say_array(const char* call, Record* record);
[[noreturn]] void say_not_array(const char* call, Record* record);
[[noreturn]] void say_freed(const char* call, Record* record);
[[noreturn]] void say_double_free(const char* call, Record* record);
[[noreturn]] void say_other_heap(const char* call, Record* record);
[[noreturn]] void say_other_size(const char* call, Record* record, size_t size);
[[noreturn]] void say_other_align(const char* call, Record* record, size_t align);
// A guard was overwritten; the byte `at` of a freed block was; the record itself was.
[[noreturn]] void say_guard(const char* call, Record* record);
[[noreturn]] void say_written(const char* call, Record* record, size_t at);
[[noreturn]] void say_overwritten(const char* call, const Record* record);

// ---- Guards and poison ----------------------------------------------------------------------------

inline constexpr size_t kGuard = 16;        // the least guard bytes before and after a block
inline constexpr size_t kMostGuard = 4096;  // the most that are filled
inline constexpr unsigned char kFresh = 0xa5;
inline constexpr unsigned char kGuardByte = 0xfb;
inline constexpr unsigned char kFreed = 0xde;

inline void seal(Record* record) {
  set_relaxed(record->seal, record->expected_seal());
}
void poison(Record* record);
// A block with a mapping of its own may be hollow: then it has no memory except at its ends, and an access
// inside faults. False: the system has no memory.
bool may_be_hollow(Record* record);
void deny_inside(Record* record);
bool allow_inside(Record* record);

inline State state_of(const Record* record) {
  // acquire: pairs with the release that brought the block to this state.
  State state;
  __atomic_load(&record->state, &state, __ATOMIC_ACQUIRE);
  return state;
}
inline void set_state(Record* record, State state) {
  __atomic_store(&record->state, &state, __ATOMIC_RELEASE);
}

// Brings a live block to freeing: of several threads that try at once, one does, and has it to itself.
inline bool try_claim(Record* record) {
  State state = State::live;
  State freeing = State::freeing;
  // acquire: pairs with the release of a realloc that gave the block back.
  return __atomic_compare_exchange(&record->state, &state, &freeing, false, __ATOMIC_ACQUIRE,
                                   __ATOMIC_RELAXED);
}

inline bool is_state(State state) {
  return state == State::live || state == State::freeing || state == State::freed;
}
inline bool is_sealed(const Record* record) {
  // acquire: who sees that a block was let go sees its state, too.
  return __atomic_load_n(&record->seal, __ATOMIC_ACQUIRE) == record->expected_seal();
}
// Is the record as it was sealed, and its state one of the three?
inline bool is_whole(const Record* record) {
  return is_sealed(record) && is_state(state_of(record));
}

inline UserHeap* heap_of(const Record* record) {
  return pages::find_slab(record)->user;
}

// The raw block in which p lies, or null.
Record* raw_block(const void* p);
// The record of the raw block that contains p. Aborts if p is not the block that the program got, or if the
// record was overwritten. The block may be in any state.
inline Record* find_record(const char* call, const void* p) {
  Record* record = raw_block(p);
  if (record == nullptr || !is_whole(record) || record->user() != p) say_not_block(call, p);
  return record;
}

inline unsigned char* front_guard(Record* record) {
  return reinterpret_cast<unsigned char*>(record + 1);
}
inline size_t front_size(const Record* record) {
  return size_t{record->before} * Record::kUnit - sizeof(Record);
}
inline unsigned char* back_guard(Record* record) {
  return reinterpret_cast<unsigned char*>(record->user()) + record->size;
}

inline void fill_guards(Record* record) {
  fill(front_guard(record), kGuardByte, front_size(record));
  fill(back_guard(record), kGuardByte, record->after);
}

// For tools that watch each access (base/annotate.h): the block begins; the block ends; its memory is the
// allocator's again.
inline void announce(Record* record, bool zeroed) {
  base::begin_block(record->user(), record->size, zeroed);
  base::forbid(front_guard(record), front_size(record));
  base::forbid(back_guard(record), record->after);
}
inline void announce_end(Record* record) {
  base::end_block(record->user(), record->size);
}
inline void announce_room(Record* record) {
  base::permit(record, record->room());
}

HUMMOCK_READS_FORBIDDEN inline bool guards_hold(Record* record) {
  static_assert(kGuard >= 16);
  const base::Unwatched unwatched;
  constexpr Words kLine = line_of(kGuardByte);
  return !is_any(others_among(front_guard(record), kLine, front_size(record)) |
                 others_among(back_guard(record), kLine, record->after));
}

// The first byte that was written after the free, or the block's size.
size_t first_written(Record* record);
inline bool poison_holds(Record* record) {
  return first_written(record) == record->size;
}

// Abort with a report if a guard or the poison was overwritten.
inline void check_guards(const char* call, Record* record) {
  if (!guards_hold(record)) say_guard(call, record);
}
inline void check_poison(const char* call, Record* record) {
  const size_t at = first_written(record);
  if (at != record->size) say_written(call, record, at);
}

}  // namespace hummock::modes::checked

#endif  // HUMMOCK_MODES_CHECKED_RECORD_H
