// Numbers of bytes for people.
#pragma once

#include <cstdint>
#include <string>

namespace hummock::tool {

std::string bytes_text(double bytes);  // "40", "1.5K"
inline std::string bytes_text(uint64_t bytes) {
  return bytes_text(static_cast<double>(bytes));
}
std::string size_text(double bytes);  // "40 bytes", "1.5K"

}  // namespace hummock::tool
