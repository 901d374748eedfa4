#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "child.h"
#include "session.h"

namespace hummock::tool {
namespace {

constexpr size_t kProcesses = 256;  // as many can have a profile: address space of a file, not memory
constexpr int kDescriptor = 480;    // out of the way of the program's

// Its length cannot change, so nobody can end the program by cutting it.
int make_memory() {
  const int fd = memfd_create(HUMMOCK_PROFILE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  if (ftruncate(fd, static_cast<off_t>(kProcesses * sizeof(hummock_profile_t))) == 0 &&
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    return fd;
  close(fd);
  return -1;
}

// The command `hummock run`, which says what stands in the program's way, with the memory open.
[[noreturn]] void become_program(const ProfileOptions& options, int memory) {
  int given = fcntl(memory, F_DUPFD, kDescriptor);
  if (given < 0) given = dup(memory);
  struct stat about;
  if (given < 0 || fstat(given, &about) != 0) _exit(125);
  const std::string shared = std::to_string(given) + ":" + std::to_string(about.st_ino);
  setenv("HUMMOCK_RUN_PROFILE", shared.c_str(), 1);
  const std::string bytes = options.bytes == 1 ? "all" : std::to_string(options.bytes);
  setenv("HUMMOCK_PROFILE", options.bytes == 0 ? "on" : bytes.c_str(), 1);
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string tool = self.parent_path() / "hummock";
  std::vector<std::string> words = {"hummock", "run"};
  if (!options.library.empty()) words.insert(words.end(), {"--lib", options.library});
  words.emplace_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(tool.c_str(), arguments.data());
  fprintf(stderr, "hummock profile: %s: %s\n", tool.c_str(), strerror(errno));
  _exit(125);
}

int wait_for(pid_t child) {
  pass_signals_to(child);
  int raw = 0;
  while (waitpid(child, &raw, 0) < 0 && errno == EINTR) {
  }
  return exit_status("hummock profile", raw);
}

}  // namespace

std::optional<Report> run_program(const ProfileOptions& options, int* status) {
  *status = 1;
  const int memory = make_memory();
  if (memory < 0) {
    fprintf(stderr, "hummock profile: no memory for the profile: %s\n", strerror(errno));
    return std::nullopt;
  }
  // What the program does to its parent's output shall come after ours.
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) become_program(options, memory);
  if (child < 0) {
    fprintf(stderr, "hummock profile: %s\n", strerror(errno));
    close(memory);
    return std::nullopt;
  }
  *status = wait_for(child);
  std::string why = "it has taken no sample: it asked for too little memory, or --bytes is too large";
  Report report;
  for (const RawProfile& profile : read_profiles(memory, &why)) {
    if (profile.samples == 0) continue;
    add_profile(&report, profile, "", printable(profile.program) + " (" + std::to_string(profile.pid) + ")");
  }
  close(memory);
  if (!report.processes.empty()) return report;
  fprintf(stderr,
          "hummock profile: no process has taken a sample: they asked for too little memory for --bytes\n");
  return std::nullopt;
}

}  // namespace hummock::tool
