// Which pages back the heap, and what Hummock asks of the system for that.
//
// Huge pages come in two ways: reserved by the administrator (hugetlb), or transparent ones that the kernel
// gives on request (THP). If one way fails, Hummock tries the next, and small pages last. After a refusal it
// waits before it tries again, twice as long each time.
#ifndef HUMMOCK_PAGES_BACKING_H
#define HUMMOCK_PAGES_BACKING_H

#include <stddef.h>
#include <stdint.h>

#include "os/thread.h"

namespace hummock::pages {

// What backs each 2 MiB of a region, and how its free memory is returned.
enum class Backing : uint8_t {
  small,   // small pages: by slots
  loose,   // a huge page that huge_pages:auto made: small again by slots, once an eighth of it is free
  whole,   // huge pages that the user asked for: only when all of it is free
  kept,    // taken at start by huge_reserve: not at all
  pinned,  // hugetlb: when the program asks for it (trim)
};

// After a refusal there is no try for 100 ms, and twice as long after each further one, at most a minute. Any
// thread; two that come at once may both try.
class BackOff {
 public:
  bool may(uint64_t now) const { return now >= __atomic_load_n(&until_, __ATOMIC_RELAXED); }
  // The milliseconds until the next try.
  uint64_t refused(uint64_t now) {
    const uint64_t before = __atomic_load_n(&wait_, __ATOMIC_RELAXED);
    const uint64_t wait = before == 0 ? kFirst : before * 2 < kMost ? before * 2 : kMost;
    __atomic_store_n(&wait_, wait, __ATOMIC_RELAXED);
    __atomic_store_n(&until_, now + wait, __ATOMIC_RELAXED);
    return wait;
  }
  void served() { __atomic_store_n(&wait_, 0, __ATOMIC_RELAXED); }
  // The reason for the refusal is gone: try again at once.
  void forgive() {
    served();
    __atomic_store_n(&until_, 0, __ATOMIC_RELAXED);
  }

  static constexpr uint64_t kFirst = 100, kMost = 60000;

 private:
  uint64_t until_ = 0, wait_ = 0;  // ms; atomic, relaxed: hints
};

// One for each kind of huge page.
struct BackOffs {
  BackOff set_aside_2m, set_aside_1g, transparent;
};
extern BackOffs back_offs;

struct NewRegion {
  char* base;  // null: the system refused
  Backing backing;
  bool guarded;  // its last slot is inaccessible
};

// Maps `size` bytes (32 MiB, or less under tight limits) at a multiple of 32 MiB, on the largest pages that
// the options want and the system gives. No lock may be held.
NewRegion map_region(size_t size);

// Tells the kernel to make nothing huge there by itself, unless the user wants transparent huge pages.
void keep_small(char* start, size_t size);

// Unmaps a region that cannot be used.
void unmap_region(const NewRegion& fresh, size_t size);

// After a refusal: if the process has no mapping left, makes one region's last slot accessible, so that it
// takes no mapping of its own; no guard is made from then on. True: try again. False: that is not why, or no
// region has a guard, or the call has had its tries.
bool give_up_guard(unsigned* tries);
bool makes_guards();

// For a block with a mapping of its own: asks for huge pages if the options want them, and says whether it
// did. The second subtracts bytes that are no longer advised.
bool advise_block(char* start, size_t bytes);
void forget_block(size_t bytes);

// Takes what huge_reserve says. Call once, when the options are read.
void take_reserve();

// Huge pages may be available now: ends the pauses after refusals.
void forgive_refusals();

// The part of huge_reserve that no region has taken yet. The second unmaps it at the very end.
size_t reserved_bytes();
void drop_reserve();
bool reserve_is_locked();

// May so much more be on huge pages (huge_max)?
bool under_cap(size_t bytes);

// Bytes on hugetlb pages, and bytes for which transparent ones were asked; atomic, relaxed.
extern size_t pinned_bytes;
extern size_t advised_bytes;
extern size_t huge_refusals;  // calls for large pages that were refused

// Moves 2 MiB in use onto a huge page, if that is wanted and due: it takes 1/50 of the time at most. No lock
// may be held. True: it made system calls, four at most.
bool collapse_one();
// The heap has grown. Called with page_lock held.
void expect_collapses();

// For fork. Parent and child write into copies of their own. If the hugetlb pool has no page for a copy, the
// kernel kills the child. So the parent first makes a copy on small pages, which the child takes instead.
void reserve_at_fork(os::ForkStep step);

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_BACKING_H
