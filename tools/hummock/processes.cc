#include "processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "figures.h"

namespace hummock::tool {
namespace {

std::string folder_of(int pid) {
  return "/proc/" + std::to_string(pid) + "/";
}

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

std::vector<std::string> names_in(const std::string& folder, int* error) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, CloseFolder> open(opendir(folder.c_str()));
  *error = open == nullptr ? errno : 0;
  while (open != nullptr) {
    const dirent* entry = readdir(open.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

void open_those_named(const std::string& folder, const std::string& name, std::vector<int>* fds, int* error) {
  for (const std::string& each : names_in(folder, error)) {
    char target[64];
    const std::string path = folder + each;
    const ssize_t length = readlink(path.c_str(), target, sizeof target);
    if (length < 0 && errno == EACCES)
      *error = EACCES;  // all may list the names, as root may, not all see more
    if (length < 0 || std::string(target, static_cast<size_t>(length)) != name) continue;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0) fds->push_back(fd);
  }
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The rest of the line of /proc/PID/status that begins so.
std::string status_of(int pid, const std::string& key) {
  std::ifstream file(folder_of(pid) + "status");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) == 0) return line.substr(key.size());
  }
  return "";
}

uint64_t last_number(const std::string& text) {
  std::istringstream in(text);
  uint64_t number = 0;
  for (uint64_t each; in >> each;) number = each;
  return number;
}

// By the rules of ptrace(2), section access mode checking, which hold for /proc/PID/fd.
std::string why_refused(int pid) {
  if (geteuid() == 0) return "it belongs to somebody else, and this root lacks the capability CAP_SYS_PTRACE";
  std::istringstream users(status_of(pid, "Uid:"));
  uid_t user = 0;
  if (users >> user && user == getuid())
    return "it has rights of its own, or hides (it changed its user, has capabilities, or is not dumpable): "
           "try as "
           "root";
  return "it belongs to somebody else: try as root";
}

std::string why_none(int pid, int error, bool mapped) {
  if (access("/proc/self", F_OK) != 0) return "/proc is not mounted, so no process can be found";
  if (error == ENOENT || error == ESRCH) return "there is no such process";
  if (error == EACCES || error == EPERM) return why_refused(pid);
  if (mapped) return "it has closed the descriptor of its page of figures: try as root";
  std::ifstream maps(folder_of(pid) + "maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libhummock") != std::string::npos)
      return "it has no page of figures: observe is off, or the process is privileged";
  }
  return "it does not run on Hummock";
}

}  // namespace

bool has_mapped(int pid, const std::string& name) {
  std::ifstream maps(folder_of(pid) + "maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) != std::string::npos) return true;
  }
  return false;
}

std::vector<int> open_links_to(int pid, const std::string& name, std::string* why) {
  std::vector<int> fds;
  int error = 0, refused = 0;
  open_those_named(folder_of(pid) + "fd/", name, &fds, &error);
  const bool mapped = fds.empty() && error == 0 && has_mapped(pid, name);
  if (mapped) open_those_named(folder_of(pid) + "map_files/", name, &fds, &refused);
  if (fds.empty() && why != nullptr) *why = why_none(pid, error, mapped);
  return fds;
}

uint32_t number_in_its_namespace(int pid) {
  const uint64_t number = last_number(status_of(pid, "NSpid:"));
  return number != 0 ? static_cast<uint32_t>(number) : static_cast<uint32_t>(pid);
}

bool may_make_page(int pid, std::string* why) {
  const uint64_t parent = last_number(status_of(pid, "PPid:"));
  const uint64_t own = last_number(status_of(pid, "Seccomp_filters:"));
  const uint64_t parents = last_number(status_of(static_cast<int>(parent), "Seccomp_filters:"));
  if (own <= parents) return true;
  *why = "it is a child of fork without a page of its own, and has restricted its system calls";
  return false;
}

std::string program_of(int pid) {
  return first_line(folder_of(pid) + "comm");
}

std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  return text;
}

std::string cgroup_of(int pid) {
  std::ifstream file(folder_of(pid) + "cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, 3, "0::") == 0) return line.substr(3);
    const size_t memory = line.find(":memory:");
    if (memory != std::string::npos) return line.substr(memory + 8);
  }
  return "";
}

uint64_t resident_of(int pid) {
  std::ifstream file(folder_of(pid) + "statm");
  uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::vector<int> all_processes() {
  std::vector<int> pids;
  int error;
  for (const std::string& name : names_in("/proc/", &error)) {
    int pid = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed == std::errc() && *end == '\0') pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

namespace {
void add_processes_of(const std::string& group, std::vector<int>* found) {
  std::ifstream file(group + "/cgroup.procs");
  for (int pid; file >> pid;) found->push_back(pid);
}
}  // namespace

// Of a group, those of the groups within it, too.
std::vector<int> find_processes(const std::string& which) {
  if (!which.empty() && which.find_first_not_of("0123456789") == std::string::npos && which.size() < 10)
    return {std::stoi(which)};
  std::vector<int> found;
  if (which.find('/') == std::string::npos) {
    for (const int pid : all_processes()) {
      if (program_of(pid) == which.substr(0, 15)) found.push_back(pid);
    }
    return found;
  }
  const std::string root = "/sys/fs/cgroup";
  const std::string path = which.compare(0, root.size(), root) == 0 ? which : root + "/" + which;
  add_processes_of(path, &found);
  std::error_code error;
  using Folders = std::filesystem::recursive_directory_iterator;
  for (Folders each(path, error), end; !error && each != end; each.increment(error)) {
    if (each->is_directory(error)) add_processes_of(each->path(), &found);
    error.clear();  // it may be gone
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace hummock::tool
