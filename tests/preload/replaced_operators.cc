// A program that replaces operator new(size_t) and operator delete(void*), and the aligned pair, alone:
// every other form must come to its two, as the standard says. Its blocks start in the middle of
// malloc's, so that a form which goes to the heap by itself is found out.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <new>

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wsized-deallocation"  // the sized forms are left out on purpose
#endif

namespace {

constexpr size_t kShift = 32;
int made = 0;
int ended = 0;
bool refuse = false;

__attribute__((noinline)) void* shifted(void* block) {
  if (refuse || block == nullptr) {
    free(block);
    throw std::bad_alloc();
  }
  ++made;
  char* inner = static_cast<char*>(block) + kShift;
  __asm__("" : "+r"(inner));  // the compiler would warn that it is no block's start
  return inner;
}

}  // namespace

void* operator new(size_t size) {
  return shifted(malloc(size + kShift));
}
void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  ++ended;
  free(static_cast<char*>(block) - kShift);
}
void* operator new(size_t size, std::align_val_t) {
  return shifted(malloc(size + kShift));
}
void operator delete(void* block, std::align_val_t) noexcept {
  ::operator delete(block);
}

int main() {
  constexpr auto kAlign = static_cast<std::align_val_t>(32);
  ::operator delete (::operator new(10), size_t{10});
  ::operator delete(::operator new(10, std::nothrow), std::nothrow);
  ::operator delete[](::operator new[](10));
  ::operator delete[](::operator new[](10), size_t{10});
  ::operator delete[](::operator new[](10, std::nothrow), std::nothrow);
  ::operator delete (::operator new(10, kAlign), size_t{10}, kAlign);
  ::operator delete(::operator new(10, kAlign, std::nothrow), kAlign, std::nothrow);
  ::operator delete[](::operator new[](10, kAlign), kAlign);
  ::operator delete[](::operator new[](10, kAlign), size_t{10}, kAlign);
  ::operator delete[](::operator new[](10, kAlign, std::nothrow), kAlign, std::nothrow);
  refuse = true;
  int refused = 0;
  refused += ::operator new(10, std::nothrow) == nullptr;
  refused += ::operator new[](10, std::nothrow) == nullptr;
  refused += ::operator new(10, kAlign, std::nothrow) == nullptr;
  refused += ::operator new[](10, kAlign, std::nothrow) == nullptr;
  if (made == 10 && ended == 10 && refused == 4) return 0;
  fprintf(stderr, "made %d and ended %d of 10, refused %d of 4\n", made, ended, refused);
  return 1;
}
