// What is known to leak and not to be told of: files in the formats of valgrind and LSan.
#pragma once

#include <string>
#include <vector>

namespace hummock::tool {

// A function of a stack, and the file of code that it stands in.
struct Step {
  std::string function, source, object;
};

class Suppressions {
 public:
  // Throws what is wrong, with the file and the line.
  void add_file(const std::string& path);
  // `stack`: innermost first.
  bool match(const std::vector<Step>& stack) const;

 private:
  struct Pattern {
    enum { function, object, any_number } kind;
    std::string text;
  };
  std::vector<std::vector<Pattern>> stacks_;  // valgrind's
  std::vector<std::string> names_;            // LSan's

  static bool fits(const std::vector<Pattern>& patterns, size_t pattern, const std::vector<Step>& stack);
  static Pattern parse(const std::string& line);
};

}  // namespace hummock::tool
