#include "log_cli.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "region_log.h"
#include "values.h"

namespace hummock::tool {
namespace {

int fail(const std::string& what) {
  std::cerr << "hummock log: " << what << "\n";
  return 1;
}

}  // namespace

LogCommand::LogCommand(CLI::App& app) {
  command_ = app.add_subcommand("log", "show a region log: a timeline, and with --html a picture");
  command_->add_option("file", file_, "the log, malloc_<process>.log")->required();
  takes_output(command_->add_option("--html", page_, "write a page with curves to this file"));
  takes_count(command_->add_option("--rows", rows_, "how many rows the timeline has"), 1, 10000)
      ->capture_default_str();
}

int LogCommand::run() const {
  std::error_code error;
  if (std::filesystem::is_directory(file_, error)) return fail(file_ + " is a folder");
  std::ifstream in(file_);
  if (!in) return fail(file_ + ": " + strerror(errno));
  const std::vector<RegionLog> logs = read_region_logs(in);
  if (logs.empty()) return fail(file_ + " is not a region log");
  for (const RegionLog& log : logs) {
    if (&log != &logs.front()) std::cout << "\n";
    print_timeline(log, rows_, std::cout);
  }
  if (page_.empty()) return 0;
  std::ofstream page(page_);
  write_page(logs, std::filesystem::path(file_).filename().string(), page);
  page.close();
  if (!page) return fail(page_ + ": " + strerror(errno));
  std::cout << "\nWrote " << page_ << ": open it in a browser.\n";
  return 0;
}

}  // namespace hummock::tool
