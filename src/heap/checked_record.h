// What checked mode keeps before each block: [record | guard | block | guard].
#ifndef HUMMOCK_HEAP_CHECKED_RECORD_H
#define HUMMOCK_HEAP_CHECKED_RECORD_H

#include "base/message.h"
#include "heap/heap.h"
#include "heap/stacks.h"

namespace hummock::heap::checked {

// live → freeing → freed; and back from freeing to live when a realloc finds no memory. Who brings a block to
// freeing is the one that frees it: of two threads that try at once, the other is told. The values are
// unlikely in memory that is no record.
enum class State : uint32_t { live = 0x6576696c, freeing = 0x676e6966, freed = 0x64656566 };

// Is the block of operator new[]? Its delete[] claims it before it is freed.
enum class Array : uint8_t { no, yes, claimed };

// Small, since each block has one. 16 bytes are the unit in which the block's place is kept.
struct alignas(16) Record {
  uint64_t seal;   // of the fields that matter: an overwritten record shows
  size_t size;     // exactly what the program asked for
  UserHeap* heap;  // that the raw block came from
  Record* next;    // live blocks, or the quarantine. Guarded by checked.cc's lock.
  Record* prev;    // live blocks alone
  Stack* allocated_by;
  Stack* freed_by;    // this and the next one written by who brought the block to freeing
  uint32_t freed_in;  // thread
  uint32_t allocated_in;
  State state;        // atomic; a release to live or freed makes the events readable
  uint32_t before;    // from the record to the block, in units
  uint16_t after;     // bytes behind the block that are guarded
  uint8_t align_log;  // of the alignment asked for; 0: none
  Array array;        // atomic
  bool hollow;        // freed, and too large for the quarantine

  char* user() { return reinterpret_cast<char*>(this) + size_t{before} * kUnit; }
  size_t align() const { return align_log == 0 ? 0 : size_t{1} << align_log; }
  size_t room() const { return size_t{before} * kUnit + size + after; }
  uint64_t expected_seal() const;

  static constexpr size_t kUnit = 16;
};
static_assert(sizeof(Record) % Record::kUnit == 0);

inline constexpr size_t kGuard = 16;        // at least so many bytes before and after
inline constexpr size_t kMostGuard = 4096;  // and at most so many are filled
inline constexpr unsigned char kFresh = 0xa5;
inline constexpr unsigned char kGuardByte = 0xfb;
inline constexpr unsigned char kFreed = 0xde;

void seal(Record* record);
void fill_guards(Record* record);
void poison(Record* record);
// For tools that watch each access (base/annotate.h): the block begins; it ends; and all of its room is the
// allocator's again.
void announce(Record* record, bool zeroed);
void announce_end(Record* record);
void announce_room(Record* record);
// A block with a mapping of its own may be hollow: then its inside, all but its ends, has no memory, and who
// uses it faults. False: the system has no memory.
bool may_be_hollow(Record* record);
void deny_inside(Record* record);
bool allow_inside(Record* record);

inline State state_of(const Record* record) {
  // acquire: pairs with the releases of whoever brought the block there.
  State state;
  __atomic_load(&record->state, &state, __ATOMIC_ACQUIRE);
  return state;
}
inline void set_state(Record* record, State state) {
  __atomic_store(&record->state, &state, __ATOMIC_RELEASE);
}

// Is the record as it was sealed, and in a state that there is?
bool is_whole(const Record* record);

// The record of the raw block in which p lies; aborts when p is not the block that the program got, or
// the record was overwritten. The block may be in any state.
Record* find_record(const char* call, const void* p);

// Abort with a report when something wrote where it must not.
void check_guards(const char* call, Record* record);
void check_poison(const char* call, Record* record);
// The same question without the report.
bool guards_hold(Record* record);
bool poison_holds(Record* record);

// Another thread may be about to free it at this very moment: its stack is worth a little patience. It may
// also be this thread, stopped by a signal: then nobody would ever come, and we go on.
void await_freed(Record* record);

// The start of a report's line; the line and the stack of this very call, abort; and with the stacks of the
// block's life between them.
base::Line report_line();
[[noreturn]] void report(const base::Line& line);
[[noreturn]] void report(const base::Line& line, Record* record);

}  // namespace hummock::heap::checked

#endif  // HUMMOCK_HEAP_CHECKED_RECORD_H
