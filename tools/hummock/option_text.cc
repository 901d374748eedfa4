#include "option_text.h"

#include <strings.h>

#include "base/option_value.h"

namespace hummock::tool {

const options::Option* find_option(const std::string& name) {
  for (const options::Option& option : options::kTable) {
    if (strcasecmp(name.c_str(), option.name) == 0) return &option;
  }
  return nullptr;
}

std::vector<std::string> option_names() {
  std::vector<std::string> names;
  for (const options::Option& option : options::kTable) names.emplace_back(option.name);
  return names;
}

std::string wrong_value(const options::Option& option, const std::string& value, int64_t* number) {
  const base::Text given = base::trimmed({value.data(), value.size()});
  if (parse(option, given, number)) return "";
  base::Line known("");
  print_nearest(known, option, given);
  print_allowed(known << "; it may be ", option);
  return "cannot be \"" + value + "\"; the nearest is " + known.c_str();
}

}  // namespace hummock::tool
