// Every replaceable C++ operator new and delete.
//
// As the standard asks, each form does what the form it is defined by does: new[] calls new, a nothrow
// form its throwing one, a sized or aligned array delete the plain one. So a program that replaces only
// operator new(size_t) and operator delete(void*) meets its own two everywhere. When nothing is
// replaced (one comparison tells), a form goes to the heap by itself and checks all that it was told.
//
// The definitions are weak, as in the compilers' own libraries: in a static program its own win.
#include <stddef.h>
#include <stdint.h>

#include <new>

#include "base/message.h"
#include "faces/cxx_runtime.h"
#include "faces/family.h"
#include "faces/quiet_call.h"
#include "heap/allocate.h"
#include "heap/attach.h"
#include "heap/release.h"
#include "hummock/hummock.h"
#include "modes/checked.h"

// How size_t is written in mangled names.
#ifdef __LP64__
#define HUMMOCK_SIZE_CODE "m"
#else
#define HUMMOCK_SIZE_CODE "j"
#endif

#define HUMMOCK_OPERATOR HUMMOCK_EXPORT __attribute__((weak))

// clang does not declare them by itself.
void operator delete[](void* block, size_t size) noexcept;
void operator delete[](void* block, size_t size, std::align_val_t alignment) noexcept;

// Ours under a name nobody can replace.
#define HUMMOCK_OURS(mangled) __attribute__((visibility("hidden"), alias(mangled)))
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-attributes"  // only their addresses are used
#endif
extern "C" {
HUMMOCK_OURS("_Znw" HUMMOCK_SIZE_CODE) void* hummock_our_new(size_t);
HUMMOCK_OURS("_Zna" HUMMOCK_SIZE_CODE) void* hummock_our_new_array(size_t);
HUMMOCK_OURS("_Znw" HUMMOCK_SIZE_CODE "St11align_val_t")
void* hummock_our_aligned_new(size_t, std::align_val_t);
HUMMOCK_OURS("_Zna" HUMMOCK_SIZE_CODE "St11align_val_t")
void* hummock_our_aligned_new_array(size_t, std::align_val_t);
HUMMOCK_OURS("_ZdlPv") void hummock_our_delete(void*) noexcept;
HUMMOCK_OURS("_ZdaPv") void hummock_our_delete_array(void*) noexcept;
HUMMOCK_OURS("_Zna" HUMMOCK_SIZE_CODE "RKSt9nothrow_t")
void* hummock_our_quiet_new_array(size_t, const std::nothrow_t&) noexcept;
HUMMOCK_OURS("_Zna" HUMMOCK_SIZE_CODE "St11align_val_tRKSt9nothrow_t")
void* hummock_our_quiet_aligned_new_array(size_t, std::align_val_t, const std::nothrow_t&) noexcept;
HUMMOCK_OURS("_ZdaPv" HUMMOCK_SIZE_CODE) void hummock_our_sized_delete_array(void*, size_t) noexcept;
HUMMOCK_OURS("_ZdaPv" HUMMOCK_SIZE_CODE "St11align_val_t")
void hummock_our_sized_aligned_delete_array(void*, size_t, std::align_val_t) noexcept;
HUMMOCK_OURS("_ZdlPvSt11align_val_t") void hummock_our_aligned_delete(void*, std::align_val_t) noexcept;
HUMMOCK_OURS("_ZdaPvSt11align_val_t") void hummock_our_aligned_delete_array(void*, std::align_val_t) noexcept;
}
#ifndef __clang__
#pragma GCC diagnostic pop
#endif

namespace {

using namespace hummock;
using base::Line;
using faces::CxxSymbol;
using faces::find_cxx;

using New = void*(size_t);
using AlignedNew = void*(size_t, std::align_val_t);
using Delete = void(void*) noexcept;
using AlignedDelete = void(void*, std::align_val_t) noexcept;
using QuietNew = void*(size_t, const std::nothrow_t&) noexcept;
using QuietAlignedNew = void*(size_t, std::align_val_t, const std::nothrow_t&) noexcept;
using SizedDelete = void(void*, size_t) noexcept;
using SizedAlignedDelete = void(void*, size_t, std::align_val_t) noexcept;

// Not marked as one that does not return: gcc for ARM keeps no registers of the caller in such a function,
// and whoever catches needs them. Returns where there is no C++ run time.
void throw_bad_alloc() {
  void* type = find_cxx(CxxSymbol::bad_alloc_type);
  void* table = find_cxx(CxxSymbol::bad_alloc_table);
  auto* end = find_cxx<void(void*)>(CxxSymbol::bad_alloc_end);
  auto* allocate = find_cxx<void*(size_t)>(CxxSymbol::allocate_exception);
  auto* raise = find_cxx<void(void*, void*, void (*)(void*))>(CxxSymbol::throw_exception);
  if (type != nullptr && table != nullptr && end != nullptr && allocate != nullptr && raise != nullptr) {
    void** exception = static_cast<void**>(allocate(sizeof(void*)));  // a bad_alloc is its table pointer
    *exception = static_cast<void**>(table) + 2;  // past the two words before the functions
    raise(exception, type, end);
  }
}

std::new_handler handler() {
  auto* get = find_cxx<std::new_handler()>(CxxSymbol::get_new_handler);
  return get == nullptr ? nullptr : get();
}

// `alignment` 0: that of every block.
void* attempt(size_t alignment, size_t size) {
  return alignment == 0 ? heap::allocate<heap::allocate_medium_new>(size)
                        : faces::c23_aligned(alignment, size);
}

// The loop of [new.delete.single]: the handler may free memory, throw, or not return.
__attribute__((noinline, cold)) void* insist(size_t alignment, size_t size) {
  for (;;) {
    const std::new_handler help = handler();
    if (help == nullptr) {
      throw_bad_alloc();
      base::die(Line() << "operator new(" << size
                       << ") failed, and there is no C++ run time to throw bad_alloc");
    }
    help();
    if (void* block = attempt(alignment, size)) return block;
  }
}

// The same for the nothrow forms. No exception is made only to be caught here.
__attribute__((noinline, cold)) void* insist_quietly(size_t alignment, size_t size) noexcept {
  for (;;) {
    const std::new_handler help = handler();
    if (help == nullptr || !faces::runs_quietly(help)) return nullptr;
    if (void* block = attempt(alignment, size)) return block;
  }
}

inline void* take(size_t size) {
  void* block = heap::allocate<heap::allocate_medium_new>(size);
  return __builtin_expect(block != nullptr, 1) ? block : insist(0, size);
}

inline bool is_checked(void* block) noexcept {
  return __builtin_expect(!relaxed(heap::is_plain), 0) && block != nullptr && heap::is_checked();
}

// Has the program none of the array forms of its own? One alone may call new, or delete, and its counterpart
// here would take the block for one of the wrong kind.
__attribute__((noinline, cold)) bool arrays_are_ours() noexcept {
  New* make = &::operator new[];
  QuietNew* make_quietly = &::operator new[];
  Delete* end = &::operator delete[];
  SizedDelete* end_sized = &::operator delete[];
  AlignedNew* make_aligned = &::operator new[];
  QuietAlignedNew* make_aligned_quietly = &::operator new[];
  AlignedDelete* end_aligned = &::operator delete[];
  SizedAlignedDelete* end_sized_aligned = &::operator delete[];
  return make == hummock_our_new_array && make_quietly == hummock_our_quiet_new_array &&
         end == hummock_our_delete_array && end_sized == hummock_our_sized_delete_array &&
         make_aligned == hummock_our_aligned_new_array &&
         make_aligned_quietly == hummock_our_quiet_aligned_new_array &&
         end_aligned == hummock_our_aligned_delete_array &&
         end_sized_aligned == hummock_our_sized_aligned_delete_array;
}

// Checked mode tells new[] from new, and so delete[] from delete.
inline void* array(void* block) noexcept {
  if (is_checked(block) && arrays_are_ours()) modes::checked::note_array(block);
  return block;
}

inline void end_array(void* block) noexcept {
  if (is_checked(block) && arrays_are_ours()) modes::checked::expect_array(block);
}

// The heap tells checked mode of operator new itself, but of an aligned block no more than its alignment.
inline void* one_aligned(void* block) noexcept {
  if (is_checked(block)) modes::checked::note_one(block);
  return block;
}

inline void* take_aligned(size_t size, std::align_val_t alignment) {
  const size_t align = static_cast<size_t>(alignment);
  void* block = faces::c23_aligned(align, size);
  return one_aligned(__builtin_expect(block != nullptr, 1) ? block : insist(align, size));
}

inline void* take_quietly(size_t size) noexcept {
  void* block = heap::allocate<heap::allocate_medium_new>(size);
  return __builtin_expect(block != nullptr, 1) ? block : insist_quietly(0, size);
}

inline void* take_aligned_quietly(size_t size, std::align_val_t alignment) noexcept {
  const size_t align = static_cast<size_t>(alignment);
  void* block = faces::c23_aligned(align, size);
  return one_aligned(__builtin_expect(block != nullptr, 1) ? block : insist_quietly(align, size));
}

inline void release_aligned(void* block, std::align_val_t alignment) noexcept {
  const size_t align = static_cast<size_t>(alignment);
  if (!faces::is_power_of_two(align) || (reinterpret_cast<uintptr_t>(block) & (align - 1)) != 0) {
    base::die(Line() << "operator delete(" << block << ", align " << align
                     << "): the block was not allocated with this alignment");
  }
  if (is_checked(block)) modes::checked::expect_aligned(block, align);
  heap::release<heap::release_slow_delete>(block);
}

}  // namespace

// ---- new ----------------------------------------------------------------------------------------

HUMMOCK_OPERATOR void* operator new(size_t size) {
  return take(size);
}

HUMMOCK_OPERATOR void* operator new[](size_t size) {
  New* one = &::operator new;
  return one == hummock_our_new ? array(take(size)) : one(size);
}

HUMMOCK_OPERATOR void* operator new(size_t size, const std::nothrow_t&) noexcept {
  New* one = &::operator new;
  return one == hummock_our_new ? take_quietly(size) : faces::calls_quietly(one, size);
}

HUMMOCK_OPERATOR void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  New* one = &::operator new;
  New* many = &::operator new[];
  if (many != hummock_our_new_array) return faces::calls_quietly(many, size);
  return one == hummock_our_new ? array(take_quietly(size)) : faces::calls_quietly(one, size);
}

HUMMOCK_OPERATOR void* operator new(size_t size, std::align_val_t alignment) {
  return take_aligned(size, alignment);
}

HUMMOCK_OPERATOR void* operator new[](size_t size, std::align_val_t alignment) {
  AlignedNew* one = &::operator new;
  return one == hummock_our_aligned_new ? array(take_aligned(size, alignment)) : one(size, alignment);
}

HUMMOCK_OPERATOR void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  AlignedNew* one = &::operator new;
  return one == hummock_our_aligned_new ? take_aligned_quietly(size, alignment)
                                        : faces::calls_quietly(one, size, alignment);
}

HUMMOCK_OPERATOR void* operator new[](size_t size, std::align_val_t alignment,
                                      const std::nothrow_t&) noexcept {
  AlignedNew* one = &::operator new;
  AlignedNew* many = &::operator new[];
  if (many != hummock_our_aligned_new_array) return faces::calls_quietly(many, size, alignment);
  return one == hummock_our_aligned_new ? array(take_aligned_quietly(size, alignment))
                                        : faces::calls_quietly(one, size, alignment);
}

// ---- delete -------------------------------------------------------------------------------------

HUMMOCK_OPERATOR void operator delete(void* block) noexcept {
  heap::release<heap::release_slow_delete>(block);
}

HUMMOCK_OPERATOR void operator delete[](void* block) noexcept {
  Delete* one = &::operator delete;
  if (one != hummock_our_delete) return one(block);
  end_array(block);
  heap::release<heap::release_slow_delete>(block);
}

HUMMOCK_OPERATOR void operator delete(void* block, const std::nothrow_t&) noexcept {
  ::operator delete(block);
}

HUMMOCK_OPERATOR void operator delete[](void* block, const std::nothrow_t&) noexcept {
  ::operator delete[](block);
}

HUMMOCK_OPERATOR void operator delete(void* block, size_t size) noexcept {
  Delete* one = &::operator delete;
  if (one != hummock_our_delete) return one(block);
  faces::release_sized(block, size);
}

HUMMOCK_OPERATOR void operator delete[](void* block, size_t size) noexcept {
  Delete* one = &::operator delete;
  Delete* array = &::operator delete[];
  if (array != hummock_our_delete_array) return array(block);
  if (one != hummock_our_delete) return one(block);
  end_array(block);
  faces::release_sized(block, size);
}

HUMMOCK_OPERATOR void operator delete(void* block, std::align_val_t alignment) noexcept {
  release_aligned(block, alignment);
}

HUMMOCK_OPERATOR void operator delete[](void* block, std::align_val_t alignment) noexcept {
  AlignedDelete* one = &::operator delete;
  if (one != hummock_our_aligned_delete) return one(block, alignment);
  end_array(block);
  release_aligned(block, alignment);
}

HUMMOCK_OPERATOR void operator delete(void* block, std::align_val_t alignment,
                                      const std::nothrow_t&) noexcept {
  ::operator delete(block, alignment);
}

HUMMOCK_OPERATOR void operator delete[](void* block, std::align_val_t alignment,
                                        const std::nothrow_t&) noexcept {
  ::operator delete[](block, alignment);
}

HUMMOCK_OPERATOR void operator delete(void* block, size_t size, std::align_val_t alignment) noexcept {
  AlignedDelete* one = &::operator delete;
  if (one != hummock_our_aligned_delete) return one(block, alignment);
  faces::release_aligned_sized(block, static_cast<size_t>(alignment), size);
}

HUMMOCK_OPERATOR void operator delete[](void* block, size_t size, std::align_val_t alignment) noexcept {
  AlignedDelete* one = &::operator delete;
  AlignedDelete* array = &::operator delete[];
  if (array != hummock_our_aligned_delete_array) return array(block, alignment);
  if (one != hummock_our_aligned_delete) return one(block, alignment);
  end_array(block);
  faces::release_aligned_sized(block, static_cast<size_t>(alignment), size);
}
