// What the region log asks of Linux.
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "os/linux/files.h"
#include "os/os.h"

namespace hummock::os {
namespace {

char* two_digits(char* at, unsigned number) {
  *at++ = static_cast<char>('0' + number / 10 % 10);
  *at++ = static_cast<char>('0' + number % 10);
  return at;
}

struct Date {
  unsigned year, month, day;
};

// The day of the Gregorian calendar `days` after 1970-01-01: years begin in March, so that the leap day is
// a year's last, and 400 of them are 146,097 days.
Date date_of(uint64_t days) {
  const uint64_t since = days + 719468;  // 0000-03-01
  const uint64_t era = since / 146097, day_of_era = since % 146097;
  const uint64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const uint64_t month = (5 * day_of_year + 2) / 153;  // 0 is March
  const uint64_t day = day_of_year - (153 * month + 2) / 5 + 1;
  const bool next_year = month >= 10;
  return {static_cast<unsigned>(era * 400 + year_of_era + next_year),
          static_cast<unsigned>(next_year ? month - 9 : month + 3), static_cast<unsigned>(day)};
}

}  // namespace

unsigned process_id() {
  return static_cast<unsigned>(getpid());
}

int open_append(const char* path, int* error) {
  return open_to_write(path, O_APPEND, error);
}

bool absolute_path(const char* path, char* out, size_t room) {
  const base::KeepErrno keep;
  size_t length = 0;
  if (path[0] != '/') {
    if (getcwd(out, room) == nullptr) return false;
    length = strlen(out);
    if (length + 1 < room) out[length++] = '/';
  }
  const size_t rest = strlen(path);
  if (rest >= room - length) return false;
  memcpy(out + length, path, rest + 1);
  return true;
}

uint64_t file_identity(int fd) {
  const base::KeepErrno keep;
  struct stat about;
  const bool open = fstat(fd, &about) == 0;
  return open ? static_cast<uint64_t>(about.st_ino) * 31 + static_cast<uint64_t>(about.st_dev) + 1 : 0;
}

void write_time(char* out) {
  const uint64_t seconds = seconds_since_1970();
  const Date date = date_of(seconds / 86400);
  out = two_digits(out, date.year / 100);
  out = two_digits(out, date.year % 100);
  out = two_digits(out, date.month);
  out = two_digits(out, date.day);
  *out++ = '-';
  out = two_digits(out, static_cast<unsigned>(seconds / 3600 % 24));
  out = two_digits(out, static_cast<unsigned>(seconds / 60 % 60));
  out = two_digits(out, static_cast<unsigned>(seconds % 60));
  *out = '\0';
}

}  // namespace hummock::os
