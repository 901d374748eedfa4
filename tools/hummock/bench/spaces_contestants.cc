// Who takes part in hummock bench spaces. All are set to keep the memory they have, and to take huge pages
// where they can: what is compared is finding a block, not asking the system for memory.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "bench/peers.h"
#include "bench/spaces_bench.h"
#include "near.h"

namespace hummock::tool {
namespace {

struct Known {
  const char* name;
  const char* what;
  const char* allocator;  // as find_allocators() names it
  const char* space;
  std::vector<std::string> settings;
};

std::vector<Known> known_contestants() {
  return {
      {"space", "a space of one thread: dense, no lock, with a cache", "hummock", "space", {}},
      {"space-bare", "the same without the cache", "hummock", "space-bare", {}},
      {"space-threads", "a space of all threads, each with a cache", "hummock", "space-threads", {}},
      {"space-small-pages", "as space, in pages of 4 KiB", "hummock", "space-small-pages", {}},
      {"hummock", "malloc of libhummock.so", "hummock", "", {"HUMMOCK_CONF=decay_ms:never,huge_pages:thp"}},
      {"system", "libc's malloc as it is", "system", "", {}},
      {"glibc-tuned",
       "libc's malloc that keeps its memory",
       "system",
       "",
       {"GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=0x7fffffffffffffff:"
        "glibc.malloc.top_pad=67108864:glibc.malloc.hugetlb=1"}},
      {"jemalloc",
       "that keeps its memory",
       "jemalloc",
       "",
       {"MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1,lg_extent_max_active_fit:63,thp:always"}},
      {"mimalloc",
       "that keeps its memory",
       "mimalloc",
       "",
       {"MIMALLOC_ALLOW_DECOMMIT=0", "MIMALLOC_PAGE_RESET=0", "MIMALLOC_LARGE_OS_PAGES=1",
        "MIMALLOC_RESERVE_OS_MEMORY=1GiB"}},
      {"tcmalloc", "that keeps its memory", "tcmalloc", "", {"TCMALLOC_RELEASE_RATE=0"}},
  };
}

bool wanted(const BenchSpacesOptions& options, const std::string& name) {
  return options.against.empty() || name.rfind("space", 0) == 0 ||
         std::find(options.against.begin(), options.against.end(), name) != options.against.end();
}

}  // namespace

Contestants find_contestants(const BenchSpacesOptions& options, const std::string& worker) {
  const std::vector<Known> known = known_contestants();
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const Known& one : known) names.emplace_back(one.name);
  for (const std::string& name : options.against)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw std::runtime_error(fmt::format("no contestant is called {}{}", name, nearest_text(name, names)));
  BenchOptions all;
  all.library = options.library;
  const Peers peers = find_allocators(all);
  Contestants found;
  std::vector<std::string> checked;
  for (const Known& one : known) {
    if (!wanted(options, one.name)) continue;
    const auto peer = std::find_if(peers.allocators.begin(), peers.allocators.end(),
                                   [&](const Allocator& each) { return each.name == one.allocator; });
    if (peer == peers.allocators.end()) {
      found.missing.push_back(fmt::format("{} is not installed", one.name));
      continue;
    }
    if (std::find(checked.begin(), checked.end(), one.allocator) == checked.end()) {
      checked.emplace_back(one.allocator);
      if (const std::string reason = why_not_active(*peer, worker); !reason.empty())
        throw std::runtime_error(fmt::format("{} is not active: {}", one.name, reason));
    }
    found.all.push_back({one.name, one.what, peer->version, peer->library, peer->origin, one.settings,
                         one.space, peer->name == "hummock"});
  }
  return found;
}

}  // namespace hummock::tool
