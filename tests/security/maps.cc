#include "maps.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

namespace battery {
namespace {

struct Range {
  uintptr_t from, to;
};

constexpr size_t kRoom = 1024;

class Ranges {
 public:
  void clear() { count_ = 0; }

  void add(uintptr_t from, uintptr_t to) {
    if (count_ > 0 && ranges_[count_ - 1].to == from) {
      ranges_[count_ - 1].to = to;
    } else if (count_ < kRoom) {
      ranges_[count_++] = {from, to};
    }
  }

  bool have(uintptr_t from, size_t size) const {
    return std::any_of(ranges_, ranges_ + count_,
                       [=](Range range) { return range.from <= from && from + size <= range.to; });
  }

 private:
  Range ranges_[kRoom];
  size_t count_ = 0;
};

Ranges all, heap;
char text[1 << 17];

void read_text() {
  const int fd = open("/proc/self/maps", O_RDONLY);
  size_t length = 0;
  for (ssize_t n = 1; fd >= 0 && n > 0 && length + 1 < sizeof(text); length += static_cast<size_t>(n)) {
    n = std::max<ssize_t>(read(fd, text + length, sizeof(text) - 1 - length), 0);
  }
  close(fd);
  text[length] = 0;
}

// A line of the list; `behind_file` is where the last mapping with a name ended.
void add(const char* line, uintptr_t& behind_file) {
  unsigned long from = 0, to = 0;
  char rights[8] = "", name[8] = "";
  if (sscanf(line, "%lx-%lx %7s %*x %*s %*u %7s", &from, &to, rights, name) < 3) return;
  all.add(from, to);
  const bool of_heap = name[0] == 0 || strncmp(name, "[heap]", 6) == 0 || strncmp(name, "[anon", 5) == 0;
  if (!of_heap) {
    behind_file = to;
  } else if (strcmp(rights, "rw-p") == 0 && from != behind_file) {
    heap.add(from, to);
  }
}

void read_again() {
  read_text();
  all.clear();
  heap.clear();
  uintptr_t behind_file = 0;
  for (char* line = text; line != nullptr && *line != 0;) {
    char* stop = strchr(line, '\n');
    if (stop != nullptr) *stop++ = 0;
    add(line, behind_file);
    line = stop;
  }
}

}  // namespace

bool is_mapped(uint64_t address) {
  read_again();
  return all.have(address, 1);
}

bool may_be_heap(const char* from, size_t size) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(from);
  if (heap.have(at, size)) return true;
  read_again();
  return heap.have(at, size);
}

}  // namespace battery
