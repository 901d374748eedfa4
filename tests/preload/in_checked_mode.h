// For programs that need checked mode: it is set before a program starts.
#ifndef HUMMOCK_TESTS_IN_CHECKED_MODE_H
#define HUMMOCK_TESTS_IN_CHECKED_MODE_H

#include <stdlib.h>
#include <unistd.h>

// Starts the program again in checked mode, unless it is. False: that failed.
inline bool be_in_checked_mode(char** arguments) {
  if (getenv("HUMMOCK_CHECKED") != nullptr) return true;
  setenv("HUMMOCK_CHECKED", "on", 1);
  execv("/proc/self/exe", arguments);
  return false;
}

#endif  // HUMMOCK_TESTS_IN_CHECKED_MODE_H
