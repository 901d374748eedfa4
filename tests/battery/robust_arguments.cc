// Arguments at and beyond the edges: what must fail does so with the right error, and harms nothing.
#include <unistd.h>

#include "robust.h"

namespace battery {
namespace {

constexpr size_t kHalf = static_cast<size_t>(PTRDIFF_MAX) + 1;
constexpr size_t kTooLarge[] = {SIZE_MAX,
                                SIZE_MAX - 1,
                                SIZE_MAX - 15,
                                SIZE_MAX - 4096,
                                SIZE_MAX - 64 * KiB,
                                SIZE_MAX - 32 * MiB,
                                SIZE_MAX / 2 + 4096,
                                kHalf,
                                kHalf + 1};

bool fails_with(int error, void* result) {
  return result == nullptr && errno == error;
}

#define CHECK_FAILS(error, call_expression)                                                           \
  do {                                                                                                \
    errno = 0;                                                                                        \
    void* result_ = (call_expression);                                                                \
    if (!fails_with(error, result_)) {                                                                \
      end(kFailed, "%s:%d: %s gave %p, errno %d instead of %d", __FILE__, __LINE__, #call_expression, \
          result_, errno, error);                                                                     \
    }                                                                                                 \
  } while (0)

bool is_aligned(const void* p, size_t alignment) {
  return reinterpret_cast<uintptr_t>(p) % alignment == 0;
}

void alignment_matrix() {
  for (size_t alignment = 8; alignment <= 64 * MiB; alignment *= 2) {
    for (size_t size :
         {size_t{0}, size_t{1}, size_t{24}, alignment - 1, alignment, alignment + 1, 100 * KiB}) {
      if (size > 2 * MiB) continue;
      void* p[3] = {nullptr, call::memalign(alignment, size), call::aligned_alloc(alignment, size)};
      CHECK(call::posix_memalign(&p[0], alignment, size) == 0);
      for (void* block : p) {
        CHECK(block != nullptr && is_aligned(block, alignment));
        CHECK(call::usable(block) >= size);
        memset(block, 'a', size);
      }
      for (void*& block : p) {
        char* moved = static_cast<char*>(call::realloc(block, size + 100));
        CHECK(moved != nullptr);
        check_filled(moved, size, 'a');
        block = moved;
      }
      for (void* block : p) call::free(block);
    }
  }
}

void alignment_overflow() {
  for (size_t alignment = 16; alignment <= kHalf / 2; alignment *= 2) {
    for (size_t size :
         {SIZE_MAX, SIZE_MAX - alignment, SIZE_MAX - alignment + 1, kHalf - alignment + 1, kHalf}) {
      if (size < 1024 * 1024 * MiB) continue;
      CHECK_FAILS(ENOMEM, call::memalign(alignment, size));
      CHECK_FAILS(ENOMEM, call::aligned_alloc(alignment, size));
      void* out = &out;
      CHECK(call::posix_memalign(&out, alignment, size) == ENOMEM && out == &out);
    }
  }
}

void alignment_too_large() {
  for (size_t alignment : {size_t{1} << 48, size_t{1} << 62, kHalf}) {
    CHECK_FAILS(ENOMEM, call::aligned_alloc(alignment, 64));
    void* out = &out;
    CHECK(call::posix_memalign(&out, alignment, 64) == ENOMEM && out == &out);
  }
}

void aligned_alloc_bad() {
  for (size_t alignment : {size_t{0}, size_t{3}, size_t{24}, size_t{48}, size_t{4097}, SIZE_MAX}) {
    CHECK_FAILS(EINVAL, call::aligned_alloc(alignment, 64));
  }
}

void posix_memalign_bad() {
  for (size_t alignment : {size_t{0}, size_t{1}, size_t{2}, size_t{4}, size_t{3}, size_t{24}, SIZE_MAX}) {
    void* out = &out;
    errno = 12345;
    CHECK(call::posix_memalign(&out, alignment, 64) == EINVAL);
    CHECK(out == &out && errno == 12345);
  }
}

void memalign_odd() {
  for (size_t alignment : {0, 1, 2, 3, 7, 17, 24, 48, 100, 4095, 5000}) {
    char* p = static_cast<char*>(call::memalign(alignment, 100));
    if (p == nullptr) {
      CHECK(errno == EINVAL);
      continue;
    }
    size_t whole = 16;
    while (whole < alignment) whole *= 2;
    CHECK(is_aligned(p, whole));
    memset(p, 'o', 100);
    call::free(p);
  }
}

void calloc_overflow() {
  const size_t pairs[][2] = {{SIZE_MAX, 2},
                             {2, SIZE_MAX},
                             {kHalf, 2},
                             {size_t{1} << 32, size_t{1} << 32},
                             {kHalf, 1},
                             {SIZE_MAX, SIZE_MAX},
                             {SIZE_MAX / 3 + 1, 3},
                             {1, SIZE_MAX}};
  for (const auto& pair : pairs) CHECK_FAILS(ENOMEM, call::calloc(pair[0], pair[1]));
}

void reallocarray_overflow() {
  char* p = filled(100, 'r');
  CHECK_FAILS(ENOMEM, call::reallocarray(p, SIZE_MAX, 2));
  CHECK_FAILS(ENOMEM, call::reallocarray(p, size_t{1} << 32, size_t{1} << 32));
  CHECK_FAILS(ENOMEM, call::reallocarray(nullptr, SIZE_MAX / 2, 3));
  check_filled(p, 100, 'r');
  p = static_cast<char*>(call::reallocarray(p, 10, 50));
  CHECK(p != nullptr);
  check_filled(p, 100, 'r');
  call::free(p);
}

void too_large_malloc() {
  for (size_t size : kTooLarge) CHECK_FAILS(ENOMEM, call::malloc(size));
}

void too_large_calloc() {
  for (size_t size : kTooLarge) {
    CHECK_FAILS(ENOMEM, call::calloc(size, 1));
    CHECK_FAILS(ENOMEM, call::calloc(1, size));
  }
}

void too_large_realloc() {
  for (size_t old : {size_t{24}, size_t{5000}, 300 * KiB, 20 * MiB}) {
    char* p = filled(old, 'k');
    for (size_t size : kTooLarge) {
      CHECK_FAILS(ENOMEM, call::realloc(p, size));
      CHECK_FAILS(ENOMEM, call::reallocarray(p, 1, size));
    }
    check_filled(p, old, 'k');
    CHECK(call::usable(p) >= old);
    call::free(p);
  }
}

void too_large_realloc_of_null() {
  for (size_t size : kTooLarge) CHECK_FAILS(ENOMEM, call::realloc(nullptr, size));
}

void too_large_aligned() {
  for (size_t size : kTooLarge) {
    CHECK_FAILS(ENOMEM, call::memalign(64, size));
    CHECK_FAILS(ENOMEM, call::aligned_alloc(64, size));
    void* out = &out;
    CHECK(call::posix_memalign(&out, 64, size) == ENOMEM && out == &out);
  }
}

void valloc_pvalloc() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (size_t size : {size_t{0}, size_t{1}, page - 1, page, page + 1, 10 * page + 5}) {
    void* v = call::valloc(size);
    void* w = call::pvalloc(size);
    CHECK(v != nullptr && w != nullptr && is_aligned(v, page) && is_aligned(w, page));
    const size_t whole = (size + page - 1) / page * page;
    CHECK(call::usable(w) >= whole);
    memset(v, 'v', size);
    memset(w, 'w', whole);
    call::free(v);
    call::free(w);
  }
  for (size_t size : kTooLarge) {
    CHECK_FAILS(ENOMEM, call::valloc(size));
    CHECK_FAILS(ENOMEM, call::pvalloc(size));
  }
}

constexpr char kFamily[] = "arguments";

constexpr Case kCases[] = {
    {"alignment_matrix", kFamily, "alignments of 8 to 64 MiB with small, near and large sizes",
     alignment_matrix},
    {"alignment_overflow", kFamily, "alignment + size wraps round: NULL, ENOMEM", alignment_overflow},
    {"alignment_too_large", kFamily, "alignments that nothing can have: ENOMEM", alignment_too_large},
    {"aligned_alloc_bad", kFamily, "an alignment that is no power of two: NULL, EINVAL", aligned_alloc_bad},
    {"posix_memalign_bad", kFamily, "EINVAL, the pointer and errno untouched", posix_memalign_bad},
    {"memalign_odd", kFamily, "memalign(48) and the like round up", memalign_odd},
    {"calloc_overflow", kFamily, "count times size wraps round", calloc_overflow},
    {"reallocarray_overflow", kFamily, "the same; the old block stays", reallocarray_overflow},
    {"too_large_malloc", kFamily, "SIZE_MAX to PTRDIFF_MAX + 1: NULL, ENOMEM", too_large_malloc},
    {"too_large_calloc", kFamily, "the same of calloc", too_large_calloc},
    {"too_large_realloc", kFamily, "the same of realloc; the old block stays", too_large_realloc},
    {"too_large_realloc_of_null", kFamily, "the same of realloc(NULL)", too_large_realloc_of_null},
    {"too_large_aligned", kFamily, "the same of the aligned functions", too_large_aligned},
    {"valloc_pvalloc", kFamily, "pages, whole pages, overflow", valloc_pvalloc},
};

}  // namespace

const Cases argument_cases{kCases};

}  // namespace battery
