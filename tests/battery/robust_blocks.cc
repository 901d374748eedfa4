// What blocks must be: unique, writable, zero where promised, kept by realloc; the C++ operators.
#include <dlfcn.h>

#include <algorithm>

#include "robust.h"

namespace battery {
namespace {

void zero_unique() {
  void* p[1000];
  for (void*& block : p) {
    block = call::malloc(0);
    CHECK(block != nullptr);
  }
  std::sort(p, p + 1000);
  for (int i = 1; i < 1000; ++i) CHECK(p[i] != p[i - 1]);
  for (void* block : p) call::free(block);
  void* z = call::calloc(0, 100);
  CHECK(z != nullptr);
  call::free(z);
}

void realloc_zero() {
  const size_t before = resident();
  for (int i = 0; i < 200000; ++i) CHECK(call::realloc(filled(1000, 'z'), 0) == nullptr);
  check_resident(before, 8 * MiB, "after 200,000 realloc(p, 0)");
  void* p = call::realloc(nullptr, 0);
  CHECK(p != nullptr);
  call::free(p);
}

void null_operations() {
  call::free(nullptr);
  CHECK(call::usable(nullptr) == 0);
  call::delete_one(nullptr);
  call::delete_array(nullptr);
  call::delete_sized(nullptr, 100);
  char* p = static_cast<char*>(call::realloc(nullptr, 100));
  CHECK(p != nullptr);
  memset(p, 'n', 100);
  call::free(p);
}

void sized_frees() {
  for (size_t size = 1; size < 100000; size = size * 5 / 4 + 1) {
    call::free_sized(call::malloc(size), size);
    call::free_sized(call::calloc(1, size), size);
    call::free_sized(call::realloc(call::malloc(10), size), size);
    call::free_aligned_sized(call::aligned_alloc(64, size), 64, size);
    call::free_aligned_sized(call::aligned_alloc(4096, size), 4096, size);
    call::delete_sized(call::new_one(size), size);
  }
  call::free_sized(nullptr, 10);
  call::free_aligned_sized(nullptr, 64, 10);
}

// A library with operators of its own (-static-libstdc++) frees what another's allocated, and the other way
// round.
void hidden_operators() {
  for (size_t size = 0; size < 100000; size = size * 5 / 4 + 1) {
    call::free(call::new_array(size));
    call::delete_array(call::malloc(size));
    call::free(call::new_one(size));
    call::delete_one(call::malloc(size));
  }
}

void usable_writable() {
  for (size_t size = 0; size < 100000; size = size * 9 / 8 + 1) {
    char* p[4];
    for (char*& block : p) {
      block = static_cast<char*>(call::malloc(size));
      CHECK(block != nullptr && call::usable(block) >= size);
    }
    for (int i = 0; i < 4; ++i) memset(p[i], 'A' + i, call::usable(p[i]));
    for (int i = 0; i < 4; ++i) {
      check_filled(p[i], call::usable(p[i]), 'A' + i);
      call::free(p[i]);
    }
  }
}

void realloc_keeps() {
  constexpr size_t kSizes[] = {1,        16,       17,        100,     1000,     5000,    9000,
                               60 * KiB, 70 * KiB, 300 * KiB, 2 * MiB, 20 * MiB, 40 * MiB};
  for (size_t from : kSizes) {
    for (size_t to : kSizes) {
      char* p = filled(from, 'f');
      p = static_cast<char*>(call::realloc(p, to));
      CHECK(p != nullptr && call::usable(p) >= to);
      check_filled(p, std::min(from, to), 'f');
      memset(p, 'g', to);
      call::free(p);
    }
  }
}

void realloc_walk() {
  Random random(5);
  char* p = nullptr;
  size_t size = 0;
  for (int i = 0; i < 3000; ++i) {
    const size_t next = random.between(1, i % 10 == 0 ? 3 * MiB : i % 3 == 0 ? 100 * KiB : 2000);
    p = static_cast<char*>(call::realloc(p, next));
    CHECK(p != nullptr);
    check_filled(p, std::min({size, next, 8 * KiB}), 'w');
    memset(p, 'w', size = next);
  }
  call::free(p);
}

void calloc_zero() {
  constexpr size_t kSizes[] = {1, 16, 100, 1000, 5000, 20 * KiB, 70 * KiB, 300 * KiB, 2 * MiB, 20 * MiB};
  for (int round = 0; round < 4; ++round) {
    for (size_t size : kSizes) {
      char* p[8];
      const int count = size > MiB ? 2 : 8;
      for (int i = 0; i < count; ++i) {
        p[i] = static_cast<char*>(call::calloc(1, size));
        CHECK(p[i] != nullptr);
        check_filled(p[i], size, 0);
        memset(p[i], 0xee, call::usable(p[i]));
      }
      for (int i = 0; i < count; ++i) call::free(p[i]);
    }
  }
}

void calloc_zero_after_trim() {
  for (size_t size : {size_t{100}, 3 * KiB, 50 * KiB, 500 * KiB, 20 * MiB}) {
    call::free(filled(size, 'd'));
    malloc_trim(0);
    char* p = static_cast<char*>(call::calloc(1, size));
    CHECK(p != nullptr);
    check_filled(p, size, 0);
    call::free(p);
  }
}

// ---- C++ ----------------------------------------------------------------------------------------

void* (*volatile new_aligned)(size_t, std::align_val_t) = ::operator new;
void (*volatile delete_aligned)(void*, std::align_val_t) = ::operator delete;
void* (*volatile new_nothrow)(size_t, const std::nothrow_t&) = ::operator new;

void new_throws() {
  for (size_t size : {SIZE_MAX, static_cast<size_t>(PTRDIFF_MAX) + 1}) {
    for (int way = 0; way < 3; ++way) {
      bool thrown = false;
      try {
        if (way == 0) call::new_one(size);
        if (way == 1) call::new_array(size);
        if (way == 2) new_aligned(size, std::align_val_t{256});
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      CHECK(thrown);
    }
    CHECK(new_nothrow(size, std::nothrow) == nullptr);
  }
}

int handler_calls;

void new_handler_called() {
  std::set_new_handler([] {
    if (++handler_calls == 3) std::set_new_handler(nullptr);
  });
  CHECK(new_nothrow(SIZE_MAX, std::nothrow) == nullptr);
  CHECK(handler_calls == 3);
  handler_calls = 0;
  std::set_new_handler([] {
    ++handler_calls;
    throw std::bad_alloc();
  });
  bool thrown = false;
  try {
    call::new_one(SIZE_MAX);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  CHECK(thrown && handler_calls == 1);
  CHECK(new_nothrow(SIZE_MAX, std::nothrow) == nullptr && handler_calls == 2);
}

void new_aligned_matrix() {
  for (size_t alignment = 1; alignment <= 64 * KiB; alignment *= 2) {
    void* p = new_aligned(100, std::align_val_t{alignment});
    CHECK(reinterpret_cast<uintptr_t>(p) % alignment == 0);
    memset(p, 'n', 100);
    delete_aligned(p, std::align_val_t{alignment});
  }
}

// ---- The family as a whole ------------------------------------------------------------------------

constexpr const char* kNames[] = {"malloc",
                                  "free",
                                  "calloc",
                                  "realloc",
                                  "reallocarray",
                                  "aligned_alloc",
                                  "posix_memalign",
                                  "memalign",
                                  "valloc",
                                  "pvalloc",
                                  "malloc_usable_size",
                                  "_Znwm",
                                  "_Znam",
                                  "_ZdlPv",
                                  "_ZdaPv",
                                  "_ZdlPvm",
                                  "_ZdaPvm",
                                  "_ZnwmRKSt9nothrow_t",
                                  "_ZnamRKSt9nothrow_t",
                                  "_ZdlPvRKSt9nothrow_t",
                                  "_ZdaPvRKSt9nothrow_t",
                                  "_ZnwmSt11align_val_t",
                                  "_ZnamSt11align_val_t",
                                  "_ZdlPvSt11align_val_t",
                                  "_ZdaPvSt11align_val_t",
                                  "_ZdlPvmSt11align_val_t",
                                  "_ZdaPvmSt11align_val_t",
                                  "_ZnwmSt11align_val_tRKSt9nothrow_t",
                                  "_ZnamSt11align_val_tRKSt9nothrow_t",
                                  "_ZdlPvSt11align_val_tRKSt9nothrow_t",
                                  "_ZdaPvSt11align_val_tRKSt9nothrow_t",
                                  "malloc_trim",
                                  "mallopt",
                                  "mallinfo",
                                  "mallinfo2",
                                  "malloc_info",
                                  "malloc_stats",
                                  "free_sized",
                                  "free_aligned_sized"};

const char* home_of(const char* name) {
  Dl_info info;
  void* address = dlsym(RTLD_DEFAULT, name);
  return address != nullptr && dladdr(address, &info) != 0 ? info.dli_fname : "nowhere";
}

// A function left to libc would give or get blocks of another allocator.
void whole_family() {
  const char* home = home_of("malloc");
  if (strstr(home, "libc.so") != nullptr) end(kSkipped, "skipped: nothing is preloaded");
  for (const char* name : kNames) {
    if (strcmp(home, home_of(name)) != 0)
      end(kFailed, "%s is in %s, malloc in %s", name, home_of(name), home);
  }
}

void trading() {
  void* p[] = {call::malloc(50),           call::calloc(5, 10),
               call::realloc(nullptr, 50), call::reallocarray(nullptr, 5, 10),
               call::memalign(64, 50),     call::valloc(50),
               call::pvalloc(50),          call::aligned_alloc(64, 50),
               strdup("some words"),       realpath("/", nullptr)};
  for (void* block : p) {
    CHECK(block != nullptr && call::usable(block) >= 2);
    block = call::realloc(block, 500);
    CHECK(block != nullptr);
    call::free(block);
  }
}

constexpr char kFamily[] = "blocks";

constexpr Case kCases[] = {
    {"malloc_zero_unique", kFamily, "malloc(0) gives blocks that differ", zero_unique},
    {"realloc_zero", kFamily, "realloc(p, 0) frees", realloc_zero},
    {"null_operations", kFamily, "every function that takes a block takes NULL", null_operations},
    {"sized_frees", kFamily, "free_sized, free_aligned_sized, sized delete, rightly used", sized_frees},
    {"hidden_operators", kFamily, "free of new[], delete[] of malloc: operators in two libraries",
     hidden_operators},
    {"usable_writable", kFamily, "the whole usable size can be written", usable_writable},
    {"realloc_keeps", kFamily, "contents survive every change of size", realloc_keeps},
    {"realloc_walk", kFamily, "a block of ever changing size", realloc_walk},
    {"calloc_zero", kFamily, "calloc is zero where dirty blocks were freed", calloc_zero},
    {"calloc_zero_after_trim", kFamily, "the same after malloc_trim", calloc_zero_after_trim},
    {"new_throws", kFamily, "operator new throws bad_alloc, nothrow gives null", new_throws},
    {"new_handler_called", kFamily, "until it gives up or throws", new_handler_called},
    {"new_aligned_matrix", kFamily, "operator new with alignments", new_aligned_matrix},
    {"whole_family", kFamily, "every function of the family comes from one library", whole_family},
    {"trading", kFamily, "blocks of each function go through realloc and free", trading},
};

}  // namespace

const Cases block_cases{kCases};

}  // namespace battery
