// Which live blocks of a stopped process are still pointed to: a conservative scan.
#pragma once

#include <vector>

#include "../profile/read.h"
#include "trace.h"

namespace hummock::tool {

enum class Reach : uint8_t {
  lost,      // nothing points to it
  indirect,  // blocks that are lost point to it
  reachable
};

// Of each of profile.live, in its order, which it sorts by address. Throws when the memory cannot be read.
std::vector<Reach> scan(const StoppedProcess& process, RawProfile* profile);

}  // namespace hummock::tool
