// The check of the locks' order. Each thread knows how many of each rank it holds.
#include "os/lock_watch.h"

#if defined(HUMMOCK_CHECK_LOCKS)

#include "base/message.h"
#include "base/system.h"

namespace hummock::os::watch {
namespace {

constexpr unsigned kRanks = static_cast<unsigned>(Rank::count);

struct Held {
  uint32_t ranks;  // bit i: counts[i] is not 0
  uint32_t counts[kRanks];
};

// Initial-exec: a lock is taken where nothing may be allocated.
__thread Held held __attribute__((tls_model("initial-exec")));
__thread Held held_for_fork __attribute__((tls_model("initial-exec")));

uint32_t bit_of(Rank rank) {
  return 1u << static_cast<unsigned>(rank);
}

// This one and what stands below it.
uint32_t from(Rank rank) {
  return ~(bit_of(rank) - 1);
}

void check(Rank rank, uint32_t wrong) {
  if (wrong == 0) return;
  const auto other = static_cast<Rank>(__builtin_ctz(wrong));
  base::say(base::Line() << "locks out of order: \"" << name_of(rank) << "\" is asked for under \""
                         << name_of(other) << "\"");
  base::stop_here();
}

}  // namespace

void check_order(Rank rank) {
  check(rank, (held.ranks | held_for_fork.ranks) & from(rank));
}

void check_fork_order(Rank rank) {
  check(rank, held_for_fork.ranks & from(rank) & ~bit_of(rank) & family_of(rank));
}

void note(Rank rank, bool for_fork) {
  Held& of = for_fork ? held_for_fork : held;
  ++of.counts[static_cast<unsigned>(rank)];
  of.ranks |= bit_of(rank);
}

void forget(Rank rank, bool for_fork) {
  Held& of = for_fork ? held_for_fork : held;
  uint32_t& count = of.counts[static_cast<unsigned>(rank)];
  if (count == 0) {
    base::say(base::Line() << "lock \"" << name_of(rank) << "\" is released by who does not hold it");
    base::stop_here();
  }
  if (--count == 0) of.ranks &= ~bit_of(rank);
}

}  // namespace hummock::os::watch

#endif
