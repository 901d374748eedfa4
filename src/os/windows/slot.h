// One word for each thread on Windows, read without a call: a slot of TlsAlloc that stands in the thread's
// environment block. (The compiler's own thread-local variables allocate on first use.)
#ifndef HUMMOCK_OS_WINDOWS_SLOT_H
#define HUMMOCK_OS_WINDOWS_SLOT_H

#include <stdint.h>

#define HUMMOCK_THREAD_POINTER(type, initial) ::hummock::os::ThreadPointer<type, initial>
#define HUMMOCK_HIDDEN

namespace hummock::os {

// Where the slot is in a thread's environment block; 0 while there is none, or when all slots that stand
// there were taken. Written once; atomic, relaxed: a late reader goes the long way.
extern uintptr_t slot_offset;

uintptr_t read_far_slot();  // 0 until somebody wrote
void write_slot(uintptr_t value);

// The word `offset` bytes into the thread's environment block.
__attribute__((always_inline)) inline uintptr_t thread_word(uintptr_t offset) {
  uintptr_t word;
#if defined(__x86_64__)
  __asm__ volatile("movq %%gs:(%1), %0" : "=r"(word) : "r"(offset));
#else
  __asm__ volatile("movl %%fs:(%1), %0" : "=r"(word) : "r"(offset));
#endif
  return word;
}

// The block's own address: no other live thread has it.
inline uintptr_t thread_address() {
  return thread_word(sizeof(void*) == 8 ? 0x30 : 0x18);
}

// The thread's processor: only a call tells.
inline unsigned processor(unsigned otherwise) {
  return otherwise;
}
inline void find_processor() {}

__attribute__((always_inline)) inline uintptr_t read_slot() {
  const uintptr_t offset = slot_offset;
  return __builtin_expect(offset != 0, true) ? thread_word(offset) : read_far_slot();
}

// A pointer that each thread has for itself, at first &Initial: the slot holds the distance from there, so
// that the 0 of a new thread is right. There is one in the library.
template <class T, T& Initial>
struct ThreadPointer {
  constexpr ThreadPointer(T*) {}
  __attribute__((always_inline)) operator T*() const {
    return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(&Initial) + read_slot());
  }
  T* operator->() const { return *this; }
  void operator=(T* value) {
    write_slot(reinterpret_cast<uintptr_t>(value) - reinterpret_cast<uintptr_t>(&Initial));
  }
};

}  // namespace hummock::os

#endif  // HUMMOCK_OS_WINDOWS_SLOT_H
