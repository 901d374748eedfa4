// Memory that was given back because a bound was exceeded, and was needed again, raises that bound: else a
// program that frees and allocates in turns would have the same memory given back and touched afresh each
// time. Ticks halve it, so that a bound sinks again once a program has changed its ways.
#ifndef HUMMOCK_PAGES_REGRET_H
#define HUMMOCK_PAGES_REGRET_H

#include "base/own_line.h"
#include "pages/slab_header.h"

namespace hummock::pages {

// In small pages. Any thread; atomic, relaxed: figures.
class Regret {
 public:
  void note_purged(size_t pages) { __atomic_fetch_add(&purged_, pages, __ATOMIC_RELAXED); }

  // Such memory has none and is handed out. Of two threads that come at once one may not be counted.
  void note_needed(size_t pages) {
    size_t purged = relaxed(purged_);
    if (purged == 0) return;
    const size_t again = pages < purged ? pages : purged;
    if (!__atomic_compare_exchange_n(&purged_, &purged, purged - again, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
      return;
    __atomic_fetch_add(&again_, again, __ATOMIC_RELAXED);
  }

  // By so much the bound is higher.
  size_t bytes() const { return relaxed(again_) * kSmallPage; }

  void halve() {
    set_relaxed(purged_, relaxed(purged_) / 2);
    set_relaxed(again_, relaxed(again_) / 2);
  }

 private:
  size_t purged_;  // given back, and not needed since
  size_t again_;   // of what was given back, needed again
};

// Of pages under new slabs, and of pages inside slabs of threads that do not look at what others freed there.
extern base::OwnLine<Regret> hidden_regret, slab_regret;

}  // namespace hummock::pages

#endif  // HUMMOCK_PAGES_REGRET_H
