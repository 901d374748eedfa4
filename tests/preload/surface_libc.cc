// The libc surface: what POSIX, C23 and glibc promise of each function.
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "surface.h"

extern "C" {
__attribute__((weak)) void free_sized(void*, size_t);
__attribute__((weak)) void free_aligned_sized(void*, size_t, size_t);
__attribute__((weak)) void* __libc_malloc(size_t);
__attribute__((weak)) void* __libc_memalign(size_t, size_t);
__attribute__((weak)) void __libc_free(void*);
}

namespace {

// ---- ISO C --------------------------------------------------------------------------------------

void test_malloc() {
  void* zero[2] = {malloc(hidden<size_t>(0)), malloc(hidden<size_t>(0))};
  CHECK(zero[0] != nullptr && zero[1] != nullptr && zero[0] != zero[1]);
  free(zero[0]);
  free(zero[1]);
  for (size_t n : kSizes) {
    void* block = malloc(n);
    CHECK_AT(block != nullptr && is_aligned(block, 16), n);
    const size_t room = malloc_usable_size(block);
    CHECK_AT(room >= n, n);
    memset(block, 0xA5, n);
    CHECK_AT(holds(block, 0xA5, n), n);
    errno = 4711;
    free(block);
    CHECK_AT(errno == 4711, n);
  }
  for (size_t n : kTooLarge) CHECK_AT(FAILS(malloc(hidden(n)), ENOMEM), n);
  errno = 4711;
  free(hidden<void*>(nullptr));
  CHECK(errno == 4711);
  CHECK(malloc_usable_size(nullptr) == 0);
}

void test_calloc() {
  for (int round = 0; round < 3; ++round) {  // later rounds get blocks that were used
    for (size_t n : kSizes) {
      void* block = calloc(n, 1);
      CHECK_AT(block != nullptr && is_aligned(block, 16) && holds(block, 0, n), n);
      memset(block, 0xFF, n);
      free(block);
    }
  }
  void* array = calloc(100, 24);
  CHECK(array != nullptr && holds(array, 0, 2400));
  free(array);
  for (size_t count : {size_t{0}, size_t{10}}) {
    void* empty = calloc(count, count == 0 ? 10 : 0);
    CHECK(empty != nullptr);
    free(empty);
  }
  CHECK(FAILS(calloc(hidden(SIZE_MAX), 2), ENOMEM));
  CHECK(FAILS(calloc(hidden(SIZE_MAX / 2 + 1), 2), ENOMEM));
  constexpr size_t kRoot = size_t{1} << (sizeof(size_t) * 4);  // its square is 0
  CHECK(FAILS(calloc(hidden(kRoot), kRoot), ENOMEM));
  for (size_t n : kTooLarge) CHECK_AT(FAILS(calloc(1, hidden(n)), ENOMEM), n);
}

void test_realloc() {
  void* block = realloc(hidden<void*>(nullptr), 100);
  CHECK(block != nullptr);
  memset(block, 0x5A, 100);
  size_t before = 100;
  for (size_t n : {101, 128, 5000, 70000, 3000000, 9000000, 2000000, 66000, 900, 17, 1}) {
    char* moved = static_cast<char*>(realloc(block, n));
    CHECK_AT(moved != nullptr && is_aligned(moved, 16), n);
    CHECK_AT(holds(moved, 0x5A, n < before ? n : before), n);
    CHECK_AT(malloc_usable_size(moved) >= n, n);
    memset(moved, 0x5A, n);
    block = moved;
    before = n;
  }
  for (size_t n : kTooLarge) {
    CHECK_AT(FAILS(realloc(hidden(block), hidden(n)), ENOMEM), n);
    CHECK_AT(*static_cast<char*>(block) == 0x5A, n);
  }
  CHECK(realloc(block, hidden<size_t>(0)) == nullptr);

  int* array = static_cast<int*>(reallocarray(hidden<void*>(nullptr), 10, sizeof(int)));
  CHECK(array != nullptr);
  array[9] = 7;
  array = static_cast<int*>(reallocarray(array, 5000, sizeof(int)));
  CHECK(array != nullptr && array[9] == 7);
  CHECK(FAILS(reallocarray(hidden(array), hidden(SIZE_MAX / 2), 3), ENOMEM));
  CHECK(FAILS(reallocarray(hidden(array), hidden(SIZE_MAX / 8), 4), ENOMEM));
  CHECK(array[9] == 7);
  free(array);
}

// ---- Alignment ----------------------------------------------------------------------------------

void test_alignment_matrix() {
  for (size_t alignment = 1; alignment <= size_t{64} << 20; alignment *= 2) {
    for (size_t n :
         {size_t{0}, size_t{1}, size_t{24}, alignment - 1, alignment, alignment + 1, size_t{100000}}) {
      void* blocks[3] = {aligned_alloc(alignment, n), memalign(alignment, n), nullptr};
      const int error = posix_memalign(&blocks[2], alignment, n);
      CHECK_AT(error == (alignment < sizeof(void*) ? EINVAL : 0), alignment);
      for (int i = 0; i < (error == 0 ? 3 : 2); ++i) {
        CHECK_AT(blocks[i] != nullptr && is_aligned(blocks[i], alignment), alignment);
        if (blocks[i] == nullptr) continue;
        CHECK_AT(malloc_usable_size(blocks[i]) >= n, alignment);
        if (n != 0) static_cast<char*>(blocks[i])[0] = static_cast<char*>(blocks[i])[n - 1] = 1;
        if (i == 1) blocks[i] = realloc(blocks[i], n + 100);
        free(blocks[i]);
      }
    }
  }
}

void test_alignment_errors() {
  for (size_t alignment : {0, 3, 24, 48, 100, 4095}) {
    void* out = &failures;
    CHECK_AT(posix_memalign(&out, alignment, 64) == EINVAL && out == &failures, alignment);
    if (ours)
      CHECK_AT(FAILS(aligned_alloc(hidden<size_t>(alignment), 64), EINVAL), alignment);  // glibc ≥ 2.38
    void* block = memalign(hidden<size_t>(alignment), 64);
    size_t power = 1;
    while (power < alignment) power *= 2;
    CHECK_AT(block != nullptr && is_aligned(block, power), alignment);
    free(block);
  }
  for (size_t n : kTooLarge) {
    for (size_t alignment :
         {size_t{8}, size_t{64}, size_t{4096}, size_t{1} << 21, size_t{1} << (sizeof(size_t) * 5)}) {
      void* out = &failures;
      errno = 4711;
      CHECK_AT(posix_memalign(&out, alignment, hidden(n)) == ENOMEM && out == &failures, n);
      CHECK_AT(errno == ENOMEM, n);
      CHECK_AT(FAILS(aligned_alloc(alignment, hidden(n)), ENOMEM), n);
      CHECK_AT(FAILS(memalign(alignment, hidden(n)), ENOMEM), n);
    }
    CHECK_AT(FAILS(valloc(hidden(n)), ENOMEM), n);
    CHECK_AT(FAILS(pvalloc(hidden(n)), ENOMEM), n);
  }
  CHECK(FAILS(memalign(hidden(SIZE_MAX / 2 + 2), 8), EINVAL));
  CHECK(FAILS(memalign(hidden(SIZE_MAX / 2 + 1), 8), ENOMEM));
}

void test_pages() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (size_t n : kSizes) {
    void* plain = valloc(n);
    CHECK_AT(plain != nullptr && is_aligned(plain, page) && malloc_usable_size(plain) >= n, n);
    free(plain);
    void* whole = pvalloc(n);
    CHECK_AT(whole != nullptr && is_aligned(whole, page), n);
    CHECK_AT(malloc_usable_size(whole) >= (n + page - 1) / page * page, n);
    free(whole);
  }
}

// ---- C23 and glibc's second names ---------------------------------------------------------------

void test_sized_free() {
  if (free_sized == nullptr || free_aligned_sized == nullptr) {
    CHECK(!ours);  // glibc ≥ 2.43
    return;
  }
  for (size_t n : kSizes) {
    errno = 4711;
    free_sized(malloc(n), n);
    free_sized(calloc(1, n), n);
    free_sized(realloc(malloc(3), n + 1), n + 1);
    for (size_t alignment : {16, 64, 4096, 65536})
      free_aligned_sized(aligned_alloc(alignment, n), alignment, n);
    CHECK_AT(errno == 4711, n);
  }
  free_sized(nullptr, 0);
  free_sized(nullptr, 77);
  free_aligned_sized(nullptr, 64, 77);
}

void test_second_names() {
  if (__libc_malloc == nullptr || __libc_memalign == nullptr || __libc_free == nullptr) return;
  free(__libc_malloc(100));
  free(__libc_memalign(4096, 100));
  __libc_free(malloc(100));
}

// ---- Tuning and figures -------------------------------------------------------------------------

void test_figures() {
  for (int parameter : {M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX}) {
    CHECK_AT(mallopt(parameter, 4) == 1, static_cast<size_t>(-parameter));
  }
  if (ours) CHECK(mallopt(12345, 0) == 0);  // glibc: 1
  const struct mallinfo2 before = mallinfo2();
  std::vector<void*> blocks;
  for (int i = 0; i < 10000; ++i) blocks.push_back(malloc(1000));
  void* large = malloc(50000000);
  const struct mallinfo2 during = mallinfo2();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo narrow = mallinfo();
#pragma GCC diagnostic pop
  CHECK(during.uordblks + during.hblkhd >= before.uordblks + before.hblkhd + 59000000);
  CHECK(during.arena + during.hblkhd >= during.uordblks + during.hblkhd);
  CHECK(narrow.uordblks + narrow.hblkhd >= 59000000);
  for (void* block : blocks) free(block);
  free(large);
  const struct mallinfo2 after = mallinfo2();
  CHECK(after.uordblks + after.hblkhd < during.uordblks + during.hblkhd - 50000000);
  const int trimmed = malloc_trim(0);
  CHECK(trimmed == 0 || trimmed == 1);
}

void test_reports() {
  char* text = nullptr;
  size_t length = 0;
  FILE* out = open_memstream(&text, &length);
  CHECK(malloc_info(1, out) == EINVAL);
  CHECK(malloc_info(0, out) == 0);
  fclose(out);
  CHECK(length > 0 && strncmp(text, "<malloc version=", 16) == 0 && strstr(text, "</malloc>") != nullptr);
  free(text);

  const int saved = dup(2);
  const int file = memfd_create("stats", 0);
  fflush(stderr);
  dup2(file, 2);
  malloc_stats();
  fflush(stderr);
  dup2(saved, 2);
  CHECK(lseek(file, 0, SEEK_END) > 0);
  close(file);
  close(saved);
}

void test_interposed() {
  // Strings of libc's own making come from the same malloc.
  char* copy = strdup("text made by libc");
  CHECK(malloc_usable_size(copy) >= 18);
  free(copy);
  char* line = nullptr;
  CHECK(asprintf(&line, "%d", 42) == 2);
  CHECK(malloc_usable_size(line) >= 3);
  free(line);
}

}  // namespace

int main() {
  begin();
  test_malloc();
  test_calloc();
  test_realloc();
  test_alignment_matrix();
  test_alignment_errors();
  test_pages();
  test_sized_free();
  test_second_names();
  test_figures();
  test_reports();
  test_interposed();
  return end();
}
