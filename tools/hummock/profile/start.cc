#include "start.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "child.h"
#include "hummock/profile.h"
#include "run.h"

namespace hummock::tool {
namespace {

constexpr size_t kProcesses = 256;  // as many can have a profile: address space of a file, not memory
constexpr int kDescriptor = 480;    // out of the way of the program's

}  // namespace

int make_profile_memory() {
  return make_memory(HUMMOCK_PROFILE_NAME, kProcesses * sizeof(hummock_profile_t));
}

void become_profiled(int memory, uint64_t mean, const std::string& library,
                     const std::vector<std::string>& command) {
  int given = fcntl(memory, F_DUPFD, kDescriptor);
  if (given < 0) given = dup(memory);
  struct stat about;
  if (given < 0 || fstat(given, &about) != 0) _exit(125);
  const std::string shared = std::to_string(given) + ":" + std::to_string(about.st_ino);
  setenv("HUMMOCK_RUN_PROFILE", shared.c_str(), 1);
  setenv(kWatched, "profile", 1);
  const std::string bytes = mean == 1 ? "all" : std::to_string(mean);
  setenv("HUMMOCK_PROFILE", mean == 0 ? "on" : bytes.c_str(), 1);
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string tool = self.parent_path() / "hummock";
  std::vector<std::string> words = {"hummock", "run"};
  if (!library.empty()) words.insert(words.end(), {"--lib", library});
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  exec(tool, words);
  fprintf(stderr, "hummock: %s: %s\n", tool.c_str(), strerror(errno));
  _exit(125);
}

}  // namespace hummock::tool
