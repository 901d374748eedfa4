#include "promise.h"

#include <unistd.h>

#include <sstream>

#include "base/text.h"
#include "option_text.h"

namespace hummock::tool {
namespace {

std::string trimmed(const std::string& text) {
  const base::Text inner = base::trimmed({text.data(), text.size()});
  return {inner.from, inner.length};
}

// Is this text, as name=value or name:value, of the option? *value is set then.
bool assigns(const std::string& text, const char* option, std::string* value) {
  const size_t at = text.find_first_of("=:");
  if (at == std::string::npos || find_option(trimmed(text.substr(0, at))) != find_option(option))
    return false;
  *value = trimmed(text.substr(at + 1));
  return true;
}

// As the library reads it: a variable of the option's own goes before HUMMOCK_CONF.
bool is_asked_for(const char* option) {
  const std::string prefix = "HUMMOCK_", conf = "HUMMOCK_CONF=";
  std::string value, own;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.starts_with(conf)) {
      std::stringstream parts(text.substr(conf.size()));
      for (std::string part; std::getline(parts, part, ',');) assigns(part, option, &value);
    } else if (text.starts_with(prefix)) {
      assigns(text.substr(prefix.size()), option, &own);
    }
  }
  if (!own.empty()) value = own;
  int64_t number = 0;
  return !value.empty() && wrong_value(*find_option(option), value, &number).empty() && number != 0;
}

}  // namespace

std::string broken_promise(const Program& program, const std::string& watched) {
  if (!watched.empty()) {
    if (is_asked_for("checked")) return "there is no " + watched + " in checked mode";
    if (is_asked_for("space_initial")) return "there is no " + watched + " where a space serves malloc";
  }
  if (program.own_malloc.empty()) return "";
  constexpr struct {
    const char *option, *name;
  } kPromises[] = {{"checked", "checked mode"},
                   {"space_initial", "space for malloc"},
                   {"limit_hard", "limit"},
                   {"limit_soft", "limit"}};
  for (const auto& [option, name] : kPromises)
    if (is_asked_for(option)) return program.own_malloc + "; so there can be no " + name;
  return "";
}

}  // namespace hummock::tool
