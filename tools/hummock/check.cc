#include "check.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "preload.h"
#include "processes.h"
#include "program.h"
#include "run.h"

namespace hummock::tool {
namespace {

int answer(const std::string& subject, const std::string& what, const std::string& advice, bool yes) {
  printf("%s: %s\n", subject.c_str(), what.c_str());
  if (!advice.empty()) printf("  %s\n", advice.c_str());
  return yes ? 0 : 1;
}

bool is_number(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

// The value of a variable as the process was started with it.
std::string variable_of(const std::string& process, const std::string& name) {
  std::ifstream file(process + "/environ", std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');)
    if (entry.compare(0, name.size() + 1, name + "=") == 0) return entry.substr(name.size() + 1);
  return "";
}

// The path of the library in the process's map, or empty.
std::string mapped_library(std::istream& maps) {
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find('/');
    if (at != std::string::npos && line.find("/libhummock.so", at) != std::string::npos)
      return line.substr(at);
  }
  return "";
}

int check_process(const std::string& number) {
  const std::string process = "/proc/" + number;
  std::error_code error;
  if (!std::filesystem::exists(process, error)) return answer(number, "there is no such process", "", false);
  const std::string subject = "process " + number + " (" + printable(program_of(std::stoi(number))) + ")";
  std::ifstream maps(process + "/maps");
  if (!maps || maps.peek() == std::ifstream::traits_type::eof()) {
    return answer(subject, "its memory map cannot be read", "ask as the user it runs as, or as root", false);
  }
  const std::string library = mapped_library(maps);
  const Program program = inspect(process + "/exe");
  if (program.holds_hummock) return answer(subject, "runs on Hummock, which is linked into it", "", true);
  if (library.empty()) {
    const std::string wanted = printable(variable_of(process, "LD_PRELOAD"));
    return answer(
        subject, "does not run on Hummock",
        wanted.find("hummock") != std::string::npos
            ? "it was started with LD_PRELOAD=" + wanted + "; hummock check PROGRAM may say why that failed"
            : "start it with: hummock run -- PROGRAM",
        false);
  }
  if (!program.own_malloc.empty()) {
    return answer(subject, "has loaded " + library + ", but " + program.own_malloc, advice(program), false);
  }
  return answer(subject, "runs on Hummock, " + library, "", true);
}

}  // namespace

int check(const std::string& name) {
  std::error_code error;
  if (is_number(name) && !std::filesystem::exists(name, error)) return check_process(name);
  const Program program = inspect(name);
  const std::string what = subject_of(program.script ? name : program.path, program);
  if (const std::string reason = obstacle(program); !reason.empty())
    return answer(what, reason, advice(program), false);
  if (!program.own_malloc.empty()) return answer(what, program.own_malloc, advice(program), false);
  if (program.holds_hummock) return answer(what, "Hummock is linked into it", "", true);
  const std::string library = find_library();
  if (library.empty())
    return answer(what, "libhummock.so.1 was not found beside the tool", "install it, or build it: make",
                  false);
  const std::string preload = preloadable(library);
  std::string reason = trial(preload);
  if (reason.empty()) reason = listed(program, preload);
  if (!reason.empty()) return answer(what, library + " cannot be preloaded: " + reason, "", false);
  return answer(what, "Hummock can be preloaded", doubt(program), true);
}

}  // namespace hummock::tool
