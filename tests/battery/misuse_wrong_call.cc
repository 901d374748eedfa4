// A block, or no block, given to the wrong function or with the wrong size.
#include <string.h>

#include "misuse.h"

namespace battery {
namespace {

void keep_result(void* p, size_t size) {
  if (p != nullptr) keep(p, size);
}

void realloc_interior() {
  char* p = static_cast<char*>(in_crowd(256));
  keep_unchecked(p, 256);
  keep_result(call::realloc(p + 64, 512), 512);
}

void realloc_foreign() {
  alignas(16) static char room[1024];
  borrow(room, sizeof(room));
  keep_result(call::realloc(room + 256, 512), 512);
}

size_t volatile answer;  // so that the call is made

void usable_interior() {
  char* p = static_cast<char*>(in_crowd(256));
  keep(p, 256);
  answer = call::usable(p + 24);
}

void usable_foreign() {
  alignas(16) static char room[1024];
  borrow(room, sizeof(room));
  answer = call::usable(room + 256);
}

void usable_freed() {
  void* p = in_crowd(64);
  call::free(p);
  answer = call::usable(p);
}

void delete_wrong_size() {
  call::delete_sized(call::new_one(64), 4096);
}
void free_sized_wrong() {
  call::free_sized(in_crowd(64), 4096);
}
void free_sized_near() {
  call::free_sized(in_crowd(100), 99);
}

void free_sized_large() {
  call::free_sized(in_crowd(300 * KiB, 1, 1), 100 * KiB);
}

// On a block that does not happen to have the alignment named.
void free_aligned_sized_wrong() {
  char* p;
  for (;;) {
    p = static_cast<char*>(call::aligned_alloc(64, 256));
    if (reinterpret_cast<uintptr_t>(p) % 4096 != 0) break;
    keep(p, 256);
  }
  call::free_aligned_sized(p, 4096, 256);
}

void array_deleted_as_one() {
  call::delete_one(call::new_array(64));
}
void one_deleted_as_array() {
  call::delete_array(call::new_one(64));
}
void malloc_deleted() {
  call::delete_one(in_crowd(64));
}
void new_freed() {
  call::free(call::new_one(64));
}

constexpr char kFamily[] = "wrong call";
constexpr char kKind[] = "the default mode does not record which function allocated a block";

constexpr Case kCases[] = {
    {"realloc_interior", kFamily, "realloc(p + 64, 512)", realloc_interior, 256},
    {"realloc_foreign", kFamily, "realloc of a static variable", realloc_foreign},
    {"usable_size_interior", kFamily, "malloc_usable_size(p + 24)", usable_interior, 256},
    {"usable_size_foreign", kFamily, "malloc_usable_size of a static variable", usable_foreign},
    {"usable_size_freed", kFamily, "malloc_usable_size of a freed block", usable_freed, 64,
     "malloc_usable_size does not search the lists of free blocks"},
    {"delete_wrong_size", kFamily, "operator delete(p, 4096) of new(64)", delete_wrong_size},
    {"free_sized_wrong", kFamily, "free_sized(p, 4096) of malloc(64)", free_sized_wrong},
    {"free_sized_near", kFamily, "free_sized(p, 99) of malloc(100)", free_sized_near, 100,
     "both sizes get the same block; only checked mode records the exact size"},
    {"free_sized_large", kFamily, "free_sized(p, 100 KiB) of malloc(300 KiB)", free_sized_large, 300 * KiB},
    {"free_aligned_sized_wrong", kFamily, "free_aligned_sized(p, 4096, 256) of aligned_alloc(64, 256)",
     free_aligned_sized_wrong, 256},
    {"new_array_delete", kFamily, "operator delete of new[]", array_deleted_as_one, 64, kKind},
    {"new_delete_array", kFamily, "operator delete[] of new", one_deleted_as_array, 64, kKind},
    {"malloc_delete", kFamily, "operator delete of malloc", malloc_deleted, 64, kKind},
    {"new_free", kFamily, "free of new", new_freed, 64, kKind},
};

}  // namespace

const Cases wrong_call_cases{kCases};

}  // namespace battery
