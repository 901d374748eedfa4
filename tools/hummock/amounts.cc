#include "amounts.h"

#include <fmt/format.h>

#include <cmath>

namespace hummock::tool {

std::string bytes_text(double bytes) {
  const char* unit = "";
  double shown = std::fabs(bytes);
  for (const char* next : {"K", "M", "G", "T", "P", "E"}) {
    if (shown < 1024) break;
    shown /= 1024;
    unit = next;
  }
  return fmt::format("{}{:.{}f}{}", bytes < 0 ? "-" : "", shown, *unit == '\0' || shown >= 100 ? 0 : 1, unit);
}

std::string size_text(double bytes) {
  std::string text = bytes_text(bytes);
  if (std::fabs(bytes) >= 1024) return text;
  return text + (text == "1" ? " byte" : " bytes");
}

}  // namespace hummock::tool
