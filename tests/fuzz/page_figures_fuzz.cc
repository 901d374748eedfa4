// The reader of pages of figures, on any bytes: what it takes can be shown in all forms, and each form is
// well formed.
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "figures.h"
#include "figures_text.h"
#include "fuzz.h"

namespace {

// A page whose head is right, most often, and whose counts and texts are what the bytes say.
std::string draw(fuzz::Input& input) {
  std::string bytes(sizeof(hummock_page_t), '\0');
  const bool right = input.byte() < 240;
  const unsigned pieces = input.byte();
  for (unsigned i = 0; i < pieces; ++i) {
    const size_t at = input.below(bytes.size() - 8);
    const uint64_t word = input.bytes(8);
    memcpy(bytes.data() + at, &word, sizeof word);
  }
  if (!right) return bytes.substr(0, input.below(bytes.size() + 1));
  hummock_page_t page;
  memcpy(&page, bytes.data(), sizeof page);
  page.head.magic = HUMMOCK_PAGE_MAGIC;
  page.head.version = HUMMOCK_PAGE_VERSION;
  page.head.size = sizeof page;
  page.figures.class_count = static_cast<uint32_t>(input.below(HUMMOCK_PAGE_CLASSES + 2));
  page.figures.thread_count = static_cast<uint32_t>(input.below(HUMMOCK_PAGE_THREADS + 2));
  page.figures.heap_count = static_cast<uint32_t>(input.below(HUMMOCK_PAGE_HEAPS + 2));
  page.figures.option_count = static_cast<uint32_t>(input.below(HUMMOCK_PAGE_OPTIONS + 2));
  page.figures.space_count = static_cast<uint32_t>(input.below(HUMMOCK_PAGE_SPACES + 2));
  page.figures.tag_count = static_cast<uint32_t>(input.below(HUMMOCK_PAGE_TAGS + 2));
  if (input.byte() < 250) {  // else most pages would be refused for rows that are alike
    for (uint64_t i = 0; i < HUMMOCK_PAGE_CLASSES; ++i) page.figures.classes[i].block_size = 8 * i + 8;
    for (uint64_t i = 0; i < HUMMOCK_PAGE_TAGS; ++i) page.figures.tags[i].tag = i;
  }
  memcpy(bytes.data(), &page, sizeof page);
  return bytes;
}

// Each series of the metrics of one process stands there once.
void check_series(const std::string& metrics) {
  std::set<std::string> seen;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    if (line[0] == '#') continue;
    fuzz::expect(seen.insert(line.substr(0, line.rfind(' '))).second, "a series once");
  }
}

void check_lines(const std::string& text) {
  for (const unsigned char c : text)
    fuzz::expect(c == '\n' || c >= ' ', "no control characters in what is shown");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace tool = hummock::tool;
  fuzz::Input input(data, size);
  const std::string bytes = draw(input);
  std::string why;
  const auto page = tool::check_page(bytes, &why);
  fuzz::expect(page.has_value() != !why.empty(), "a reason for what is refused");
  if (!page) return 0;
  const auto first = tool::check_page(std::string_view(bytes).substr(0, tool::kFirstPageSize), &why);
  fuzz::expect(first && first->figures.drawn_bytes == 0, "a page of the first version of the library");
  tool::Snapshot snapshot;
  snapshot.pid = 1;
  snapshot.program = input.rest().substr(0, 64);
  snapshot.cgroup = "/a\"\\\n";
  snapshot.page = *page;
  check_lines(tool::report(snapshot));
  check_lines(tool::list({snapshot}));
  const std::string metrics = tool::metrics({snapshot});
  check_series(metrics);
  check_lines(metrics);
  fuzz::expect(metrics.ends_with("\n# EOF\n"), "metrics that end");
  const std::string json = tool::json_of(snapshot);
  fuzz::expect(nlohmann::json::accept(json), "JSON that parses");
  return 0;
}
