// What the system says of the process, read without allocating.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>

size_t resident_bytes();
size_t resident_bytes_of(pid_t process);
// Makes the peak start again from what is resident now. False where the system cannot.
bool peak_reset();
// Highest resident since peak_reset, or since the start where that failed.
size_t peak_bytes();

double seconds_of(const timeval& time);

struct Usage {
  uint64_t cpu_nanoseconds;  // user and system, all threads
  double system_seconds;
  uint64_t minor_faults;
  uint64_t major_faults;
};
Usage usage_now();
