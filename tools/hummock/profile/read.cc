#include "read.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace hummock::tool {
namespace {

constexpr size_t kSize = sizeof(hummock_profile_t);
constexpr size_t kMostProfiles = 4096;

// Things of a table at `offset`, one after the other: never more than fit in the bytes.
template <class T>
T at(std::string_view bytes, size_t offset, size_t index) {
  T thing = {};
  const size_t from = offset + index * sizeof(T);
  if (from <= bytes.size() && bytes.size() - from >= sizeof(T))
    memcpy(&thing, bytes.data() + from, sizeof thing);
  return thing;
}

std::string text_of(const char* from, size_t room) {
  return std::string(from, strnlen(from, room));
}

Amount amount(uint64_t bytes, uint64_t blocks) {
  // What is taken off before it is added, by another thread, may show for a moment.
  constexpr uint64_t kMost = uint64_t{1} << 62;
  if (bytes > kMost || blocks > kMost) return {};
  return {static_cast<double>(bytes), static_cast<double>(blocks) / HUMMOCK_PROFILE_BLOCK};
}

RawStack read_stack(std::string_view bytes, const hummock_profile_head_t& head, uint32_t number) {
  const auto entry = at<hummock_profile_stack_t>(bytes, offsetof(hummock_profile_t, stack), number);
  RawStack stack;
  const uint32_t frames = std::min<uint32_t>(head.frames, HUMMOCK_PROFILE_FRAMES);
  if (entry.depth <= HUMMOCK_PROFILE_DEPTH && entry.depth <= frames && entry.first <= frames - entry.depth) {
    for (uint32_t i = 0; i < entry.depth; ++i)
      stack.frames.push_back(at<uint64_t>(bytes, offsetof(hummock_profile_t, frame), entry.first + i));
  }
  stack.live = amount(entry.live_bytes, entry.live_blocks);
  stack.churn = amount(entry.total_bytes, entry.total_blocks);
  const bool at_peak = head.rising != 0 || entry.mark != head.mark;
  stack.peak = at_peak ? stack.live : amount(entry.peak_bytes, entry.peak_blocks);
  for (size_t i = 0; i < stack.freed.size(); ++i) stack.freed[i] = amount(entry.freed_bytes[i], 0).bytes;
  stack.samples = entry.samples;
  stack.since = entry.since;
  return stack;
}

// A file that was unmapped before another came to its addresses, or part of them, is left out.
void read_modules(std::string_view bytes, uint32_t count, RawProfile* out) {
  count = std::min<uint32_t>(count, HUMMOCK_PROFILE_MODULES);
  for (uint32_t i = count; i-- != 0;) {
    const auto entry = at<hummock_profile_module_t>(bytes, offsetof(hummock_profile_t, module), i);
    const bool covered = std::any_of(out->modules.begin(), out->modules.end(), [&](const RawModule& other) {
      return entry.start < other.end && other.start < entry.end;
    });
    if (entry.start >= entry.end || covered) continue;
    out->modules.push_back({entry.start, entry.end, entry.base, text_of(entry.path, sizeof entry.path)});
  }
}

void count_live(std::string_view bytes, RawProfile* out) {
  for (size_t i = 0; i < HUMMOCK_PROFILE_SAMPLES; ++i) {
    const auto entry = at<hummock_profile_sample_t>(bytes, offsetof(hummock_profile_t, sample), i);
    if (entry.block <= 1 || entry.stack >= out->stacks.size()) continue;
    ++out->stacks[entry.stack].live_samples;
    out->live.push_back({entry.block, entry.size, entry.stack});
  }
}

bool read_bytes(int fd, size_t offset, std::string* out) {
  for (size_t done = 0; done < out->size();) {
    const ssize_t got = pread(fd, out->data() + done, out->size() - done, static_cast<off_t>(offset + done));
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

std::optional<RawProfile> parse_profile(std::string_view bytes, std::string* why) {
  const auto head = at<hummock_profile_head_t>(bytes, 0, 0);
  if (bytes.size() < kSize || head.magic != HUMMOCK_PROFILE_MAGIC) {
    *why = "its profile is not Hummock's";
    return std::nullopt;
  }
  if (head.version != HUMMOCK_PROFILE_VERSION || head.size != kSize) {
    *why = "its profile is of another version of Hummock than this command";
    return std::nullopt;
  }
  RawProfile profile;
  profile.pid = head.pid;
  profile.on = head.on != 0;
  profile.program = text_of(head.program, sizeof head.program);
  profile.mean = head.mean;
  profile.started = head.started;
  profile.samples = head.samples;
  profile.samples_dropped = head.samples_dropped;
  profile.stacks_dropped = head.stacks_dropped;
  const uint32_t stacks = std::min<uint32_t>(head.stacks, HUMMOCK_PROFILE_STACKS);
  for (uint32_t i = 0; i < stacks; ++i) profile.stacks.push_back(read_stack(bytes, head, i));
  read_modules(bytes, head.modules, &profile);
  count_live(bytes, &profile);
  return profile;
}

std::vector<RawProfile> read_profiles(int fd, std::string* why) {
  std::vector<RawProfile> profiles;
  struct stat about;
  *why = "its profile cannot be read";
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return profiles;
  const size_t count = std::min(static_cast<size_t>(about.st_size) / kSize, kMostProfiles);
  for (size_t i = 0; i < count; ++i) {
    std::string head(sizeof(hummock_profile_head_t), '\0');
    if (!read_bytes(fd, i * kSize, &head)) break;
    if (at<hummock_profile_head_t>(head, 0, 0).pid == 0) break;  // they are taken one after the other
    std::string bytes(kSize, '\0');
    if (!read_bytes(fd, i * kSize, &bytes)) break;
    if (auto profile = parse_profile(bytes, why)) profiles.push_back(std::move(*profile));
  }
  return profiles;
}

void subtract(RawProfile* profile, const RawProfile& before) {
  for (size_t i = 0; i < before.stacks.size() && i < profile->stacks.size(); ++i) {
    Amount& churn = profile->stacks[i].churn;
    churn.bytes = std::max(0.0, churn.bytes - before.stacks[i].churn.bytes);
    churn.blocks = std::max(0.0, churn.blocks - before.stacks[i].churn.blocks);
    Ages& freed = profile->stacks[i].freed;
    for (size_t k = 0; k < freed.size(); ++k) freed[k] = std::max(0.0, freed[k] - before.stacks[i].freed[k]);
    const uint64_t earlier = before.stacks[i].samples;
    profile->stacks[i].samples -= std::min(profile->stacks[i].samples, earlier);
  }
}

void subtract_live(RawProfile* profile, const RawProfile& before) {
  for (size_t i = 0; i < before.stacks.size() && i < profile->stacks.size(); ++i) {
    RawStack& stack = profile->stacks[i];
    stack.live.bytes = std::max(0.0, stack.live.bytes - before.stacks[i].live.bytes);
    stack.live.blocks = std::max(0.0, stack.live.blocks - before.stacks[i].live.blocks);
    stack.live_samples -= std::min(stack.live_samples, before.stacks[i].live_samples);
  }
}

}  // namespace hummock::tool
