#include "os/linux_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

namespace hummock::os {

size_t read_file(const char* path, char* out, size_t room) {
  const int saved = errno;
  size_t length = 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    while (length + 1 < room) {
      const ssize_t got = read(fd, out + length, room - 1 - length);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      length += static_cast<size_t>(got);
    }
    close(fd);
  }
  out[length] = '\0';
  errno = saved;
  return length;
}

const char* text_after(const char* text, const char* key, size_t* length) {
  const size_t key_length = strlen(key);
  for (const char* line = text; line != nullptr && *line != '\0';) {
    if (strncmp(line, key, key_length) == 0) {
      const char* from = line + key_length;
      from += strspn(from, " \t:=\"");
      *length = strcspn(from, "\n\"");
      return from;
    }
    line = strchr(line, '\n');
    if (line != nullptr) ++line;
  }
  return nullptr;
}

uint64_t number_after(const char* text, const char* key) {
  size_t length = 0;
  const char* at = text_after(text, key, &length);
  if (at == nullptr || *at < '0' || *at > '9') return kNoNumber;
  uint64_t number = 0;
  for (; *at >= '0' && *at <= '9'; ++at) number = number * 10 + static_cast<uint64_t>(*at - '0');
  return number;
}

uint64_t number_in_file(const char* path, const char* key) {
  char text[4096];
  return read_file(path, text, sizeof text) == 0 ? kNoNumber : number_after(text, key);
}

}  // namespace hummock::os
