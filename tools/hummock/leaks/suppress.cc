#include "suppress.h"

#include <cxxabi.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace hummock::tool {
namespace {

std::string trimmed(const std::string& line) {
  const size_t from = line.find_first_not_of(" \t\r");
  return from == std::string::npos ? "" : line.substr(from, line.find_last_not_of(" \t\r") - from + 1);
}

bool like(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// Names come demangled, patterns as the linker has them. A demangled name ends with parameters that a pattern
// of its own need not have.
bool is_function(const std::string& pattern, const std::string& name) {
  if (pattern.rfind("_Z", 0) == 0) {
    int status = 0;
    char* plain = abi::__cxa_demangle(pattern.c_str(), nullptr, nullptr, &status);
    const bool same = plain != nullptr && name == plain;
    free(plain);
    if (same) return true;
  }
  return like(pattern, name) || like(pattern, name.substr(0, name.find('(')));
}

// The functions that stacks here begin without.
bool is_allocator(const std::string& pattern) {
  for (const char* name :
       {"malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc", "_Zn?m*"})
    if (pattern == name || like(name, pattern)) return true;
  return pattern.rfind("operator new", 0) == 0;
}

}  // namespace

Suppressions::Pattern Suppressions::parse(const std::string& line) {
  if (line == "...") return {Pattern::any_number, ""};
  const std::string text = line.substr(std::min<size_t>(4, line.size()));
  if (line.rfind("fun:", 0) == 0 && !text.empty()) return {Pattern::function, text};
  if (line.rfind("obj:", 0) == 0 && !text.empty()) return {Pattern::object, text};
  throw std::runtime_error("this is neither fun:, obj: nor ...");
}

void Suppressions::add_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("--suppressions: " + path + " cannot be read");
  std::string line;
  std::vector<Pattern> patterns;
  unsigned number = 0, inside = 0;  // inside: lines since {
  bool leak = false;
  const auto wrong = [&](const std::string& what) {
    throw std::runtime_error("--suppressions: " + path + ":" + std::to_string(number) + ": " + what);
  };
  while (std::getline(file, line)) {
    ++number;
    line = trimmed(line);
    if (line.empty() || line[0] == '#') continue;
    if (inside == 0 && line == "{") {
      inside = 1;
      leak = false;
      patterns.clear();
    } else if (inside == 0) {
      if (line.rfind("leak:", 0) != 0 || line.size() == 5) wrong("this is neither leak:name nor {");
      names_.push_back(line.substr(5));
    } else if (line == "}") {
      if (inside < 3) wrong("a suppression needs a name and a kind");
      if (leak && patterns.empty()) wrong("a suppression needs a stack");
      if (leak) stacks_.push_back(patterns);
      inside = 0;
    } else if (++inside == 3) {
      leak = line.find("Leak") != std::string::npos;  // others are of kinds that are not looked for here
    } else if (inside > 3 && leak && line.rfind("match-leak-kinds:", 0) != 0) {
      try {
        patterns.push_back(parse(line));
      } catch (const std::runtime_error& error) {
        wrong("'" + line + "' " + error.what());
      }
    }
  }
  if (inside != 0) wrong("the last suppression has no }");
}

// A pattern may end before the stack does. What stands between two "..." is taken where it first fits, so
// only the last "..." is ever tried again.
bool Suppressions::fits(const std::vector<Pattern>& patterns, size_t pattern,
                        const std::vector<Step>& stack) {
  size_t step = 0, after = 0,
         from = 0;  // after: the pattern behind the last "...", which was tried at `from`
  while (pattern < patterns.size()) {
    const Pattern& next = patterns[pattern];
    if (next.kind == Pattern::any_number) {
      after = ++pattern;
      from = step;
    } else if (step < stack.size() &&
               (next.kind == Pattern::object ? like(next.text, stack[step].object)
                                             : is_function(next.text, stack[step].function))) {
      ++pattern;
      ++step;
    } else if (after != 0 && from < stack.size()) {
      pattern = after;
      step = ++from;
    } else {
      return false;
    }
  }
  return true;
}

bool Suppressions::match(const std::vector<Step>& stack) const {
  const auto has = [&](const std::string& name) {
    const std::string pattern = "*" + name + "*";
    return std::any_of(stack.begin(), stack.end(), [&](const Step& step) {
      return like(pattern, step.function) || like(pattern, step.source) || like(pattern, step.object);
    });
  };
  if (std::any_of(names_.begin(), names_.end(), has)) return true;
  return std::any_of(stacks_.begin(), stacks_.end(), [&](const std::vector<Pattern>& patterns) {
    size_t first = 0;
    while (first + 1 < patterns.size() && patterns[first].kind == Pattern::function &&
           is_allocator(patterns[first].text))
      ++first;
    return fits(patterns, first, stack);
  });
}

}  // namespace hummock::tool
