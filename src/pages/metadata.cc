#include "pages/metadata.h"

#include "base/bits.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/region_log.h"

namespace hummock::pages {
namespace {

constexpr size_t kChunk = 256 << 10;

os::Lock lock;
char* next;     // guarded by lock
size_t left;    // guarded by lock
size_t handed;  // guarded by lock

}  // namespace

void* new_record(size_t size) {
  size = base::align_up(size, 64);
  os::LockGuard guard(lock);
  if (size > left) {
    const size_t chunk = size > kChunk ? base::align_up(size, os::page_size()) : kChunk;
    os::Event event;
    char* fresh = static_cast<char*>(os::map(chunk));
    if (fresh == nullptr) return nullptr;
    event.log("Alloc SP", fresh, chunk, static_cast<ptrdiff_t>(chunk), "records");
    next = fresh;
    left = chunk;
  }
  char* record = next;
  next += size;
  left -= size;
  handed += size;
  return record;
}

size_t metadata_bytes() {
  os::LockGuard guard(lock);
  return handed;
}

void metadata_lock() {
  lock.lock_for_fork();
}
void metadata_unlock() {
  lock.unlock_after_fork();
}
void metadata_reset() {
  lock.unlock_in_child();
}
bool metadata_is_locked() {
  return lock.is_held();
}

}  // namespace hummock::pages
