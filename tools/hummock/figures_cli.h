// hummock ps, stats, top, set, trim and export: what other processes' heaps do, and what they shall do.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace hummock::tool {

class FiguresCommands {
 public:
  explicit FiguresCommands(CLI::App& app);

  bool chosen() const;
  int run() const;

 private:
  int ps() const;
  int stats() const;
  int show_once(bool* any) const;  // *any: a process answered
  int set() const;
  int trim() const;
  int serve() const;

  CLI::App* ps_;
  CLI::App* stats_;
  CLI::App* set_;
  CLI::App* trim_;
  CLI::App* export_;
  CLI::App* top_;
  std::string which_;
  std::string assignment_;
  bool json_ = false;
  bool prometheus_ = false;
  double every_ = 0;
  std::string listen_ = "127.0.0.1:9188";
  unsigned wait_ms_ = 2000;
};

}  // namespace hummock::tool
