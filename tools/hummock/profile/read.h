// The profile of a process as it stands in its memory (hummock/profile.h). All that is read there is taken
// for hostile.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hummock/profile.h"

namespace hummock::tool {

struct Amount {
  double bytes = 0;
  double blocks = 0;
  Amount& operator+=(const Amount& other) {
    bytes += other.bytes;
    blocks += other.blocks;
    return *this;
  }
};

// Bytes that were freed, by how long they had lived: ranges of hummock/profile.h.
using Ages = std::array<double, HUMMOCK_PROFILE_AGES>;

struct RawStack {
  std::vector<uint64_t> frames;  // return addresses, innermost first
  Amount live, churn, peak;
  Ages freed = {};
  uint64_t live_samples = 0, samples = 0;
  uint64_t since = 0;
};

struct RawModule {
  uint64_t start, end, base;
  std::string path;
};

// A live block.
struct RawSample {
  uint64_t block, size;
  uint32_t stack;
};

struct RawProfile {
  uint32_t pid = 0;  // in its own namespace
  bool on = false;
  std::string program;
  uint64_t mean = 0, started = 0;
  uint64_t samples = 0, samples_dropped = 0, stacks_dropped = 0;
  std::vector<RawStack> stacks;  // by number
  std::vector<RawModule> modules;
  std::vector<RawSample> live;
};

// All profiles that an open memfd has.
std::vector<RawProfile> read_profiles(int fd, std::string* why);
// One of them, of so many bytes.
std::optional<RawProfile> parse_profile(std::string_view bytes, std::string* why);

// What has been added since `before`: what was asked for and what was freed.
void subtract(RawProfile* profile, const RawProfile& before);
// By how much each stack's live blocks have grown since; what has shrunk is 0.
void subtract_live(RawProfile* profile, const RawProfile& before);

}  // namespace hummock::tool
