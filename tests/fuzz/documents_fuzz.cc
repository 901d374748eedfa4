// The reader of bench results, on any bytes: a file is refused in one line, or everything that the tool makes
// of a result can be made of it. Two results, parted by a line of "====", are compared.
#include <sys/mman.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/compare.h"
#include "bench/document.h"
#include "bench/table.h"
#include "fuzz.h"

namespace {

using fuzz::expect;
using hummock::tool::Json;

// A path under which the tool reads `text`.
class File {
 public:
  explicit File(const std::string& text) : fd_(memfd_create("document", MFD_CLOEXEC)) {
    expect(fd_ >= 0 && write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "a file");
  }
  ~File() { close(fd_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// False when it is no result; then one line says so.
bool read(const std::string& text, Json* out) {
  const File file(text);
  try {
    *out = hummock::tool::read_document(file.path());
    return true;
  } catch (const std::runtime_error& error) {
    const std::string said = error.what();
    expect(said.find(file.path()) != std::string::npos, "a refusal names the file");
    expect(said.find('\n') == std::string::npos, "a refusal is one line");
    return false;
  }
}

// The report's data stand in a script element: nothing in them may end it, or begin a comment.
void check_report(const Json& document) {
  const std::string data = hummock::tool::script_data(document);
  expect(data.find('<') == std::string::npos, "no markup in the data");
  const auto text = [](const Json& one) { return one.dump(-1, ' ', false, Json::error_handler_t::replace); };
  expect(text(Json::parse(data, nullptr, false)) == text(document), "the data are the document");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string parting = "\n====\n";
  const size_t at = text.find(parting);
  Json one, other;
  if (!read(text.substr(0, at), &one)) return 0;
  if (at == std::string::npos || !read(text.substr(at + parting.size()), &other)) other = one;
  double worse = 0;
  expect(!hummock::tool::comparison(one, other, worse).empty() && worse >= 0, "a comparison");
  for (const Json* document : {&one, &other}) {
    expect(!hummock::tool::terminal_table(*document, true).empty(), "a table");
    for (const char* by : {"group", "workload"})
      expect(!hummock::tool::markdown_table(*document, by).empty(), "a table in Markdown");
    const File file("");
    hummock::tool::write_csv(file.path(), *document);
    hummock::tool::write_json(file.path(), *document);
    check_report(*document);
  }
  return 0;
}
