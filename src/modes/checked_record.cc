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

constexpr size_t kPoisonEnds = 64 << 10;  // of larger blocks only the first and last so many bytes

}  // namespace

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

void poison(Record* record) {
  if (record->size <= 2 * kPoisonEnds) {
    fill(record->user(), kFreed, record->size);
  } else {
    memset(record->user(), kFreed, kPoisonEnds);
    memset(record->user() + record->size - kPoisonEnds, kFreed, kPoisonEnds);
  }
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

size_t first_written(Record* record) {
  const base::Unwatched unwatched;
  const auto* bytes = reinterpret_cast<const unsigned char*>(record->user());
  if (record->size <= 2 * kPoisonEnds) return first_other(bytes, kFreed, record->size);
  const size_t at = first_other(bytes, kFreed, kPoisonEnds);
  const size_t tail = record->size - kPoisonEnds;
  return at != kPoisonEnds ? at : tail + first_other(bytes + tail, kFreed, kPoisonEnds);
}

}  // namespace hummock::modes::checked
