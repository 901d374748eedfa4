// A system without huge pages of its own, whose answers a test chooses, and a clock that the test moves.
#pragma once
#include <errno.h>
#include <hummock/hummock.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/options.h"
#include "os/os.h"
#include "pages/backing.h"
#include "pages/region.h"

namespace support::huge_pages {

inline uint64_t clock_ns = 3'600'000'000'000;

// The clock stands still unless a test moves it: how busy the machine is makes no difference.
inline int read_clock(clockid_t, timespec* now) {
  now->tv_sec = static_cast<time_t>(clock_ns / 1'000'000'000);
  now->tv_nsec = static_cast<long>(clock_ns % 1'000'000'000);
  return 0;
}
inline const bool clock_is_ours = (hummock::os::read_clock = read_clock, true);

namespace os = hummock::os;
namespace options = hummock::options;
using namespace hummock::pages;

inline const os::Calls real = os::calls;
inline constexpr int kHugeAdvice = 14, kSmallAdvice = 15, kPopulate = 23, kCollapseAdvice = 25;

// A system that has no huge pages of its own: what is asked of it is counted, and answered as `says` tells.
struct System {
  int set_aside_error = 0;  // of a mapping of pages set aside; 0: served by small ones
  int huge_error = 0;
  int collapse_error = 0;
  int populate_error = 0;
  size_t set_aside = 0, no_reserve = 0, huge = 0, small = 0, collapses = 0;
  uint64_t collapse_ms = 0;                       // that a collapse takes
  void (*during_collapse)(char* page) = nullptr;  // what another thread might do meanwhile
  bool locked = false;                            // a slow call was made with page_lock held
};
inline System says;

// The lock's first word is 0 when nobody holds it; no other thread runs here.
inline void note_lock() {
  uintptr_t word;
  memcpy(&word, &page_lock, sizeof word);
  says.locked |= word != 0;
}

inline void* map(void* hint, size_t size, int protection, int flags) {
  if ((flags & MAP_HUGETLB) == 0) return real.map(hint, size, protection, flags);
  note_lock();
  ++says.set_aside;
  says.no_reserve += (flags & MAP_NORESERVE) != 0;
  if (says.set_aside_error != 0) {
    errno = says.set_aside_error;
    return MAP_FAILED;
  }
  return real.map(hint, size, protection, MAP_PRIVATE | MAP_ANONYMOUS);
}

inline int advise(void* address, size_t size, int advice) {
  int error = 0;
  if (advice == kHugeAdvice) ++says.huge, error = says.huge_error;
  if (advice == kSmallAdvice) ++says.small;
  if (advice == kPopulate) error = says.populate_error;
  if (advice == kCollapseAdvice) {
    ++says.collapses;
    error = says.collapse_error;
    clock_ns += says.collapse_ms * 1'000'000;
    if (says.during_collapse != nullptr) says.during_collapse(static_cast<char*>(address));
  }
  if (advice >= kHugeAdvice) {
    note_lock();
    errno = error;
    return error == 0 ? 0 : -1;
  }
  note_lock();
  return real.advise(address, size, advice);
}

struct With {
  explicit With(const char* conf) {
    hummock_free(hummock_malloc(1));  // reads the options, which would go over these
    says = {};
    back_offs = {};
    options::load(conf, nullptr);
    os::calls = {map, real.unmap, advise, real.remap};
    pinned_before = pinned_bytes;
    advised_before = advised_bytes;
    refusals_before = huge_refusals;
  }
  ~With() {
    os::calls = real;
    options::load(nullptr, nullptr);
    pinned_bytes = pinned_before;
    advised_bytes = advised_before;
  }
  size_t pinned() const { return pinned_bytes - pinned_before; }
  size_t advised() const { return advised_bytes - advised_before; }
  size_t refusals() const { return huge_refusals - refusals_before; }
  size_t pinned_before, advised_before, refusals_before;
};

inline NewRegion map_one(size_t size = hummock::kRegionSize) {
  const NewRegion fresh = map_region(size);
  if (fresh.base != nullptr) real.unmap(fresh.base, size);
  return fresh;
}

inline void pass(uint64_t ms) {
  clock_ns += ms * 1'000'000;
}

inline bool thp_possible() {
  const char* why = nullptr;
  return os::transparent_allowed(&why);
}

}  // namespace support::huge_pages
