#include "pages/backing.h"

#include <errno.h>

#include "base/message.h"
#include "base/options.h"
#include "os/os.h"
#include "os/region_log.h"
#include "pages/region.h"

namespace hummock::pages {

size_t pinned_bytes;
size_t advised_bytes;
size_t huge_refusals;
BackOffs back_offs;
os::Lock<os::Rank::reserve> reserve_lock;
Reserve reserve;
char* giants[kMostGiants];
unsigned giant_count;

namespace {

using base::Line;
using options::HugePages;
using options::values;

void add(size_t& figure, size_t bytes) {
  __atomic_fetch_add(&figure, bytes, __ATOMIC_RELAXED);
}

bool wants_set_aside() {
  const HugePages mode = values.huge_pages;
  return mode >= HugePages::pool_2m || (mode == HugePages::automatic && os::large_pages_granted());
}

// Text for the log and for messages.
class Reason {
 public:
  Reason(int error, uint64_t wait) : line_("") {
    line_ << os::error_name(error);
    if (error == ENOMEM) line_ << ", the system has not set aside enough";
    if (error == EINVAL) line_ << ", the system has no pages of this size";
    if (wait != 0) line_ << "; next try in " << wait << " ms";
  }
  const char* text() { return line_.c_str(); }

 private:
  Line line_;
};

// Pages that the administrator set aside, and nothing else. Null when refused, and *error.
char* take_set_aside(size_t size, size_t page, int* error) {
  os::Event event;
  const size_t align = page > kRegionSize ? page : kRegionSize;
  char* base = static_cast<char*>(os::map_set_aside(size, align, page, may_stand, error));
  if (base == nullptr) {
    add(huge_refusals, 1);
    return nullptr;
  }
  add(pinned_bytes, size);
  event.log("Alloc LP", base, size, static_cast<ptrdiff_t>(size), page == os::kGiantPage ? "1G" : "2M");
  return base;
}

// The same, unless it was refused a moment ago. `instead` says what the log calls the next best.
char* try_set_aside(size_t size, size_t page, BackOff& back_off, const char* instead) {
  const uint64_t now = os::now_ms();
  if (!back_off.may(now) || !under_cap(size)) return nullptr;
  os::Event event;
  int error = 0;
  char* base = take_set_aside(size, page, &error);
  if (base != nullptr) {
    back_off.served();
  } else {
    event.log(instead, nullptr, size, 0, Reason(error, back_off.refused(now)).text());
  }
  return base;
}

NewRegion take_from_reserve() {
  os::LockGuard guard(reserve_lock);
  if (reserve.left < kRegionSize) return {nullptr, Backing::small, false};
  char* base = reserve.next;
  reserve.next += kRegionSize;
  reserve.left -= kRegionSize;
  return {base, reserve.backing, false};
}

// False when there is a reserve already: another thread was quicker. `giant`: of pages of 1 GiB.
bool set_reserve(char* base, size_t size, Backing backing, bool giant = false) {
  os::LockGuard guard(reserve_lock);
  if (reserve.left != 0) return false;
  reserve = {base, size, backing};
  for (size_t at = 0; giant && at < size; at += os::kGiantPage) giants[giant_count++] = base + at;
  return true;
}

bool has_room_for_giants(size_t count) {
  os::LockGuard guard(reserve_lock);
  return giant_count + count <= kMostGiants;
}

// A page of 1 GiB has room for 32 regions.
void reserve_giant() {
  if (!has_room_for_giants(1)) return;
  char* base =
      try_set_aside(os::kGiantPage, os::kGiantPage, back_offs.set_aside_1g, "Alloc LP failed -> LP 2M");
  if (base == nullptr || set_reserve(base, os::kGiantPage, Backing::pinned, true)) return;
  os::unmap(base, os::kGiantPage);
  add(pinned_bytes, -os::kGiantPage);
}

// Null: huge pages were asked for where the range is touched from now on; else why not.
const char* ask_transparent(char* base, size_t size) {
  const char* why = "huge_max is reached";
  if (under_cap(size) && os::transparent_allowed(&why)) {
    const int error = os::advise_huge(base, size, true);
    if (error == 0) {
      add(advised_bytes, size);
      return nullptr;
    }
    why = os::error_name(error);
  }
  add(huge_refusals, 1);
  return why;
}

// The last slot of a region is made inaccessible: what runs over its end does not reach the headers of the
// next one. A guard costs one of the mappings that a process may have, so there is an end to them.
constexpr size_t kMostGuards = 8192;
size_t guards;  // atomic, relaxed
bool gives_up;  // likewise: the process has run out of mappings

bool wants_transparent() {
  return values.huge_pages != HugePages::off && values.huge_pages != HugePages::automatic;
}

bool guard_end(char* base, size_t size) {
  if (!makes_guards()) return false;
  if (__atomic_fetch_add(&guards, 1, __ATOMIC_RELAXED) < kMostGuards &&
      os::deny(base + size - kSlotSize, kSlotSize)) {
    return true;
  }
  __atomic_fetch_sub(&guards, 1, __ATOMIC_RELAXED);
  return false;
}

NewRegion map_ordinary(size_t size) {
  os::Event event;
  char* base = static_cast<char*>(os::reserve_where(size, kRegionSize, may_stand));
  if (base == nullptr) {
    event.log("Alloc SP failed", nullptr, size, 0, "a region: no room");
    return {nullptr, Backing::small, false};
  }
  const ptrdiff_t change = static_cast<ptrdiff_t>(size);
  // Also where the system makes everything huge: with auto a huge page is made of what is full (collapse.cc).
  const bool asked = wants_transparent();
  keep_small(base, size);
  const uint64_t now = os::now_ms();
  if (!os::kHasTransparent || !asked || !back_offs.transparent.may(now)) {
    event.log("Alloc SP", base, size, change, "a region");
    return {base, Backing::small, guard_end(base, size)};
  }
  if (const char* why = ask_transparent(base, size)) {
    back_offs.transparent.refused(now);
    event.log("Alloc THP failed -> SP", base, size, change, why);
    return {base, Backing::small, false};
  }
  back_offs.transparent.served();
  event.log("Alloc THP", base, size, change, "a region");
  return {base, Backing::whole, false};  // no guard: who asked for huge pages has them all
}

// huge_pages:require has come to the end of the pool: malloc returns null. Said once.
void say_exhausted(int error) {
  static bool said;
  if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) return;
  base::say(Line() << "huge_pages:require: no more large pages (" << Reason(error, 0).text()
                   << "); what does not fit fails with ENOMEM");
}

NewRegion map_required(size_t size) {
  os::Event event;
  int error = ENOMEM;
  char* base = under_cap(size) ? take_set_aside(size, os::kHugePage, &error) : nullptr;
  if (base == nullptr) {
    event.log("Alloc LP failed", nullptr, size, 0, Reason(error, 0).text());
    say_exhausted(error);
  }
  return {base, Backing::pinned, false};
}

// ---- huge_reserve -------------------------------------------------------------------------------

// All of it on pages of 1 GiB, or none.
bool reserve_giants(size_t wish) {
  const size_t size = base::align_up(wish, os::kGiantPage);
  if (!has_room_for_giants(size / os::kGiantPage)) return false;
  char* base = try_set_aside(size, os::kGiantPage, back_offs.set_aside_1g, "Alloc LP failed -> LP 2M");
  return base != nullptr && set_reserve(base, size, Backing::pinned, true);
}

// Half as much each time it is refused.
char* reserve_set_aside(size_t* size, int* error) {
  os::Event event;
  for (size_t now = *size; now >= kRegionSize; now = base::align_down(now / 2, kRegionSize)) {
    if (char* base = take_set_aside(now, os::kHugePage, error)) return *size = now, base;
    if (values.huge_pages == HugePages::require) break;
    event.log("Alloc LP failed -> less", nullptr, now, 0, Reason(*error, 0).text());
  }
  return nullptr;
}

// Transparent huge pages, touched now. Three quarters of what is to be had at most: the rest is for others.
char* reserve_transparent(size_t* size) {
  const size_t available = os::available_bytes();
  const size_t most = base::align_down(available - available / 4, kRegionSize);
  for (size_t now = *size < most ? *size : most; now >= kRegionSize;
       now = base::align_down(now / 2, kRegionSize)) {
    os::Event event;
    char* base = static_cast<char*>(os::reserve_where(now, kRegionSize, may_stand));
    if (base == nullptr) continue;
    const char* why = ask_transparent(base, now);
    if (os::populate(base, now) == 0) {
      event.log(why == nullptr ? "Alloc THP" : "Alloc THP failed -> SP", base, now,
                static_cast<ptrdiff_t>(now), why == nullptr ? "huge_reserve" : why);
      return *size = now, base;
    }
    if (why == nullptr) add(advised_bytes, -now);
    os::unmap(base, now);
  }
  return nullptr;
}

}  // namespace

void keep_small(char* start, size_t size) {
  if (!wants_transparent()) os::advise_huge(start, size, false);
}

bool under_cap(size_t bytes) {
  const size_t most = values.huge_max;
  return most == 0 || relaxed(pinned_bytes) + relaxed(advised_bytes) + bytes <= most;
}

NewRegion map_region(size_t size) {
  const HugePages mode = values.huge_pages;
  if (size == kRegionSize) {
    NewRegion ready = take_from_reserve();
    if (ready.base == nullptr && mode == HugePages::pool_1g) {
      reserve_giant();
      ready = take_from_reserve();
    }
    if (ready.base != nullptr) return ready;
  }
  if (mode == HugePages::require) return map_required(size);
  if (wants_set_aside() && size == kRegionSize) {
    char* base = try_set_aside(size, os::kHugePage, back_offs.set_aside_2m,
                               os::kHasTransparent ? "Alloc LP failed -> THP" : "Alloc LP failed -> SP");
    if (base != nullptr) return {base, Backing::pinned, false};
  }
  return map_ordinary(size);
}

void unmap_region(const NewRegion& fresh, size_t size) {
  if (!os::unmap(fresh.base, size)) return;
  if (fresh.backing == Backing::pinned) add(pinned_bytes, -size);
  if (fresh.backing == Backing::whole) add(advised_bytes, -size);
  if (fresh.guarded) __atomic_fetch_sub(&guards, 1, __ATOMIC_RELAXED);
}

bool makes_guards() {
  return !relaxed(gives_up);
}

bool give_up_guard(unsigned* tries) {
  if (*tries == 0) return false;
  --*tries;
  // acquire: as in visit_headers.
  for (Region* each = __atomic_load_n(&regions, __ATOMIC_ACQUIRE); each != nullptr; each = each->next) {
    if (!each->guarded || relaxed(each->opened)) continue;
    char* guard = each->base + each->huge_pages * kHugePageSize - kSlotSize;
    if (os::has_mapping_left(guard, kSlotSize)) {
      *tries = 0;
      return relaxed(gives_up);  // then another thread may have returned one
    }
    set_relaxed(gives_up, true);
    if (__atomic_exchange_n(&each->opened, true, __ATOMIC_RELAXED)) continue;
    os::Event event;
    // Refused where the guard is one mapping with what the program has behind it.
    if (!os::allow(guard, kSlotSize)) return true;
    keep_small(guard, kSlotSize);  // as the region: so it joins it
    event.log("Alloc SP", guard, kSlotSize, 0, "a region's guard is given up: no mapping left");
    return true;
  }
  return false;
}

bool advise_block(char* start, size_t bytes) {
  // A program that takes so much at once may use little of it: huge pages only if the user asked for them.
  if (!wants_transparent() || !back_offs.transparent.may(os::now_ms())) return false;
  const char* why = ask_transparent(start, bytes);
  if (why != nullptr) back_offs.transparent.refused(os::now_ms());
  return why == nullptr;
}

void forget_block(size_t bytes) {
  add(advised_bytes, -bytes);
}

void take_reserve() {
  const HugePages mode = values.huge_pages;
  const bool required = mode == HugePages::require;
  size_t wish = base::align_up(values.huge_reserve, kRegionSize);
  if (wish == 0 && required) wish = kRegionSize;
  if (wish == 0) return;
  if (mode == HugePages::off) return base::say(Line() << "huge_reserve: huge_pages:off takes none");
  const size_t asked = wish;
  const size_t most = base::align_down(values.huge_max, kRegionSize);
  if (values.huge_max != 0 && wish > most) wish = most;
  if (required && wish < asked) {
    base::quit(Line() << "huge_pages:require: " << (asked >> 20)
                      << " MiB of 2 MiB pages are more than huge_max allows, " << (values.huge_max >> 20)
                      << " MiB");
  }
  if (mode == HugePages::pool_1g && wish != 0 && reserve_giants(wish)) return;
  size_t size = wish;
  int error = ENOMEM;
  char* base = wants_set_aside() && wish != 0 ? reserve_set_aside(&size, &error) : nullptr;
  if (base != nullptr) {
    set_reserve(base, size, Backing::pinned);
  } else if (required) {
    Line line;
    line << "huge_pages:require: " << (wish >> 20) << " MiB of 2 MiB pages cannot be had ("
         << Reason(error, 0).text() << ")";
    if (os::kHasTransparent) {
      line << "; as root: sysctl vm.nr_overcommit_hugepages=" << 16 * (wish / kHugePageSize)
           << ", or see hummock doctor";
    }
    base::quit(line);
  } else if (os::kHasTransparent) {
    base = reserve_transparent(&size);
    if (base != nullptr) set_reserve(base, size, Backing::kept);
  }
  if (base == nullptr || size < asked) {
    base::say(Line() << "huge_reserve: " << (base == nullptr ? 0 : size >> 20) << " of " << (asked >> 20)
                     << " MiB could be had");
  }
}

void forgive_refusals() {
  back_offs.set_aside_2m.forgive();
  back_offs.set_aside_1g.forgive();
}

size_t reserved_bytes() {
  os::LockGuard guard(reserve_lock);
  return reserve.left;
}

void drop_reserve() {
  if (reserve.left != 0) os::unmap(reserve.next, reserve.left);
  reserve.left = 0;
}

bool reserve_is_locked() {
  return reserve_lock.is_held();
}

}  // namespace hummock::pages
