// What is measured: the malloc and free of the process, or those of a space.
#pragma once
#include <stdint.h>
#include <stdlib.h>

#include "hummock/space.h"

// Of both: handle() is what the calls need beside the size or the block, in a register before the clock
// starts as those are.
struct ProcessCalls {
  struct Handle {};
  Handle handle() const { return {}; }
  void* take(Handle, size_t size) const { return malloc(size); }
  void release(Handle, void* block) const { free(block); }
};

struct SpaceCalls {
  hummock_space_t* space;
  void* (*malloc_in)(hummock_space_t*, size_t);
  void (*free_in)(hummock_space_t*, void*);

  hummock_space_t* handle() const {
    hummock_space_t* loaded = space;
    asm volatile("" : "+r"(loaded));
    return loaded;
  }
  void* take(hummock_space_t* handle, size_t size) const { return malloc_in(handle, size); }
  void release(hummock_space_t* handle, void* block) const { free_in(handle, block); }
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
