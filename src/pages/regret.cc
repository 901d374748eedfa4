#include "pages/regret.h"

#include "pages/region.h"

namespace hummock::pages {

base::OwnLine<Regret> slot_regret, hidden_regret, slab_regret, own_regret, ended_regret;

namespace {

uint64_t regret_faded;  // ms. Guarded by page_lock

}  // namespace

size_t bound_regret(size_t bytes) {
  constexpr size_t kBeyond = 32 << 20;
  const size_t most = relaxed(high_used) * kSlotSize + kBeyond;
  return bytes < most ? bytes : most;
}

void fade_regret(uint64_t now, uint64_t decay, uint64_t pause) {
  constexpr uint64_t kAll = 64, kLeastPause = 100;
  os::LockGuard guard(page_lock);
  const bool rested = pause >= decay / 2 && pause >= kLeastPause;
  const uint64_t since = now > regret_faded ? now - regret_faded : 0;  // another thread's tick may be later
  if (!rested && (since < decay || since == 0)) return;
  const uint64_t periods = rested ? kAll : since / (decay == 0 ? 1 : decay);
  regret_faded = now;
  slot_regret.value.fade(periods);
  hidden_regret.value.fade(periods);
  slab_regret.value.fade(periods);
  own_regret.value.fade(periods);
  ended_regret.value.fade(periods);
  tell_use();
  const size_t used = used_slots + relaxed(huge_bytes) / kSlotSize;
  set_relaxed(high_used, high_used / 2 > used ? high_used / 2 : used);
}

}  // namespace hummock::pages
