#include "os/linux/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "os/files.h"
#include "os/linux/uncancelled.h"

namespace hummock::os {
NoFileSignals::NoFileSignals(bool pipes) {
  sigset_t set;
  sigemptyset(&set);
  if (pipes) sigaddset(&set, SIGPIPE);
  sigaddset(&set, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &set, &mask_before_);
  sigemptyset(&waited_before_);
  const bool pipe_was = sigismember(&mask_before_, SIGPIPE) == 1;
  const bool size_was = sigismember(&mask_before_, SIGXFSZ) == 1;
  if (size_was || (pipes && pipe_was)) sigpending(&waited_before_);  // else it would have come
  changed_ = !size_was || (pipes && !pipe_was);
}

NoFileSignals::~NoFileSignals() {
  if (changed_) pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void NoFileSignals::note_failure() {
  const int saved = errno, signal = saved == EPIPE ? SIGPIPE : saved == EFBIG ? SIGXFSZ : 0;
  if (signal == 0 || sigismember(&waited_before_, signal) == 1) return;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  const timespec now = {0, 0};
  // The bare call: libc's is a cancellation point.
  syscall(SYS_rt_sigtimedwait, &set, nullptr, &now, size_t{_NSIG / 8});
  errno = saved;
}

int set_file_length(int fd, size_t size) {
  const Uncancelled uncancelled;
  NoFileSignals no_signals(false);
  const int result = ftruncate(fd, static_cast<off_t>(size));
  if (result != 0) no_signals.note_failure();
  return result;
}

int open_to_write(const char* path, int flag, int* error) {
  const base::KeepErrno keep;
  const Uncancelled uncancelled;
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | flag, 0644);
  if (fd < 0) {
    *error = errno;
    return fd;
  }
  fcntl(fd, F_SETFL, flag);  // a reader that is slow loses nothing
  return move_away(fd);
}

bool write_all(int fd, const char* bytes, size_t length, int* error) {
  const base::KeepErrno keep;
  const Uncancelled uncancelled;
  NoFileSignals no_signals;
  while (length != 0) {
    const ssize_t done = write(fd, bytes, length);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      if (error != nullptr) *error = done < 0 ? errno : EIO;
      if (done < 0) no_signals.note_failure();
      return false;
    }
    bytes += done;
    length -= static_cast<size_t>(done);
  }
  return true;
}

namespace {

size_t read_from(const char* path, char* out, size_t room, bool to_end) {
  const base::KeepErrno keep;
  const Uncancelled uncancelled;
  size_t length = 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    while (length + 1 < room) {
      const ssize_t got = read(fd, out + length, room - 1 - length);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      length += static_cast<size_t>(got);
      if (!to_end) break;
    }
    close(fd);
  }
  out[length] = '\0';
  return length;
}

}  // namespace

size_t read_file(const char* path, char* out, size_t room) {
  return read_from(path, out, room, true);
}

size_t read_value(const char* path, char* out, size_t room) {
  return read_from(path, out, room, false);
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
  return read_value(path, text, sizeof text) == 0 ? kNoNumber : number_after(text, key);
}

int open_new(const char* path, int* error) {
  return open_to_write(path, O_TRUNC, error);
}

bool write_file(int fd, const char* bytes, size_t length, int* error) {
  return write_all(fd, bytes, length, error);
}

bool copy_maps(int fd, int* error) {
  const base::KeepErrno keep;
  const Uncancelled uncancelled;
  const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  bool fine = maps >= 0;
  if (!fine) *error = errno;
  char part[4096];
  for (ssize_t got; fine && (got = read(maps, part, sizeof part)) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) *error = errno;
    fine = got > 0 && write_file(fd, part, static_cast<size_t>(got), error);
  }
  if (maps >= 0) close(maps);
  return fine;
}

bool close_file(int fd, int* error) {
  const base::KeepErrno keep;
  const Uncancelled uncancelled;
  if (close(fd) == 0 || errno == EINTR) return true;
  *error = errno;
  return false;
}

}  // namespace hummock::os
