#include "pages/metadata.h"

#include <string.h>

#include "base/bits.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/region_log.h"
#include "pages/pages.h"

namespace hummock::pages {
namespace {

constexpr size_t kChunk = 256 << 10;

os::Lock<os::Rank::records> lock;
char* next;     // guarded by lock
size_t left;    // guarded by lock
size_t handed;  // guarded by lock

// Called with the lock held. Null: what is left does not do.
void* take(size_t size) {
  if (size > left) return nullptr;
  char* record = next;
  next += size;
  left -= size;
  handed += size;
  return record;
}

// Address space for records: less, where there is little. No lock is held, so nobody waits for the system.
char* map_chunk(size_t size, size_t* chunk) {
  const size_t least = base::align_up(size, os::page_size());
  *chunk = size > kChunk ? least : kChunk;
  char* fresh = static_cast<char*>(os::map(*chunk));
  if (fresh != nullptr || *chunk == least) return fresh;
  *chunk = least;
  return static_cast<char*>(os::map(least));
}

}  // namespace

void* new_record(size_t size) {
  size = base::align_up(size, 64);
  {
    os::LockGuard guard(lock);
    if (void* record = take(size)) return record;
  }
  os::Event event;
  size_t chunk;
  char* fresh = map_chunk(size, &chunk);
  if (fresh == nullptr) return nullptr;
  bool used = false;
  void* record;
  {
    os::LockGuard guard(lock);
    record = take(size);  // another thread may have been quicker
    if (record == nullptr) {
      next = fresh;
      left = chunk;
      record = take(size);
      used = true;
    }
  }
  if (used) {
    event.log("Alloc SP", fresh, chunk, static_cast<ptrdiff_t>(chunk), "records");
  } else {
    os::unmap(fresh, chunk);
  }
  return record;
}

// A second thread may come here at once: then what is left of one span is lost.
void* new_heap_record(size_t size) {
  if (void* record = new_record(size)) return record;
  if (size > kSlotSize) return nullptr;
  const Span span = allocate_span(1);
  if (span.header == nullptr) return nullptr;
  // The span stays in use for ever, and its header says free: nothing in it is a block.
  if (!span.zeroed) memset(span.header->start, 0, kSlotSize);
  os::LockGuard guard(lock);
  next = span.header->start;
  left = kSlotSize;
  return take(base::align_up(size, 64));
}

size_t metadata_bytes() {
  os::LockGuard guard(lock);
  return handed;
}

void metadata_at_fork(os::ForkStep step) {
  lock.at_fork(step);
}
bool metadata_is_locked() {
  return lock.is_held();
}

}  // namespace hummock::pages
