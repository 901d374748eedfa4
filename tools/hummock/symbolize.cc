#include "symbolize.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "child.h"

namespace hummock::tool {
namespace {

constexpr int kNotFound = 127;

// What a command prints; its exit status in `*status`, kNotFound when it could not be started.
std::string output_of(const std::vector<std::string>& command, int* status) {
  *status = kNotFound;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    const int none = open("/dev/null", O_RDWR);
    if (none >= 0) {
      dup2(none, 0);
      dup2(none, 2);
    }
    exec(command.front(), command);
    _exit(kNotFound);
  }
  close(ends[1]);
  std::string text = read_pipe(ends[0]);
  if (child < 0) return "";
  if (const int raw = wait_for(child); WIFEXITED(raw)) *status = WEXITSTATUS(raw);
  return text;
}

// "hummock: 12:     #3 /lib/some.so+0x1234 [0x7f…] name+0x12": what stands before the module, the module and
// the offset. False: another line.
struct Place {
  std::string start, module, offset;
};
bool read_frame(const std::string& line, Place* out) {
  if (line.rfind("hummock: ", 0) != 0) return false;
  const size_t number = line.find(":     #");
  const size_t module = number == std::string::npos ? number : line.find(' ', number + 7);
  const size_t bracket = line.find(" [0x", module == std::string::npos ? 0 : module);
  if (number == std::string::npos || module == std::string::npos || bracket == std::string::npos)
    return false;
  const size_t plus = line.rfind("+0x", bracket);
  if (plus == std::string::npos || plus <= module) return false;
  *out = {line.substr(0, module + 1), line.substr(module + 1, plus - module - 1),
          line.substr(plus + 1, bracket - plus - 1)};
  return true;
}

// One line for the function and one for each that was inlined there; none when nothing is known.
std::vector<std::string> lines_of(const Place& place, int* status) {
  const std::string text =
      output_of({"addr2line", "-C", "-f", "-i", "-p", "-e", place.module, place.offset}, status);
  std::vector<std::string> lines;
  std::istringstream input(text);
  for (std::string line; std::getline(input, line);) {
    if (line.rfind("??", 0) == 0) break;
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

int symbolize() {
  std::map<std::string, std::vector<std::string>> known;
  bool missing = false;
  for (std::string line; std::getline(std::cin, line);) {
    Place place;
    if (missing || !read_frame(line, &place)) {
      std::cout << line << "\n" << std::flush;
      continue;
    }
    const std::string key = place.module + "+" + place.offset;
    if (known.count(key) == 0) {
      int status = 0;
      known[key] = lines_of(place, &status);
      if (status == kNotFound) {
        fprintf(stderr, "hummock symbolize: addr2line is missing; on Debian: apt-get install binutils\n");
        missing = true;  // nothing of the report is lost
      }
    }
    if (known[key].empty()) std::cout << line << "\n";
    for (const std::string& words : known[key]) std::cout << place.start << words << "\n";
    std::cout << std::flush;
  }
  return missing ? 1 : 0;
}

}  // namespace hummock::tool
