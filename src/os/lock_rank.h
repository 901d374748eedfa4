// The order of all locks. Who holds a lock takes only locks that stand below it here.
#ifndef HUMMOCK_OS_LOCK_RANK_H
#define HUMMOCK_OS_LOCK_RANK_H

#include <stdint.h>

namespace hummock::os {

// Top down. Where there are many locks of a rank, a thread holds one of them at a time; a fork takes all.
// A space's own lock is apart (space/space.h): nothing is called under it but the system.
enum class Rank : uint8_t {
  start,        // heap/attach.cc: the first call reads the options
  proxies,      // proxy/proxy.h
  spaces,       // space/registry.cc
  checked,      // modes/checked.cc
  guards,       // modes/guards.cc
  user_pool,    // heap/user_record.cc
  heap,         // heap/user.h: one for each first-class heap
  heap_pool,    // heap/heap_pool.cc
  idle,         // heap/idle.cc
  shard,        // shard/shard.cc: one for each
  growth,       // pages/page_heap.cc: who adds a region
  mappings,     // pages/kept.h: very large blocks
  page_heap,    // pages/region.h
  records,      // pages/metadata.cc
  reserve,      // pages/region.h: pages set aside
  large_pages,  // os/windows/large.cc
  region_log,   // os/region_log.cc
  count
};

constexpr const char* name_of(Rank rank) {
  constexpr const char* kNames[] = {
      "start", "proxies", "spaces",   "checked",   "guards",  "user pool", "heap",        "heap pool", "idle",
      "shard", "growth",  "mappings", "page heap", "records", "reserve",   "large pages", "region log"};
  static_assert(sizeof kNames / sizeof *kNames == static_cast<unsigned>(Rank::count));
  return kNames[static_cast<unsigned>(rank)];
}

// Proxies and spaces have handlers of fork of their own. They take their locks after the heap's, since the
// first call may make a space; nothing of theirs waits for the heap.
constexpr uint32_t family_of(Rank rank) {
  constexpr uint32_t kApart = 1u << static_cast<unsigned>(Rank::proxies);
  constexpr uint32_t kSpaces = 1u << static_cast<unsigned>(Rank::spaces);
  if (rank == Rank::proxies) return kApart;
  return rank == Rank::spaces ? kSpaces : ~(kApart | kSpaces);
}

}  // namespace hummock::os

#endif  // HUMMOCK_OS_LOCK_RANK_H
