#include "preload.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "child.h"

namespace hummock::tool {
namespace {

constexpr const char* kCut = " :$";

std::string hash(const std::string& text) {
  uint64_t value = 14695981039346656037u;  // FNV-1a
  for (const unsigned char c : text) value = (value ^ c) * 1099511628211u;
  char digits[17];
  snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value));
  return digits;
}

// A folder that is ours, that nobody else may write to, and everybody may pass: programs that the first one
// starts may run as another user. False when somebody else was there first.
bool own_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) chmod(path.c_str(), 0755);
  struct stat status;
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool leads_to(const std::string& link, const std::string& target) {
  std::error_code error;
  return std::filesystem::read_symlink(link, error) == target && !error;
}

// What leads to libraries that are gone.
void remove_dangling(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const fs::directory_entry& inner : fs::directory_iterator(folder, error)) {
    if (!inner.is_directory(error)) continue;
    for (const fs::directory_entry& link : fs::directory_iterator(inner.path(), error))
      if (link.is_symlink(error) && !fs::exists(link.path(), error)) fs::remove(link.path(), error);
    fs::remove(inner.path(), error);  // if nothing is left
  }
}

// Several may do this at once: a link is there whole or not at all.
bool make_link(const std::string& link, const std::string& target) {
  if (leads_to(link, target)) return true;
  const std::string fresh = link + "." + std::to_string(getpid());
  unlink(fresh.c_str());
  if (symlink(target.c_str(), fresh.c_str()) != 0) return false;
  if (rename(fresh.c_str(), link.c_str()) == 0) return true;
  unlink(fresh.c_str());
  return false;
}

// LD_DEBUG would fill the pipe that is read last.
bool is_left_out(const char* variable) {
  return strncmp(variable, "LD_PRELOAD=", 11) == 0 || strncmp(variable, "LD_DEBUG", 8) == 0 ||
         strncmp(variable, "HUMMOCK_", 8) == 0;
}

// The tool itself, with the library: nothing of the user's options is looked at yet.
[[noreturn]] void become_trial(const std::string& name, int notify, int errors) {
  std::vector<std::string> added = {"LD_PRELOAD=" + name};
  struct stat status;
  fstat(notify, &status);
  added.push_back("HUMMOCK_RUN_NOTIFY=" + std::to_string(notify) + ":" + std::to_string(status.st_ino));
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!is_left_out(*entry)) environment.push_back(*entry);
  for (std::string& entry : added) environment.push_back(entry.data());
  environment.push_back(nullptr);
  dup2(errors, 2);
  const int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere >= 0) dup2(nowhere, 1);
  char tool[] = "/proc/self/exe";
  char version[] = "version";
  char* arguments[] = {tool, version, nullptr};
  execve(tool, arguments, environment.data());
  _exit(127);
}

// "ERROR: ld.so: object '...' from LD_PRELOAD cannot be preloaded (wrong ELF class): ignored."
std::string reason_of_loader(const std::string& errors) {
  const std::string_view before = "cannot be preloaded (";
  const size_t at = errors.find(before);
  if (at == std::string::npos) return "it is not Hummock";
  const size_t from = at + before.size();
  const size_t end = errors.find("): ignored", from);
  return errors.substr(from, end == std::string::npos ? end : end - from);
}

}  // namespace

std::string preloadable(const std::string& library) {
  if (library.find_first_of(kCut) == std::string::npos) return library;
  std::string file = std::filesystem::path(library).filename().string();
  for (char& c : file)
    if (strchr(kCut, c) != nullptr) c = '_';
  const char* run = getenv("XDG_RUNTIME_DIR");
  for (const std::string place : {"/tmp", "/var/tmp", "/dev/shm", run != nullptr ? run : ""}) {
    if (place.empty() || place[0] != '/' || place.find_first_of(kCut) != std::string::npos) continue;
    const std::string folder = place + "/hummock-" + std::to_string(geteuid());
    const std::string inner = folder + "/" + hash(library);
    std::string link = inner;
    link.append("/").append(file);
    if (!own_folder(folder)) continue;
    if (!leads_to(link, library)) remove_dangling(folder);
    if (own_folder(inner) && make_link(link, library)) return link;
  }
  throw std::runtime_error("the loader takes no path with a blank, a colon or a dollar, as " + library +
                           ", and there is no place for a link to it in /tmp, /var/tmp, /dev/shm");
}

std::string trial(const std::string& name) {
  int answer[2];
  int errors[2];
  if (pipe2(answer, O_CLOEXEC) != 0) return strerror(errno);
  if (pipe2(errors, O_CLOEXEC) != 0) {
    close(answer[0]);
    close(answer[1]);
    return strerror(errno);
  }
  const pid_t child = fork();
  if (child == 0) {
    fcntl(answer[1], F_SETFD, 0);
    become_trial(name, answer[1], errors[1]);
  }
  const int error = errno;
  close(answer[1]);
  close(errors[1]);
  const std::string said_active = read_pipe(answer[0]);
  const std::string said = read_pipe(errors[0]);
  if (child < 0) return strerror(error);
  wait_for(child);
  if (said_active == "0") return "another malloc takes precedence over it";
  return !said_active.empty() ? "" : reason_of_loader(said);
}

std::string said_by(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("LD_PRELOAD");
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    exec(command.front(), command);
    _exit(127);
  }
  close(ends[1]);
  std::string said = read_pipe(ends[0]);
  if (child > 0) wait_for(child);
  return said;
}

}  // namespace hummock::tool
