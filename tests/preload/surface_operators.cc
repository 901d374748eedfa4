// The C++ operators: what the standard promises of each form of new and delete.
#include <new>

#include "surface.h"

namespace {

struct Strange {};  // not derived from anything

int handler_calls = 0;
void throw_strange() {
  ++handler_calls, throw Strange();
}
void give_up_third_time() {
  if (++handler_calls == 3) std::set_new_handler(nullptr);
}

// What came of a call: a block, null, bad_alloc, what the handler threw.
enum Outcome { kBlock, kNull, kBadAlloc, kStrange, kOther };

template <class Call>
Outcome outcome(Call call) {
  try {
    void* block = call();
    return block == nullptr ? kNull : kBlock;
  } catch (const std::bad_alloc&) {
    return kBadAlloc;
  } catch (const Strange&) {
    return kStrange;
  } catch (...) {
    return kOther;
  }
}

// The eight forms of new, by number: bit 0 array, bit 1 nothrow, bit 2 aligned.
void* make(int form, size_t n, size_t alignment) {
  const auto align = static_cast<std::align_val_t>(alignment);
  switch (form) {
    case 0:
      return ::operator new(n);
    case 1:
      return ::operator new[](n);
    case 2:
      return ::operator new(n, std::nothrow);
    case 3:
      return ::operator new[](n, std::nothrow);
    case 4:
      return ::operator new(n, align);
    case 5:
      return ::operator new[](n, align);
    case 6:
      return ::operator new(n, align, std::nothrow);
    default:
      return ::operator new[](n, align, std::nothrow);
  }
}

// The forms of delete that fit: of three kinds each (plain, sized, nothrow).
void unmake(int form, int kind, void* block, size_t n, size_t alignment) {
  const auto align = static_cast<std::align_val_t>(alignment);
  const bool array = (form & 1) != 0;
  if ((form & 4) == 0) {
    if (kind == 0) return array ? ::operator delete[](block) : ::operator delete(block);
    if (kind == 1) return array ? ::operator delete[](block, n) : ::operator delete(block, n);
    return array ? ::operator delete[](block, std::nothrow) : ::operator delete(block, std::nothrow);
  }
  if (kind == 0) return array ? ::operator delete[](block, align) : ::operator delete(block, align);
  if (kind == 1) return array ? ::operator delete[](block, n, align) : ::operator delete(block, n, align);
  return array ? ::operator delete[](block, align, std::nothrow)
               : ::operator delete(block, align, std::nothrow);
}

void test_operators() {
  for (int form = 0; form < 8; ++form) {
    const size_t alignment = form < 4 ? 16 : 128;
    for (int kind = 0; kind < 3; ++kind) {
      for (size_t n : kSizes) {
        void* block = make(form, n, alignment);
        CHECK_AT(block != nullptr && is_aligned(block, alignment) && malloc_usable_size(block) >= n, n);
        memset(block, 1, n);
        unmake(form, kind, block, n, alignment);
      }
      unmake(form, kind, nullptr, 8, alignment);
    }
  }
}

void test_operator_failures() {
  for (int form = 0; form < 8; ++form) {
    const auto at = static_cast<size_t>(form);
    const bool quiet = (form & 2) != 0;
    for (size_t n : kTooLarge) {
      if (!ours && form >= 4 && n > SIZE_MAX - 64) continue;  // libstdc++ 12 rounds up to 0
      const auto call = [&] { return make(form, hidden(n), 64); };
      CHECK_AT(outcome(call) == (quiet ? kNull : kBadAlloc), at);

      handler_calls = 0;
      std::set_new_handler(throw_strange);
      CHECK_AT(outcome(call) == (quiet ? kNull : kStrange) && handler_calls == 1, at);
      CHECK_AT(std::get_new_handler() == throw_strange, at);

      handler_calls = 0;
      std::set_new_handler(give_up_third_time);
      CHECK_AT(outcome(call) == (quiet ? kNull : kBadAlloc) && handler_calls == 3, at);
      std::set_new_handler(nullptr);
    }
  }
  // The expressions; the compiler may drop one whose result is not used.
  constexpr size_t kMany = SIZE_MAX / 16;  // 1 GiB with 32 bits
  if (sizeof(size_t) == 8)
    CHECK(outcome([] { return hidden(new (std::nothrow) int[hidden(kMany)]); }) == kNull);
  CHECK(outcome([] { return hidden(new char[hidden(size_t{PTRDIFF_MAX})]); }) == kBadAlloc);
}

}  // namespace

int main() {
  begin();
  test_operators();
  test_operator_failures();
  return end();
}
