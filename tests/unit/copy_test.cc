// What realloc copies from is memory to the next block there, too: no page of it faults a second time.
#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <string.h>
#include <sys/resource.h>

#include <algorithm>
#include <vector>

#include "os/os.h"
#include "support/figures.h"

namespace {

constexpr size_t kBlocks = 50;
constexpr size_t kLong = 60000;
constexpr size_t kShort = 20000;
constexpr long kPages = kShort / 4096;  // written by nobody when they are copied, of each block

long page_faults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

std::vector<char*> take() {
  std::vector<char*> blocks(kBlocks);
  for (char*& block : blocks) block = static_cast<char*>(hummock_malloc(kLong));
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

}  // namespace

TEST_CASE("a page that was copied unwritten faults once") {
  if (support::checked()) return;
  const std::vector<char*> blocks = take();
  for (char* block : blocks) {
    REQUIRE(block != nullptr);
    block[0] = 'a';
  }
  std::vector<char*> cut;
  for (char* block : blocks) {
    cut.push_back(static_cast<char*>(hummock_realloc(block, kShort)));
    REQUIRE(cut.back() != nullptr);
    CHECK(cut.back()[0] == 'a');
  }
  // The blocks that were left come again.
  const std::vector<char*> again = take();
  long known = 0, faults = 0;
  for (char* block : again) {
    if (!std::binary_search(blocks.begin(), blocks.end(), block)) continue;
    ++known;
    const long before = page_faults();
    memset(block, 'b', kShort);
    faults += page_faults() - before;
  }
  CHECK(known >= static_cast<long>(kBlocks / 2));
  if (hummock::os::kSharesZeros) CHECK(faults < known * kPages / 2);
  for (char* block : again) hummock_free(block);
  for (char* block : cut) hummock_free(block);
}
