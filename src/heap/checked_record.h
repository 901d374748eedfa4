// What checked mode keeps before each block: [record | frames | guard | block | guard].
#ifndef HUMMOCK_HEAP_CHECKED_RECORD_H
#define HUMMOCK_HEAP_CHECKED_RECORD_H

#include "base/message.h"
#include "heap/heap.h"

namespace hummock::heap::checked {

enum class State : uint32_t { live = 1, freed = 2 };

// Of one event in the block's life.
struct Event {
  uint32_t thread;
  uint32_t frames;
};

struct Record {
  uint64_t seal;  // of the fields that matter: an overwritten record shows
  char* user;     // what the program got
  size_t size;    // exactly what it asked for
  size_t align;   // likewise; 0: no alignment asked
  size_t room;    // of the raw block, the record included
  Heap* heap;     // that the raw block came from
  Record* next;   // list of live blocks, or the quarantine. Guarded by checked.cc's lock.
  Record* prev;
  State state;
  bool array;            // of operator new[]
  uint32_t most_frames;  // room behind the record: twice so many
  Event allocated;
  Event freed;

  void** frames_of(State which) {
    void** frames = reinterpret_cast<void**>(this + 1);
    return which == State::live ? frames : frames + most_frames;
  }
  uint64_t expected_seal() const;
};

inline constexpr size_t kGuard = 16;        // at least so many bytes before and after
inline constexpr size_t kMostGuard = 4096;  // and at most so many are filled
inline constexpr unsigned char kFresh = 0xa5;
inline constexpr unsigned char kGuardByte = 0xfb;
inline constexpr unsigned char kFreed = 0xde;

size_t record_size();

void seal(Record* record);
void fill_guards(Record* record);
void poison(Record* record);

// The record of the raw block in which p lies; aborts when p is not the block that the program got, or
// the record was overwritten. `state` may be live or freed.
Record* find_record(const char* call, const void* p);

// Abort with a report when something wrote where it must not.
void check_guards(const char* call, Record* record);
void check_poison(const char* call, Record* record);

// One line, the stacks of the block's life, abort.
[[noreturn]] void report(const base::Line& line, Record* record);

}  // namespace hummock::heap::checked

#endif  // HUMMOCK_HEAP_CHECKED_RECORD_H
