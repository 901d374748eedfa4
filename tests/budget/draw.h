/* The same pseudo-random numbers in each run. */
#ifndef HUMMOCK_TESTS_BUDGET_DRAW_H
#define HUMMOCK_TESTS_BUDGET_DRAW_H

#include <stddef.h>
#include <stdint.h>

/* 0 to limit − 1. */
static size_t draw(size_t limit) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (size_t)(state % limit);
}

#endif
