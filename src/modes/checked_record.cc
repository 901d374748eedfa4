#include "modes/checked_record.h"

#include <string.h>

#include "base/annotate.h"
#include "base/options.h"
#include "base/system.h"
#include "heap/block.h"
#include "heap/diagnose.h"
#include "modes/canary.h"
#include "os/os.h"
#include "trace/backtrace.h"

namespace hummock::modes::checked {
namespace {

using base::Line;

constexpr size_t kPoisonEnds = 64 << 10;  // of larger blocks only the first and last so many bytes

unsigned char* front_guard(Record* record) {
  return reinterpret_cast<unsigned char*>(record + 1);
}
size_t front_size(Record* record) {
  return static_cast<size_t>(record->before) * Record::kUnit - sizeof(Record);
}
unsigned char* back_guard(Record* record) {
  return reinterpret_cast<unsigned char*>(record->user()) + record->size;
}

// The raw block in which p lies, or null.
Record* raw_block(const void* p) {
  const SlabHeader* header = pages::find_slab(p);
  if (header != nullptr && kind_of(header) == Kind::own_slab) {
    const slab::SizeClass& row = slab::row_of(header);
    const size_t index =
        slab::block_index(row, static_cast<size_t>(static_cast<const char*>(p) - header->start));
    if (index >= header->carved) return nullptr;
    return reinterpret_cast<Record*>(header->start + index * row.block_size);
  }
  const bool exact = header != nullptr && is_in_use(header);
  char* start = exact ? header->start : pages::enclosing_span(p).start;
  if (start == nullptr || static_cast<const char*>(p) < start) return nullptr;
  return reinterpret_cast<Record*>(start);
}

// Reports what the default mode says of pointers that are not blocks.
[[noreturn]] void say_bad_pointer(const Line& line) {
  constexpr size_t kName = sizeof("hummock: ") - 1;
  report(report_line().text(line.data() + kName, line.size() - kName));
}

bool is_state(State state) {
  return state == State::live || state == State::freeing || state == State::freed;
}

}  // namespace

// Each factor is odd: whichever field alone changes, the sum changes.
uint64_t Record::expected_seal() const {
  const uint64_t place = uint64_t{before} << 32 | uint64_t{after} << 8 | align_log;
  const uint64_t sum =
      reinterpret_cast<uintptr_t>(this) * 0x9e3779b97f4a7c15ull + uint64_t{size} * 0xff51afd7ed558ccdull +
      reinterpret_cast<uintptr_t>(heap) * 0xe7037ed1a0b428dbull + place * 0xd6e8feb86659fd93ull +
      reinterpret_cast<uintptr_t>(allocated_by) * 0xa0761d6478bd642full;
  return (sum ^ (sum >> 32)) | 1;
}

void seal(Record* record) {
  record->seal = record->expected_seal();
}

bool is_whole(const Record* record) {
  return record->seal == record->expected_seal() && is_state(state_of(record));
}

void fill_guards(Record* record) {
  memset(front_guard(record), kGuardByte, front_size(record));
  memset(back_guard(record), kGuardByte, record->after);
}

void poison(Record* record) {
  if (record->size <= 2 * kPoisonEnds) {
    memset(record->user(), kFreed, record->size);
  } else {
    memset(record->user(), kFreed, kPoisonEnds);
    memset(record->user() + record->size - kPoisonEnds, kFreed, kPoisonEnds);
  }
}

void announce(Record* record, bool zeroed) {
  base::begin_block(record->user(), record->size, zeroed);
  base::forbid(front_guard(record), front_size(record));
  base::forbid(back_guard(record), record->after);
}

void announce_end(Record* record) {
  base::end_block(record->user(), record->size);
}

void announce_room(Record* record) {
  base::permit(record, record->room());
}

namespace {

// The part of a large block that is not poisoned.
struct Inside {
  char* start;
  size_t size;
};
Inside inside_of(Record* record) {
  const auto user = reinterpret_cast<uintptr_t>(record->user());
  const uintptr_t first = base::align_up(user + kPoisonEnds, os::page_size());
  const uintptr_t end = base::align_down(user + record->size - kPoisonEnds, os::page_size());
  return {reinterpret_cast<char*>(first), end - first};
}

}  // namespace

bool may_be_hollow(Record* record) {
  const SlabHeader* header = pages::find_header(record);
  return header != nullptr && kind_of(header) == Kind::huge && record->size > 4 * kPoisonEnds;
}

void deny_inside(Record* record) {
  const Inside inside = inside_of(record);
  os::deny(inside.start, inside.size);
}

bool allow_inside(Record* record) {
  const Inside inside = inside_of(record);
  return os::allow(inside.start, inside.size);
}

void await_freed(Record* record) {
  for (int i = 0; i < 5000 && state_of(record) == State::freeing; ++i) os::sleep_ms(1);
}

Line report_line() {
  return trace::report_line();
}

void report(const Line& line) {
  base::say(line);
  end_report();
}

void report(const Line& line, Record* record) {
  base::say(line);
  say_event("allocated", record->allocated_in, record->allocated_by);
  if (state_of(record) == State::freed) say_event("freed", record->freed_in, record->freed_by);
  end_report();
}

Record* find_record(const char* call, const void* p) {
  Record* record = raw_block(p);
  if (record == nullptr) heap::bad_pointer(call, p, say_bad_pointer);
  if (!is_whole(record)) {
    report(report_line() << call << "(" << p << "): not a block, or the record before it was overwritten");
  }
  if (record->user() == p) return record;
  Line line = report_line();
  line << call << "(" << p << "): points " << (static_cast<const char*>(p) - record->user())
       << " bytes into a block of " << record->size << " bytes at "
       << static_cast<const void*>(record->user());
  report(line, record);
}

void check_guards(const char* call, Record* record) {
  const base::Unwatched unwatched;
  const size_t before = front_size(record);
  size_t at = first_other(front_guard(record), kGuardByte, before);
  if (at != before) {
    report(report_line() << call << "(" << static_cast<const void*>(record->user())
                         << "): something was written " << (before - at) << " bytes before a block of "
                         << record->size << " bytes",
           record);
  }
  const size_t after = record->after;
  at = first_other(back_guard(record), kGuardByte, after);
  if (at != after) {
    report(report_line() << call << "(" << static_cast<const void*>(record->user())
                         << "): something was written at byte " << (record->size + at) << " of a block of "
                         << record->size << " bytes",
           record);
  }
}

bool guards_hold(Record* record) {
  const base::Unwatched unwatched;
  const size_t before = front_size(record);
  const size_t after = record->after;
  return first_other(front_guard(record), kGuardByte, before) == before &&
         first_other(back_guard(record), kGuardByte, after) == after;
}

namespace {

// The first byte that was written after the free, or the block's size.
size_t first_written(Record* record) {
  const base::Unwatched unwatched;
  const auto* bytes = reinterpret_cast<const unsigned char*>(record->user());
  if (record->size <= 2 * kPoisonEnds) return first_other(bytes, kFreed, record->size);
  const size_t at = first_other(bytes, kFreed, kPoisonEnds);
  const size_t tail = record->size - kPoisonEnds;
  return at != kPoisonEnds ? at : tail + first_other(bytes + tail, kFreed, kPoisonEnds);
}

}  // namespace

bool poison_holds(Record* record) {
  return first_written(record) == record->size;
}

void check_poison(const char* call, Record* record) {
  const size_t at = first_written(record);
  if (at == record->size) return;
  report(report_line() << call << ": byte " << at << " of a freed block of " << record->size << " bytes at "
                       << static_cast<const void*>(record->user()) << " was written after the free",
         record);
}

}  // namespace hummock::modes::checked
