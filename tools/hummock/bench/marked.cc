#include "bench/marked.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/document.h"
#include "bench/table.h"
#include "outputs.h"

namespace hummock::tool {
namespace {

constexpr const char* kBegin = "<!-- hummock bench table ";
constexpr const char* kEnd = "<!-- end of hummock bench table -->\n";

// `text` with `table` between its marker lines.
std::string with_table(const std::string& path, const std::string& text, const std::string& begin,
                       const std::string& table) {
  const std::size_t start = text.find(kBegin);
  const std::size_t end = start == std::string::npos ? start : text.find(kEnd, start);
  if (end == std::string::npos)
    throw std::runtime_error(
        fmt::format("{} has no place for the table: a line {}RESULT --> and, below it, a line {}", path,
                    kBegin, std::string(kEnd, std::string(kEnd).size() - 1)));
  return text.substr(0, start) + begin + table + text.substr(end);
}

}  // namespace

int make_table(const TableOptions& options) {
  const std::string table = markdown_table(read_document(options.result), options.by);
  const std::string& path = options.into.empty() ? options.check : options.into;
  if (path.empty()) {
    fputs(table.c_str(), stdout);
    return 0;
  }
  const std::string by = options.by == "group" ? "" : " --by " + options.by;
  const std::string begin = kBegin + options.result + by + " -->\n\n";
  const std::string before = read_text(path), after = with_table(path, before, begin, table + "\n");
  if (!options.into.empty()) {
    if (after != before) write_text(path, after);
    return 0;
  }
  if (after == before) return 0;
  fputs(fmt::format("{}: the table is not what {} makes; run: hummock bench table {}{} --into {}\n", path,
                    options.result, options.result, by, path)
            .c_str(),
        stderr);
  return 1;
}

}  // namespace hummock::tool
