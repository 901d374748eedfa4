// Ends a Windows test program with the condition that does not hold; for C and C++.
#ifndef HUMMOCK_TESTS_WINDOWS_CHECK_H
#define HUMMOCK_TESTS_WINDOWS_CHECK_H

#include <stdio.h>
#include <windows.h>

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      fflush(stdout);                                                \
      ExitProcess(1);                                                \
    }                                                                \
  } while (0)

#endif  // HUMMOCK_TESTS_WINDOWS_CHECK_H
