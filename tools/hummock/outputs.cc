#include "outputs.h"

#include <elf.h>
#include <sys/stat.h>

#include <fstream>

namespace hummock::tool {

std::string looks_like_program(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  char start[SELFMAG] = {};
  std::ifstream(path, std::ios::binary).read(start, SELFMAG);
  if (std::string(start, SELFMAG) == ELFMAG) return "is a program or a library";
  return (status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0 ? "is executable" : "";
}

}  // namespace hummock::tool
