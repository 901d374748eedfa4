#include "values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "outputs.h"

namespace hummock::tool {
namespace {

// As typed; of a very long one the beginning.
std::string shown(const std::string& text) {
  constexpr size_t kMost = 40;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

// The number at the beginning of the text, and what stands behind it in small letters.
template <class Number>
std::optional<Number> number_in(const std::string& text, std::string* unit) {
  Number number = 0;
  const char* end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || behind == text.data()) return std::nullopt;
  unit->assign(behind, end);
  for (char& c : *unit)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return number;
}

double seconds_of(const std::string& unit, TimeUnit plain) {
  if (unit.empty()) return plain == TimeUnit::kMilliseconds ? 0.001 : plain == TimeUnit::kSeconds ? 1 : 60;
  return unit == "ms" ? 0.001 : unit == "s" ? 1 : unit == "m" || unit == "min" ? 60 : unit == "h" ? 3600 : 0;
}

std::string number_text(double number) {
  char text[40];
  snprintf(text, sizeof text, "%.15g", number);
  return text;
}

std::string time_text(double seconds) {
  if (seconds >= 3600) return number_text(seconds / 3600) + "h";
  return seconds != 0 && seconds < 1 ? number_text(seconds * 1000) + "ms" : number_text(seconds) + "s";
}

// By how many bits a size with this unit is shifted; -1: there is no such unit.
int shift_of(std::string unit) {
  if (unit.ends_with("ib") || unit.ends_with("b")) unit.resize(unit.size() - (unit.ends_with("ib") ? 2 : 1));
  if (unit.empty()) return 0;
  const size_t found = std::string("kmgt").find(unit);
  return unit.size() != 1 || found == std::string::npos ? -1 : 10 * (static_cast<int>(found) + 1);
}

CLI::Option* transforms(CLI::Option* option, std::function<std::string(std::string&)> change,
                        const char* kind) {
  return option->transform(CLI::Validator(std::move(change), ""))->type_name(kind);
}

}  // namespace

CLI::Option* takes_time(CLI::Option* option, TimeUnit unit, double least, double most) {
  const auto change = [=](std::string& text) -> std::string {
    std::string given;
    const auto number = number_in<double>(text, &given);
    const double factor = number ? seconds_of(given, unit) : 0;
    if (factor == 0) return shown(text) + " is not a time, as 500ms or 2s";
    const double seconds = *number * factor;
    if (!(seconds >= least && seconds <= most))
      return shown(text) + " is not a time from " + time_text(least) + " to " + time_text(most);
    double value = given.empty() ? *number : seconds / seconds_of("", unit);
    if (unit == TimeUnit::kMilliseconds) value = std::ceil(value);
    text = number_text(value);
    return "";
  };
  return transforms(option, change, "TIME");
}

void add_wait(CLI::App* command, unsigned* wait_ms) {
  takes_time(
      command->add_option("--wait", *wait_ms,
                          "how long to wait for a process's answer, as 500ms or 2s; a number alone: ms"),
      TimeUnit::kMilliseconds)
      ->default_str(time_text(*wait_ms / 1000.0));
}

CLI::Option* takes_size(CLI::Option* option, uint64_t most) {
  const auto change = [=](std::string& text) -> std::string {
    std::string unit;
    const auto number = number_in<uint64_t>(text, &unit);
    const int shift = number ? shift_of(unit) : -1;
    if (shift < 0 || *number > UINT64_MAX >> shift) return shown(text) + " is not a size, as 4096, 64K or 2M";
    if (*number << shift > most) return shown(text) + " is more than " + std::to_string(most >> 40) + "T";
    text = std::to_string(*number << shift);
    return "";
  };
  return transforms(option, change, "SIZE");
}

CLI::Option* takes_output(CLI::Option* option) {
  const auto check = [](std::string& path) -> std::string {
    const std::string why = not_written_over(path);
    return why.empty() ? "" : path + " " + why;
  };
  return transforms(option, check, "FILE");
}

CLI::Option* takes_count(CLI::Option* option, uint64_t least, uint64_t most) {
  const auto check = [=](std::string& text) -> std::string {
    std::string unit;
    const auto number = number_in<uint64_t>(text, &unit);
    if (number && unit.empty() && *number >= least && *number <= most) return "";
    return shown(text) + " is not a whole number from " + std::to_string(least) + " to " +
           std::to_string(most);
  };
  return transforms(option, check, "NUMBER");
}

CLI::Option* takes_number(CLI::Option* option, double least, double most) {
  const auto check = [=](std::string& text) -> std::string {
    std::string unit;
    const auto number = number_in<double>(text, &unit);
    if (number && unit.empty() && *number >= least && *number <= most) return "";
    return shown(text) + " is not a number from " + number_text(least) + " to " + number_text(most);
  };
  return transforms(option, check, "NUMBER");
}

CLI::Option* takes_one_of(CLI::Option* option, const std::vector<std::string>& words) {
  std::string all, type;
  for (const std::string& word : words) {
    all += (all.empty() ? "" : word == words.back() ? " or " : ", ") + word;
    type += (type.empty() ? "" : "|") + word;
  }
  const auto check = [words, all](std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    return shown(text) + " is not known; it may be " + all;
  };
  return transforms(option, check, type.c_str());
}

std::string plain_words(const CLI::ParseError& error) {
  std::string text = error.what();
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const std::string name = text.substr(0, text.find_first_of(": "));
  if (kind == CLI::ExitCodes::ExtrasError)
    return (text.find("arguments") != std::string::npos ? "unexpected arguments " : "unexpected argument ") +
           text.substr(text.find(": ") + 2);
  if (kind == CLI::ExitCodes::ArgumentMismatch)
    return name + (text.find("At Most") != std::string::npos ? " is given more than once" : " needs a value");
  const size_t equals = text.find(" = ");
  if (kind == CLI::ExitCodes::ConversionError && equals != std::string::npos) {
    const size_t begin = text.find(": ") + 2;
    return text.substr(begin, equals - begin) + ": " + shown(text.substr(equals + 3)) + " is not a number";
  }
  return text;
}

}  // namespace hummock::tool
