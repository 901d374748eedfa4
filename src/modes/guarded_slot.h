// Where a guarded block stands, and who had it: for modes/guards.cc and its reports.
#ifndef HUMMOCK_MODES_GUARDED_SLOT_H
#define HUMMOCK_MODES_GUARDED_SLOT_H

#include "base/bits.h"
#include "modes/stacks.h"
#include "os/os.h"
#include "pages/region_map.h"
#include "trace/faults.h"

namespace hummock::modes::guards {

// The block is header->bytes at header->start, live while the kind is `guarded`; null: none there yet. It
// stays readable, but for the block itself, once it is freed. The rest is for reports, which read it as it
// happens to be: atomic, relaxed.
struct Slot {
  SlabHeader* header;
  Slot* next;  // free, the longest first. Guarded by the lock of guards.cc
  StackNumber allocated_by, freed_by;
  uint32_t allocated_in, freed_in;  // threads; freed_in 0: not freed
};

// The slot of the address; null when it is in no such region. Signal handlers may call it.
Slot* slot_at(const void* p);
// The slot of the address that many slots further on.
Slot* next_to(const void* p, int slots);

// A live block has bytes around it that nobody should write: up to the end of its pages, and some before it.
inline constexpr unsigned char kCanary = 0xfb;
inline constexpr size_t kMostBefore = 256;
inline size_t size_before(const SlabHeader* header) {
  const size_t room = reinterpret_cast<uintptr_t>(header->start) % os::page_size();
  return room < kMostBefore ? room : kMostBefore;
}
inline size_t size_behind(const SlabHeader* header) {
  const uintptr_t end = reinterpret_cast<uintptr_t>(header->start) + header->bytes;
  return base::align_up(end, os::page_size()) - end;
}
void set_canaries(const SlabHeader* header);
// Aborts with a report when they are not as they were set.
void check_canaries(const char* call, const Slot* slot);

[[noreturn]] void double_free(const char* call, const Slot* slot);
// Ends the process if the fault was in one of the regions.
void tell_fault(const trace::Fault& fault);

}  // namespace hummock::modes::guards

#endif  // HUMMOCK_MODES_GUARDED_SLOT_H
