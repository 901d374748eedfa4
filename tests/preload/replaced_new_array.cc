// A program that replaces operator new[] and the aligned delete[] alone, each by one that calls its plain
// counterpart. Checked mode must not take their blocks for ones of the wrong kind.
#include <stdlib.h>

#include <new>

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wsized-deallocation"
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

void* operator new[](size_t size) {
  return ::operator new(size);
}
void operator delete[](void* block, std::align_val_t alignment) noexcept {
  ::operator delete(block, alignment);
}

int main() {
  if (getenv("HUMMOCK_CHECKED") == nullptr) return 1;
  constexpr auto kAlign = static_cast<std::align_val_t>(64);
  ::operator delete[](::operator new[](10));
  ::operator delete[](::operator new[](10), size_t{10});
  ::operator delete[](::operator new[](10, std::nothrow), std::nothrow);
  ::operator delete[](::operator new[](10, kAlign), kAlign);
  ::operator delete[](::operator new[](10, kAlign), size_t{10}, kAlign);
  ::operator delete (::operator new(10, kAlign), size_t{10}, kAlign);
  return 0;
}
