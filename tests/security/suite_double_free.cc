// Blocks freed twice.
#include "suite.h"

namespace battery {
namespace {

template <size_t kSize>
void at_once() {
  void* p = block(kSize);
  call::free(p);
  wrong([p] { call::free(p); });
}

template <size_t kSize>
void after_frees() {
  void* others[many(kSize)];
  void* p = block(kSize);
  for (void*& other : others) other = call::malloc(kSize);
  call::free(p);
  for (void* other : others) call::free(other);
  wrong([p] { call::free(p); });
}

template <size_t kSize>
void after_mallocs() {
  void* p = block(kSize);
  call::free(p);
  for (size_t i = 1; i <= 100; ++i) keep(call::malloc(i * 40 + kSize % 32), i * 40);
  wrong([p] { call::free(p); });
}

template <size_t kSize>
void interleaved() {
  void* a = block(kSize);
  void* b = block(kSize);
  call::free(a);
  call::free(b);
  wrong([a] { call::free(a); });
  go_on(kSize);
}

// The block may belong to somebody else by now; in the default mode it does.
template <size_t kSize>
void reused() {
  void* p = block(kSize);
  call::free(p);
  void* q = call::malloc(kSize);
  if (q != p) keep(q, kSize);
  wrong([p] { call::free(p); });
  go_on(kSize);
}

template <size_t kSize>
void by_another_thread() {
  void* p = block(kSize);
  call::free(p);
  on_thread([p] { wrong([p] { call::free(p); }); });
}

template <size_t kSize>
void first_by_another_thread() {
  void* p = block(kSize);
  on_thread([p] { call::free(p); });
  wrong([p] { call::free(p); });
}

template <size_t kSize>
void of_ended_thread() {
  void* p = nullptr;
  on_thread([&p] { p = block(kSize); });
  call::free(p);
  wrong([p] { call::free(p); });
}

template <size_t kSize>
void by_realloc() {
  void* p = block(kSize);
  call::free(p);
  wrong([p] {
    void* q = call::realloc(p, kSize + kSize / 2);
    if (q != nullptr) keep(q, kSize + kSize / 2);
  });
}

template <size_t kAlignment, size_t kSize>
void aligned() {
  void* p = call::aligned_alloc(kAlignment, kSize);
  keep(call::aligned_alloc(kAlignment, kSize), kSize);
  call::free(p);
  wrong([p] { call::free(p); });
}

constexpr char kFamily[] = "double free";
constexpr char kReused[] = "malloc had handed the block out again, so the second free is valid";

constexpr Case kCases[] = {
    {"double_free_tiny", kFamily, "16 bytes, at once", at_once<kTiny>, kTiny},
    {"double_free_small", kFamily, "64 bytes, at once", at_once<kSmall>},
    {"double_free_medium", kFamily, "3 KiB, at once", at_once<kMedium>, kMedium},
    {"double_free_large", kFamily, "200 KiB, at once", at_once<kLarge>, kLarge},
    {"double_free_huge", kFamily, "40 MiB, at once", at_once<kHuge>, kHuge},
    {"double_free_delayed_small", kFamily, "64 bytes, after 200 other frees", after_frees<kSmall>},
    {"double_free_delayed_medium", kFamily, "3 KiB, after 200 other frees", after_frees<kMedium>, kMedium},
    {"double_free_delayed_large", kFamily, "200 KiB, after 12 other frees", after_frees<kLarge>, kLarge},
    {"double_free_delayed_huge", kFamily, "40 MiB, after 3 other frees", after_frees<kHuge>, kHuge},
    {"double_free_after_mallocs_small", kFamily, "64 bytes, after 100 mallocs", after_mallocs<kSmall>},
    {"double_free_after_mallocs_large", kFamily, "200 KiB, after 100 mallocs", after_mallocs<kLarge>, kLarge},
    {"double_free_interleaved_small", kFamily, "a, b, a of 64 bytes", interleaved<kSmall>},
    {"double_free_interleaved_medium", kFamily, "a, b, a of 3 KiB", interleaved<kMedium>, kMedium},
    {"double_free_interleaved_large", kFamily, "a, b, a of 200 KiB", interleaved<kLarge>, kLarge},
    {"double_free_reused_small", kFamily, "64 bytes, after malloc(64)", reused<kSmall>, kSmall, kReused},
    {"double_free_reused_medium", kFamily, "3 KiB, after malloc(3 KiB)", reused<kMedium>, kMedium, kReused},
    {"double_free_reused_large", kFamily, "200 KiB, after malloc(200 KiB)", reused<kLarge>, kLarge, kReused},
    {"double_free_other_thread_small", kFamily, "64 bytes, then by another thread",
     by_another_thread<kSmall>},
    {"double_free_other_thread_large", kFamily, "200 KiB, then by another thread", by_another_thread<kLarge>,
     kLarge},
    {"double_free_after_other_thread", kFamily, "64 bytes, first by another thread",
     first_by_another_thread<kSmall>},
    {"double_free_ended_thread_small", kFamily, "64 bytes of a thread that has ended",
     of_ended_thread<kSmall>},
    {"double_free_ended_thread_medium", kFamily, "3 KiB of a thread that has ended", of_ended_thread<kMedium>,
     kMedium},
    {"double_free_realloc_small", kFamily, "64 bytes, free, then realloc", by_realloc<kSmall>},
    {"double_free_realloc_large", kFamily, "200 KiB, free, then realloc", by_realloc<kLarge>, kLarge},
    {"double_free_aligned_64", kFamily, "192 bytes aligned to 64", aligned<64, 192>, 192},
    {"double_free_aligned_page", kFamily, "8 KiB aligned to 4096", aligned<4096, 8 * KiB>, 8 * KiB},
};

}  // namespace

const Cases security_double_free{kCases};

}  // namespace battery
