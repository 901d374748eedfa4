#include "promise.h"

#include <cstdlib>

#include "option_text.h"

namespace hummock::tool {
namespace {

// The value of an option in HUMMOCK_CONF, key:value,key:value.
std::string in_conf(const std::string& name) {
  const char* conf = getenv("HUMMOCK_CONF");
  const std::string text = conf != nullptr ? conf : "";
  std::string value;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const size_t colon = text.find_first_of(":=", at);
    if (colon < end && find_option(text.substr(at, colon - at)) == find_option(name))
      value = text.substr(colon + 1, end - colon - 1);
    at = end + 1;
  }
  return value;
}

bool is_asked_for(const std::string& name) {
  std::string variable = "HUMMOCK_" + name;
  for (char& c : variable) c = static_cast<char>(toupper(c));
  const char* own = getenv(variable.c_str());
  const std::string value = own != nullptr ? own : in_conf(name);
  int64_t number = 0;
  return !value.empty() && wrong_value(*find_option(name), value, &number).empty() && number != 0;
}

}  // namespace

std::string broken_promise(const Program& program, const std::string& watched) {
  if (!watched.empty()) {
    if (is_asked_for("checked")) return "there is no " + watched + " in checked mode";
    if (is_asked_for("space_initial")) return "there is no " + watched + " where a space serves malloc";
  }
  if (program.own_malloc.empty()) return "";
  std::string what = watched;
  for (const char* option : {"checked", "space_initial", "limit_hard", "limit_soft"})
    if (is_asked_for(option)) what = option;
  return what.empty() ? "" : program.own_malloc + "; so there can be no " + what;
}

}  // namespace hummock::tool
