#include "bench/waste.h"

#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/process.h"

namespace hummock::tool {
namespace {

constexpr std::size_t kLargest = 64 << 10;

// Every size to 64, every multiple of 8 to 256 and then about 32 sizes a doubling, and each with one byte
// more: just above a class is where most is lost.
std::size_t next_size(std::size_t size) {
  if (size < 64) return size + 1;
  std::size_t power = 8;
  while (power * 2 <= size) power *= 2;
  const std::size_t step = power / 32 < 8 ? 8 : power / 32;
  return size % step == 0 ? size + 1 : size / step * step + step;
}

}  // namespace

int print_usable() {
  for (std::size_t size = 1; size <= kLargest; size = next_size(size)) {
    void* block = malloc(size);
    if (block == nullptr) return 1;
    printf("%zu %zu\n", size, malloc_usable_size(block));
    free(block);
  }
  return 0;
}

Json measure_waste(const std::vector<Allocator>& allocators) {
  Json waste = Json::array();
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  for (const Allocator& allocator : allocators) {
    const Outcome outcome = execute({self, "bench", "usable"}, environment_of(allocator), 20);
    if (outcome.status != 0) continue;
    std::istringstream lines(outcome.out);
    for (std::size_t size, usable; lines >> size >> usable;)
      waste.push_back({{"size", size}, {"allocator", allocator.name}, {"usable", usable}});
  }
  return waste;
}

}  // namespace hummock::tool
