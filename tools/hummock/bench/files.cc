#include "bench/files.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace hummock::tool {

void write_each(std::initializer_list<std::pair<std::string, Writer>> files, const Json& document) {
  std::string failed;
  for (const auto& [path, write] : files) {
    if (path.empty()) continue;
    try {
      write(path, document);
    } catch (const std::exception& error) {
      failed += (failed.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  if (!failed.empty()) throw std::runtime_error(failed);
}

}  // namespace hummock::tool
