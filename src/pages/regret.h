// Regret: memory that was purged because a bound was exceeded, and was then needed again. It raises the
// bound. Otherwise a program that frees and allocates in turns would purge the same memory and fault it in
// again each time. Each decay time halves regret, so the bound sinks again once a program behaves
// differently. After a pause it begins anew: what is needed again after so long would have gone by the clock
// as well, and to fault it in costs little beside the pause.
#ifndef HUMMOCK_PAGES_REGRET_H
#define HUMMOCK_PAGES_REGRET_H

#include "base/own_line.h"
#include "pages/slab_header.h"

namespace hummock::pages {

// Regret raises no bound by more than what was in use lately, and 32 MiB.
size_t bound_regret(size_t bytes);

// Counts small pages. Any thread may call; atomic, relaxed: figures.
class Regret {
 public:
  void note_purged(size_t pages) { __atomic_fetch_add(&purged_, pages, __ATOMIC_RELAXED); }

  // Purged memory is handed out again. If two threads come at once, one may not be counted.
  void note_needed(size_t pages) {
    size_t purged = relaxed(purged_);
    if (purged == 0) return;
    const size_t again = pages < purged ? pages : purged;
    if (!__atomic_compare_exchange_n(&purged_, &purged, purged - again, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
      return;
    __atomic_fetch_add(&again_, again, __ATOMIC_RELAXED);
  }

  // Purged and needed again. The bound is higher by this much, or by a multiple of it.
  size_t bytes() const { return relaxed(again_) * kSmallPage; }
  // The same, less two pages for each that was purged and is not needed since: 0 until two thirds are.
  size_t bytes_beyond_most() const {
    const size_t again = relaxed(again_), spared = 2 * relaxed(purged_);
    return again > spared ? (again - spared) * kSmallPage : 0;
  }

  // So many decay times are over since the last call.
  void fade(uint64_t periods) {
    const size_t again = bound_regret(bytes()) / kSmallPage;  // what is more raised nothing
    set_relaxed(purged_, periods < 32 ? relaxed(purged_) >> periods : 0);
    set_relaxed(again_, periods < 32 ? again >> periods : 0);
  }

 private:
  size_t purged_;  // purged, and not needed since
  size_t again_;   // purged, and needed again
};

// For free slots and mappings, for pages under new slabs, for pages inside slabs whose thread does not look
// at what others freed there, and for those that a thread purged in its own slabs: in own_regret what was
// handed out again, in ended_regret what was in slabs that ended.
extern base::OwnLine<Regret> slot_regret, hidden_regret, slab_regret, own_regret, ended_regret;

// Fades all of them, for a tick at `now`; nobody ticked for `pause`. All times in ms.
void fade_regret(uint64_t now, uint64_t decay, uint64_t pause);

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_REGRET_H
