#include "heap/resting.h"

#include "base/options.h"
#include "pages/pages.h"
#include "pages/regret.h"
#include "slab/slab.h"

namespace hummock::heap {
namespace {

constexpr size_t kMostRegret = 32 << 20;

// Where a thread frees and allocates in turns, each page inside its slabs would cost a system call and a
// fault. So it learns from a sixteenth of them.
constexpr size_t kOwnWeight = 16;

size_t may_rest() {
  return pages::bound_by_use(size_t{6} << 20, 16);
}

}  // namespace

size_t most_resting() {
  const size_t regret = pages::slab_regret.value.bytes();
  return may_rest() + (regret < kMostRegret ? regret : kMostRegret);
}

bool returned_too_much() {
  return options::values.decay_ms >= 0 &&
         relaxed(slab::returned_bytes.value) > static_cast<ptrdiff_t>(most_resting());
}

bool is_too_much(size_t own_bytes) {
  if (options::values.decay_ms < 0) return false;
  const ptrdiff_t returned = relaxed(slab::returned_bytes.value);
  const size_t needed = pages::own_regret.value.bytes() + pages::ended_regret.value.bytes_beyond_most();
  return own_bytes + static_cast<size_t>(returned < 0 ? 0 : returned) >
         may_rest() + pages::bound_regret(kOwnWeight * needed);
}

}  // namespace hummock::heap
