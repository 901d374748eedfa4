#include "heap/checked_record.h"

#include <string.h>

#include "base/options.h"
#include "base/system.h"
#include "heap/block.h"
#include "heap/diagnose.h"
#include "os/backtrace.h"

namespace hummock::heap::checked {
namespace {

using base::Line;

constexpr size_t kPoisonEnds = 64 << 10;  // of larger blocks only the first and last so many bytes

char* raw_end(const Record* record) {
  return reinterpret_cast<char*>(const_cast<Record*>(record)) + record->room;
}
unsigned char* front_guard(Record* record) {
  return reinterpret_cast<unsigned char*>(record) + record_size();
}
size_t front_size(Record* record) {
  return static_cast<size_t>(reinterpret_cast<unsigned char*>(record->user) - front_guard(record));
}
unsigned char* back_guard(const Record* record) {
  return reinterpret_cast<unsigned char*>(record->user) + record->size;
}
size_t back_size(const Record* record) {
  const size_t all = static_cast<size_t>(raw_end(record) - (record->user + record->size));
  return all < kMostGuard ? all : kMostGuard;
}

// The first byte that is not `value`, or `size`.
size_t first_other(const unsigned char* bytes, unsigned char value, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != value) return i;
  }
  return size;
}

// The raw block in which p lies, or null.
Record* raw_block(const void* p) {
  SlabHeader* header = pages::find_slab(p);
  if (header != nullptr && header->kind == Kind::own_slab) {
    const slab::SizeClass& row = slab::row_of(header);
    const size_t index =
        slab::block_index(row, static_cast<size_t>(static_cast<const char*>(p) - header->start));
    if (index >= header->carved) return nullptr;
    return reinterpret_cast<Record*>(header->start + index * row.block_size);
  }
  if (header == nullptr || header->kind == Kind::free) header = pages::enclosing_span(p);
  if (header == nullptr || static_cast<const char*>(p) < header->start) return nullptr;
  return reinterpret_cast<Record*>(header->start);
}

void print_event(const char* what, const Event& event, void** frames) {
  base::say(Line() << "  " << what << " by thread " << event.thread << (event.frames != 0 ? ":" : ""));
  os::print_frames(frames, event.frames);
}

}  // namespace

uint64_t Record::expected_seal() const {
  uint64_t hash = reinterpret_cast<uintptr_t>(this) ^ 0x68756d6d6f636bull;
  const uint64_t parts[] = {reinterpret_cast<uintptr_t>(user), size, align, room,
                            static_cast<uint64_t>(state)};
  for (const uint64_t part : parts) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

size_t record_size() {
  return base::align_up(sizeof(Record) + 2 * options::values.stacks * sizeof(void*), 16);
}

void seal(Record* record) {
  record->seal = record->expected_seal();
}

void fill_guards(Record* record) {
  memset(front_guard(record), kGuardByte, front_size(record));
  memset(back_guard(record), kGuardByte, back_size(record));
}

void poison(Record* record) {
  if (record->size <= 2 * kPoisonEnds) {
    memset(record->user, kFreed, record->size);
  } else {
    memset(record->user, kFreed, kPoisonEnds);
    memset(record->user + record->size - kPoisonEnds, kFreed, kPoisonEnds);
  }
}

void report(const Line& line, Record* record) {
  base::say(line);
  if (record->most_frames <= 16) {
    print_event("allocated", record->allocated, record->frames_of(State::live));
    if (record->state == State::freed) print_event("freed", record->freed, record->frames_of(State::freed));
  }
  base::stop();
}

Record* find_record(const char* call, const void* p) {
  Record* record = raw_block(p);
  if (record == nullptr) bad_pointer(call, p);
  if (record->seal != record->expected_seal()) {
    Line line;
    line << call << "(" << p << "): not a block, or the record before it was overwritten";
    base::die(line);
  }
  if (record->user == p) return record;
  Line line;
  line << call << "(" << p << "): points " << (static_cast<const char*>(p) - record->user)
       << " bytes into a block of " << record->size << " bytes at " << static_cast<const void*>(record->user);
  report(line, record);
}

void check_guards(const char* call, Record* record) {
  const size_t before = front_size(record);
  size_t at = first_other(front_guard(record), kGuardByte, before);
  if (at != before) {
    report(Line() << call << "(" << static_cast<const void*>(record->user) << "): something was written "
                  << (before - at) << " bytes before a block of " << record->size << " bytes",
           record);
  }
  const size_t after = back_size(record);
  at = first_other(back_guard(record), kGuardByte, after);
  if (at != after) {
    report(Line() << call << "(" << static_cast<const void*>(record->user)
                  << "): something was written at byte " << (record->size + at) << " of a block of "
                  << record->size << " bytes",
           record);
  }
}

void check_poison(const char* call, Record* record) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(record->user);
  const bool whole = record->size <= 2 * kPoisonEnds;
  const size_t first = whole ? record->size : kPoisonEnds;
  size_t at = first_other(bytes, kFreed, first);
  if (at == first && !whole) {
    const size_t tail = record->size - kPoisonEnds;
    at = tail + first_other(bytes + tail, kFreed, kPoisonEnds);
  }
  if (at != (whole ? first : record->size)) {
    report(Line() << call << ": byte " << at << " of a freed block of " << record->size << " bytes at "
                  << static_cast<const void*>(record->user) << " was written after the free",
           record);
  }
}

}  // namespace hummock::heap::checked
