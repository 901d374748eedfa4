// What is measured: the malloc and free of the process, or those of a space.
#pragma once
#include <stdint.h>
#include <stdlib.h>

#include "hummock/space.h"

struct ProcessCalls {
  void* take(size_t size) const { return malloc(size); }
  void release(void* block) const { free(block); }
};

struct SpaceCalls {
  hummock_space_t* space;
  void* (*malloc_in)(hummock_space_t*, size_t);
  void (*free_in)(hummock_space_t*, void*);

  void* take(size_t size) const { return malloc_in(space, size); }
  void release(void* block) const { free_in(space, block); }
};

// The kinds of space that can be asked for.
struct SpaceKind {
  const char* name;
  const char* what;
  uint32_t huge_pages;
  uint32_t threads;
  uint32_t cache_blocks;
  uint32_t cache_largest;
};

// Null: there is none of that name.
const SpaceKind* find_space_kind(const char* name);

// A space of the kind, populated, from the library that is preloaded; ends the program when there is none.
// `achieved` gets what it has.
SpaceCalls make_space(const SpaceKind& kind, size_t bytes, uint32_t* achieved);
