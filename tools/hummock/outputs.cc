#include "outputs.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace hummock::tool {
namespace {

std::string looks_like_program(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  char start[SELFMAG] = {};
  std::ifstream(path, std::ios::binary).read(start, SELFMAG);
  if (std::string(start, SELFMAG) == ELFMAG) return "is a program or a library";
  return (status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0 ? "is executable" : "";
}

}  // namespace

std::string not_written_over(const std::string& path) {
  const std::string why = looks_like_program(path);
  return why.empty() ? "" : why + ", and is not written over";
}

void check_writable(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    const bool there = access(path.c_str(), F_OK) == 0;
    const std::string folder = std::filesystem::absolute(path).parent_path();
    const int refused = there ? access(path.c_str(), W_OK) : access(folder.c_str(), W_OK | X_OK);
    if (refused != 0) throw std::runtime_error(path + " cannot be written: " + strerror(errno));
    if (std::filesystem::is_directory(path))
      throw std::runtime_error(path + " cannot be written: it is a folder");
    const std::string why = not_written_over(path);
    if (!why.empty()) throw std::runtime_error(std::string(path).append(" ").append(why));
  }
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(path + " cannot be written");
}

void guard_standard_streams() {
  for (int number = 0; number <= 2; ++number) {
    if (fcntl(number, F_GETFD) >= 0) continue;
    open("/dev/null", (number == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);  // takes the lowest number there is
  }
}

}  // namespace hummock::tool
