// What these programs check with: the first thing that is wrong is said, and the program ends with 1.
#ifndef HUMMOCK_TESTS_PROXY_CHECK_H
#define HUMMOCK_TESTS_PROXY_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#endif  // HUMMOCK_TESTS_PROXY_CHECK_H
