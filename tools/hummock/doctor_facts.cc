#include <fstream>
#include <sstream>

#include "doctor.h"

namespace hummock::tool {
namespace {

constexpr const char* kSpace = " \t:=";

std::optional<unsigned long long> number_of(const std::optional<std::string>& text) {
  if (!text || text->empty() || (*text)[0] < '0' || (*text)[0] > '9') return std::nullopt;
  return strtoull(text->c_str(), nullptr, 10);
}

}  // namespace

std::optional<std::string> Facts::text(const std::string& path) const {
  std::ifstream file(root_ + path);
  if (!file) return std::nullopt;
  std::stringstream all;
  all << file.rdbuf();
  std::string content = all.str();
  while (!content.empty() && content.back() == '\n') content.pop_back();
  return content;
}

std::optional<unsigned long long> Facts::number(const std::string& path) const {
  return number_of(text(path));
}

std::optional<std::string> Facts::field(const std::string& path, const std::string& key) const {
  std::ifstream file(root_ + path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t from = line.find_first_not_of(kSpace, key.size());
    return from == std::string::npos ? std::string() : line.substr(from);
  }
  return std::nullopt;
}

std::optional<unsigned long long> Facts::number_field(const std::string& path, const std::string& key) const {
  return number_of(field(path, key));
}

std::optional<std::string> Facts::chosen(const std::string& path) const {
  const std::optional<std::string> all = text(path);
  if (!all) return std::nullopt;
  const size_t open = all->find('['), close = all->find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  return all->substr(open + 1, close - open - 1);
}

}  // namespace hummock::tool
