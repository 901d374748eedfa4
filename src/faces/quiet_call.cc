// The one file that is compiled with exceptions.
#include "faces/quiet_call.h"

// The functions that compiled code calls to catch. Weak: an exception in flight shows that there is a C++ run
// time, and a program without one never gets this far.
__asm__(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch\n");
extern "C" __attribute__((weak)) char __gxx_personality_v0[];

namespace hummock::faces {

bool runs_quietly(std::new_handler help) noexcept {
  if (__gxx_personality_v0 == nullptr) return false;
  try {
    help();
    return true;
  } catch (...) {
    return false;
  }
}

void* calls_quietly(void* (*replaced)(size_t), size_t size) noexcept {
  try {
    return replaced(size);
  } catch (...) {
    return nullptr;
  }
}

void* calls_quietly(void* (*replaced)(size_t, std::align_val_t), size_t size,
                    std::align_val_t alignment) noexcept {
  try {
    return replaced(size, alignment);
  } catch (...) {
    return nullptr;
  }
}

}  // namespace hummock::faces
