#include "bench/tree.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "processes.h"

namespace hummock::tool {
namespace {

namespace fs = std::filesystem;

// Any part may be gone by now: then it has no children and no memory.
std::vector<pid_t> tree_of(pid_t root) {
  std::vector<pid_t> tree = {root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    std::error_code error;
    const std::string tasks = "/proc/" + std::to_string(tree[i]) + "/task";
    for (fs::directory_iterator task(tasks, error), end; !error && task != end; task.increment(error)) {
      std::ifstream children(task->path() / "children");
      for (pid_t child; children >> child;) tree.push_back(child);
    }
  }
  return tree;
}

}  // namespace

double tree_resident(pid_t root) {
  double sum = 0;
  for (const pid_t process : tree_of(root)) sum += static_cast<double>(resident_of(process));
  return sum;
}

bool tree_has_library(pid_t root, const std::string& file_name) {
  for (const pid_t process : tree_of(root)) {
    std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.size() > file_name.size() && line.ends_with("/" + file_name)) return true;
  }
  return false;
}

}  // namespace hummock::tool
