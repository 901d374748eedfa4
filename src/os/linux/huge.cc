// Huge pages on Linux: hugetlb (pages set aside by the administrator) and transparent ones.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/bits.h"
#include "base/keep_errno.h"
#include "os/linux/files.h"
#include "os/os.h"

namespace hummock::os {
namespace {

// A constant of kernels that are newer than the C library's headers.
constexpr int kPopulateWrite = 23;
constexpr int kCollapse = 25;
constexpr int kFixedNoReplace = 0x100000;

constexpr char kTransparent[] = "/sys/kernel/mm/transparent_hugepage/enabled";
constexpr char kTransparent2M[] = "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";

int advise(void* address, size_t size, int advice) {
  const base::KeepErrno keep;
  return calls.advise(address, size, advice) == 0 ? 0 : errno;
}

// A size without a file of its own has the mode of all.
Setting read_mode(const char* path, const char** why) {
  char text[128];
  if (read_value(path, text, sizeof text) == 0 || strstr(text, "[inherit]") != nullptr) return Setting::above;
  if (strstr(text, "[never]") == nullptr) return Setting::allowed;
  *why = "transparent_hugepage/enabled is never";
  return Setting::denied;
}

}  // namespace

void* map_set_aside(size_t size, size_t align, size_t page, MayStand may, int* error) {
  void* place = reserve_where(size, align, may);
  if (place == nullptr || !unmap(place, size)) {
    *error = ENOMEM;
    return nullptr;
  }
  const base::KeepErrno keep;
  // With MAP_NORESERVE the pages would only be looked for when touched, and their lack be a SIGBUS.
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | kFixedNoReplace |
                    static_cast<int>(base::log2_floor(page) << 26);
  void* got = calls.map(place, size, PROT_READ | PROT_WRITE, flags);
  *error = got == MAP_FAILED ? errno : got != place ? EEXIST : populate(got, size);
  // A kernel that cannot populate has reserved them all the same. Other errors (the limit of a group, a node
  // without such pages) would be a SIGBUS when touched.
  if (*error == EINVAL && got == place) *error = 0;
  if (*error != 0 && got != MAP_FAILED) calls.unmap(got, size);
  return *error == 0 ? got : nullptr;
}

int advise_huge(void* address, size_t size, bool wanted) {
  return advise(address, size, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

Setting transparent_setting(bool above, const char** why) {
  if (above) return read_mode(kTransparent, why) == Setting::denied ? Setting::denied : Setting::allowed;
  const base::KeepErrno keep;
  const int disabled = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);  // emulators may not know it
  // 1: off. 3: off but where advised (Linux 6.18).
  if (disabled == 1) {
    *why = "PR_SET_THP_DISABLE is set for the process";
    return Setting::denied;
  }
  return read_mode(kTransparent2M, why);
}

int collapse(void* address, size_t size) {
  return advise(address, size, kCollapse);
}

bool find_touched(void* address, size_t size, unsigned char* page) {
  const base::KeepErrno keep;
  return mincore(address, size, page) == 0;
}

int populate(void* address, size_t size) {
  return advise(address, size, kPopulateWrite);
}

// The pages are mapped elsewhere first: where memory is not overcommitted that may be refused, and a refused
// mmap may already have unmapped what it was to replace.
bool replace_by_small(void* address, size_t size) {
  const base::KeepErrno keep;
  void* fresh = calls.map(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  const bool replaced = fresh != MAP_FAILED &&
                        calls.remap(fresh, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, address) != MAP_FAILED;
  if (fresh != MAP_FAILED && !replaced) calls.unmap(fresh, size);
  return replaced;
}

size_t available_bytes() {
  const uint64_t kib = number_in_file("/proc/meminfo", "MemAvailable");
  size_t least = kib == kNoNumber ? 0 : kib << 10;
  // Where a group is all that a container sees: version 2, version 1.
  constexpr const char* kLimits[][2] = {
      {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"}};
  for (const auto& [most, current] : kLimits) {
    const uint64_t limit = number_in_file(most, "");
    const uint64_t now = number_in_file(current, "");
    if (limit == kNoNumber || now == kNoNumber) continue;
    const size_t left = limit > now ? limit - now : 0;
    if (left < least) least = left;
  }
  return least;
}

}  // namespace hummock::os
