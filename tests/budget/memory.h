/* What memory.c and memory_threads.c call of each other; each function is described where it stands. */
#ifndef HUMMOCK_TESTS_BUDGET_MEMORY_H
#define HUMMOCK_TESTS_BUDGET_MEMORY_H

#include <stddef.h>

void go_on(void);
void parked(size_t stays, size_t size);
void asleep(void);
void many_threads(size_t leave);
void idle_producer(void);
void freed_in_parts(size_t size, size_t keep);

#endif
