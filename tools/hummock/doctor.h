// hummock doctor: what this machine gives to a memory allocator, and how to get more of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hummock::tool {

enum class Level { fine, note, finding };  // as it should be; good to know; something is to be done

struct Finding {
  std::string topic;
  Level level;
  std::string state;        // what is
  std::string consequence;  // what of it
  std::string fix;          // the command that changes it; empty: nothing to be done, or not by a command
  std::string hint = {};    // what more there is to say of that
};

// Files below `root`, which is "/" but for tests.
class Facts {
 public:
  explicit Facts(std::string root) : root_(std::move(root)) {}

  // The file without its last end of line; nothing when it cannot be read.
  std::optional<std::string> text(const std::string& path) const;
  std::optional<unsigned long long> number(const std::string& path) const;
  // The rest of the line that begins with `key`, without what separates it.
  std::optional<std::string> field(const std::string& path, const std::string& key) const;
  std::optional<unsigned long long> number_field(const std::string& path, const std::string& key) const;
  // Of "always [madvise] never" the word in brackets.
  std::optional<std::string> chosen(const std::string& path) const;
  bool is_real() const { return root_.empty() || root_ == "/"; }

 private:
  std::string root_;
};

// All of them, the fine ones too. Empty when there is no /proc to look at.
std::vector<Finding> examine(const Facts& facts);
void print_json(const std::vector<Finding>& findings, int status);

class DoctorCommand {
 public:
  explicit DoctorCommand(CLI::App& app);
  bool chosen() const;
  // 0: nothing to be done. 1: findings. 2: there is nothing to look at.
  int run() const;

 private:
  CLI::App* command_;
  bool json_ = false;
  std::string root_ = "/";
};

}  // namespace hummock::tool
