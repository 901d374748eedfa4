// The reader of pages of figures, on any bytes: what it takes can be shown in all forms, and each form is
// well formed.
#include <nlohmann/json.hpp>

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
  memcpy(bytes.data(), &page, sizeof page);
  return bytes;
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
  const std::string metrics = tool::metrics({snapshot, snapshot});
  check_lines(metrics);
  fuzz::expect(metrics.ends_with("\n# EOF\n"), "metrics that end");
  const std::string json = tool::json_of(snapshot);
  fuzz::expect(nlohmann::json::accept(json), "JSON that parses");
  return 0;
}
