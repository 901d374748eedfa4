#include "option_text.h"

#include "base/option_value.h"

namespace hummock::tool {

const options::Option* find_option(const std::string& name) {
  for (const options::Option& option : options::kTable) {
    if (name == option.name) return &option;
  }
  return nullptr;
}

std::vector<std::string> option_names() {
  std::vector<std::string> names;
  for (const options::Option& option : options::kTable) names.emplace_back(option.name);
  return names;
}

std::string wrong_value(const options::Option& option, const std::string& value, int64_t* number) {
  if (parse(option, base::trimmed({value.data(), value.size()}), number)) return "";
  base::Line allowed("");
  print_allowed(allowed, option);
  return "cannot be \"" + value + "\"; it may be " + allowed.c_str();
}

}  // namespace hummock::tool
