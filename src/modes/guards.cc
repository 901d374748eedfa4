#include "modes/guards.h"

#include "base/bits.h"
#include "base/options.h"
#include "modes/guarded_slot.h"
#include "modes/sampling.h"
#include "os/os.h"
#include "pages/limits.h"
#include "pages/metadata.h"
#include "pages/pages.h"
#include "trace/backtrace.h"

namespace hummock::modes::guards {
namespace {

constexpr unsigned kMostRegions = sizeof(void*) == 8 ? 8 : 1;

// Where pages are of 64 KiB, a block has a slot and its guard the next one.
unsigned slots_each() {
  return os::page_size() < kSlotSize ? 1 : 2;
}
size_t most_bytes() {
  return slots_each() * kSlotSize - os::page_size();
}

struct Region {
  char* base;
  Slot slots[kSlotsPerRegion];  // by slot; the first has the headers
};

Region* regions[kMostRegions];
unsigned region_count;  // atomic: released when the region is ready
bool opening;           // atomic: somebody makes a region
Region* spare;          // a record that no region was to be had for. Guarded by `opening`
bool began;             // atomic: faults are watched, or cannot be
bool watching;          // atomic, relaxed: they are

os::Lock<os::Rank::guards> lock;
Slot* oldest;  // free slots. Guarded by lock, as the next
Slot* newest;

// ---- Slots --------------------------------------------------------------------------------------

Slot* take_free() {
  os::LockGuard guard(lock);
  Slot* slot = oldest;
  if (slot != nullptr) oldest = slot->next;
  return slot;
}

void give_back(Slot* first, Slot* last) {
  os::LockGuard guard(lock);
  last->next = nullptr;
  (oldest != nullptr ? newest->next : oldest) = first;
  newest = last;
}

char* map_region() {
  char* base = static_cast<char*>(os::reserve_where(kRegionSize, kRegionSize, pages::may_stand));
  if (base == nullptr) return nullptr;
  if (os::deny(base + kSlotSize, kRegionSize - kSlotSize) && os::commit(base, kSlotSize) &&
      pages::enter_region(base)) {
    return base;
  }
  os::unmap(base, kRegionSize);
  return nullptr;
}

bool open_region() {
  if (spare == nullptr) spare = static_cast<Region*>(pages::new_heap_record(sizeof(Region)));
  Region* region = spare;
  if (region == nullptr) return false;
  region->base = map_region();
  if (region->base == nullptr) return false;
  spare = nullptr;
  const unsigned each = slots_each();
  for (unsigned i = each; i + each <= kSlotsPerRegion; i += each) {
    region->slots[i].header = reinterpret_cast<SlabHeader*>(region->base) + i;
    region->slots[i].next = &region->slots[i + each];
  }
  const unsigned last = (kSlotsPerRegion / each - 1) * each;
  regions[region_count] = region;
  // release: pairs with the acquire of slot_at.
  __atomic_store_n(&region_count, region_count + 1, __ATOMIC_RELEASE);
  give_back(&region->slots[each], &region->slots[last]);
  return true;
}

// One thread makes a region; meanwhile the others go on without a guard.
Slot* take_slot() {
  if (Slot* slot = take_free()) return slot;
  if (__atomic_exchange_n(&opening, true, __ATOMIC_ACQUIRE)) return nullptr;
  const bool opened = relaxed(region_count) < kMostRegions && open_region();
  __atomic_store_n(&opening, false, __ATOMIC_RELEASE);
  return opened ? take_free() : nullptr;
}

char* place_of(const Slot* slot) {
  const uintptr_t header = reinterpret_cast<uintptr_t>(slot->header);
  const uintptr_t base = base::align_down(header, kRegionSize);
  return reinterpret_cast<char*>(base + (header - base) / sizeof(SlabHeader) * kSlotSize);
}

// The pages that the block stands on.
size_t bytes_of(const SlabHeader* header) {
  const size_t page = os::page_size();
  const uintptr_t end = reinterpret_cast<uintptr_t>(header->start) + header->bytes;
  return base::align_up(end, page) - base::align_down(reinterpret_cast<uintptr_t>(header->start), page);
}

}  // namespace

uint64_t mean() {
  return relaxed(watching) ? options::guard_bytes() : 0;
}

void renew() {
  if (options::guard_bytes() == 0 || __atomic_exchange_n(&began, true, __ATOMIC_RELAXED)) return;
  if (!trace::watch_faults(tell_fault)) {
    base::say(base::Line() << "guards: this system tells of no faults; guards are off");
    return;
  }
  set_relaxed(watching, true);
}

Slot* slot_at(const void* p) {
  const unsigned count = __atomic_load_n(&region_count, __ATOMIC_ACQUIRE);
  for (unsigned i = 0; i < count; ++i) {
    const uintptr_t offset = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(regions[i]->base);
    if (offset >= kRegionSize) continue;
    const size_t number = offset / kSlotSize;
    return &regions[i]->slots[number - number % slots_each()];
  }
  return nullptr;
}

Slot* next_to(const void* p, int slots) {
  return slot_at(static_cast<const char*>(p) + slots * static_cast<ptrdiff_t>(slots_each() * kSlotSize));
}

void* allocate(size_t align, size_t size) {
  if (size == 0) size = 1;
  if (align < slab::kStep) align = slab::kStep;
  const size_t page = os::page_size();
  if (align > page || size > most_bytes() || mean() == 0) return nullptr;
  const size_t room = base::align_up(size, align);
  const size_t bytes = base::align_up(room, page);
  if (bytes > most_bytes() || !pages::may_still_take(bytes)) return nullptr;
  Slot* slot = take_slot();
  if (slot == nullptr) return nullptr;
  char* place = place_of(slot);
  if (!os::allow(place, bytes)) return give_back(slot, slot), nullptr;
  SlabHeader* header = slot->header;
  set_relaxed(header->start, place + bytes - room);
  set_relaxed(header->bytes, size);
  set_canaries(header);
  set_relaxed(slot->allocated_by, current_stack(kMostFrames));
  set_relaxed(slot->allocated_in, trace::thread_number());
  set_relaxed(slot->freed_in, uint32_t{0});
  pages::count_guarded(1, static_cast<ptrdiff_t>(size));
  Kind live = Kind::guarded;
  __atomic_store(&header->kind, &live, __ATOMIC_RELEASE);  // pairs with the acquire of walk()
  return header->start;
}

void release(const char* call, SlabHeader* header, void* p) {
  if (p != header->start) tell_misuse(call, p, base::refuse);
  Slot* slot = slot_at(p);
  if (kind_of(header) == Kind::guarded) check_canaries(call, slot);
  Kind live = Kind::guarded, freed = Kind::free;
  if (!__atomic_compare_exchange(&header->kind, &live, &freed, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    double_free(call, slot);
  sampling::forget(p);
  set_relaxed(slot->freed_by, current_stack(kMostFrames));
  set_relaxed(slot->freed_in, trace::thread_number());
  const size_t bytes = bytes_of(header);
  // Refused: mappings are short; then the block can still be written to, but costs nothing.
  if (!os::deny(place_of(slot), bytes)) os::purge(place_of(slot), bytes);
  pages::count_guarded(-1, -static_cast<ptrdiff_t>(header->bytes));
  give_back(slot, slot);
}

bool walk(const heap::Visitor& visitor) {
  const unsigned count = __atomic_load_n(&region_count, __ATOMIC_ACQUIRE);
  for (unsigned i = 0; i < count; ++i) {
    for (const Slot& slot : regions[i]->slots) {
      const SlabHeader* header = slot.header;
      if (header == nullptr) continue;
      Kind kind;
      __atomic_load(&header->kind, &kind, __ATOMIC_ACQUIRE);
      if (kind != Kind::guarded) continue;
      if (visitor.visit(visitor.context, relaxed(header->start), relaxed(header->bytes)) == 0) return false;
    }
  }
  return true;
}

void at_fork(os::ForkStep step) {
  if (step == os::ForkStep::in_child) opening = false;  // the thread that was making a region is no more
  lock.at_fork(step);
}

bool is_locked() {
  return lock.is_held();
}

}  // namespace hummock::modes::guards
