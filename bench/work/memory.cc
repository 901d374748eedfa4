#include "memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"

namespace {

bool peak_was_reset;

size_t ru_maxrss() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

// The start of a file of /proc as text, kept open by none: the descriptor stays the caller's.
bool read_text(int file, char* text, size_t room) {
  const ssize_t length = pread(file, text, room - 1, 0);
  if (length <= 0) return false;
  text[length] = 0;
  return true;
}

size_t second_number(int file) {
  char text[256];
  if (file < 0 || !read_text(file, text, sizeof text)) return 0;
  char* at = nullptr;
  strtoull(text, &at, 10);
  return strtoull(at, nullptr, 10);
}

}  // namespace

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

size_t resident_bytes() {
  static const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  return second_number(file) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t resident_bytes_of(pid_t process) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/statm", static_cast<int>(process));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const size_t pages = second_number(file);
  if (file >= 0) close(file);
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

bool peak_reset() {
  const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  peak_was_reset = write(file, "5", 1) == 1;
  close(file);
  return peak_was_reset;
}

size_t peak_bytes() {
  static const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  char text[4096];
  if (!peak_was_reset || file < 0 || !read_text(file, text, sizeof text)) return ru_maxrss();
  const char* line = strstr(text, "VmHWM:");
  return line == nullptr ? ru_maxrss() : strtoull(line + 6, nullptr, 10) * 1024;
}

Usage usage_now() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return {nanoseconds(CLOCK_PROCESS_CPUTIME_ID), seconds_of(usage.ru_stime),
          static_cast<uint64_t>(usage.ru_minflt), static_cast<uint64_t>(usage.ru_majflt)};
}
