// Checked mode's record before each block: [record | guard | block | guard].
#ifndef HUMMOCK_MODES_CHECKED_RECORD_H
#define HUMMOCK_MODES_CHECKED_RECORD_H

#include "base/message.h"
#include "heap/modes.h"
#include "modes/stacks.h"

namespace hummock::modes::checked {

// live → freeing → freed; and from freeing back to live when a realloc finds no memory. The thread that
// brings a block to freeing frees it; if two try at once, the other is reported. The values are unlikely in
// memory that is not a record.
enum class State : uint32_t { live = 0x6576696c, freeing = 0x676e6966, freed = 0x64656566 };

// Is the block of operator new[]? Its delete[] claims it before it is freed.
enum class Array : uint8_t { no, yes, claimed };

// Small, because each block has one. The block's place is stored in units of 16 bytes.
struct alignas(16) Record {
  uint64_t seal;   // over the fields that matter, so that an overwritten record shows
  size_t size;     // exactly what the program asked for
  UserHeap* heap;  // the heap of the raw block
  Record* next;    // live blocks, or the quarantine. Guarded by checked.cc's lock.
  Record* prev;    // only of live blocks
  Stack* allocated_by;
  Stack* freed_by;    // the thread that brought the block to freeing writes this and the next
  uint32_t freed_in;  // thread
  uint32_t allocated_in;
  State state;        // atomic; a release to live or freed makes the events readable
  uint32_t before;    // from the record to the block, in units
  uint16_t after;     // guarded bytes behind the block
  uint8_t align_log;  // of the alignment asked for; 0: none
  Array array;        // atomic
  bool hollow;        // freed, but too large for the quarantine

  char* user() { return reinterpret_cast<char*>(this) + size_t{before} * kUnit; }
  size_t align() const { return align_log == 0 ? 0 : size_t{1} << align_log; }
  size_t room() const { return size_t{before} * kUnit + size + after; }
  uint64_t expected_seal() const;

  static constexpr size_t kUnit = 16;
};
static_assert(sizeof(Record) % Record::kUnit == 0);

inline constexpr size_t kGuard = 16;        // the least guard bytes before and after a block
inline constexpr size_t kMostGuard = 4096;  // the most that are filled
inline constexpr unsigned char kFresh = 0xa5;
inline constexpr unsigned char kGuardByte = 0xfb;
inline constexpr unsigned char kFreed = 0xde;

void seal(Record* record);
void fill_guards(Record* record);
void poison(Record* record);
// For tools that watch each access (base/annotate.h): the block begins; the block ends; its memory is the
// allocator's again.
void announce(Record* record, bool zeroed);
void announce_end(Record* record);
void announce_room(Record* record);
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

// Is the record as it was sealed, and its state one of the three?
bool is_whole(const Record* record);

// The record of the raw block that contains p. Aborts if p is not the block that the program got, or if the
// record was overwritten. The block may be in any state.
Record* find_record(const char* call, const void* p);

// Abort with a report if a guard or the poison was overwritten.
void check_guards(const char* call, Record* record);
void check_poison(const char* call, Record* record);
// The same question without the report.
bool guards_hold(Record* record);
bool poison_holds(Record* record);

// Another thread may be freeing the block at this moment, and its stack is worth a short wait. It may also be
// this thread, interrupted by a signal: then the wait would never end, so it has a limit.
void await_freed(Record* record);

// The start of a report's line; the line and the stack of this very call, abort; and with the stacks of the
// block's life between them.
base::Line report_line();
[[noreturn]] void report(const base::Line& line);
[[noreturn]] void report(const base::Line& line, Record* record);

}  // namespace hummock::modes::checked

#endif  // HUMMOCK_MODES_CHECKED_RECORD_H
