// Functions of other DLLs whose first instruction becomes a jump to ours.
#ifndef HUMMOCK_FACES_WINDOWS_DIVERT_H
#define HUMMOCK_FACES_WINDOWS_DIVERT_H

#include <stddef.h>
#include <stdint.h>
#include <windows.h>

namespace hummock::faces {

struct Diversion {
  unsigned char* function;
  void* target;
  uint64_t before;  // its first eight bytes as they were
  uint64_t jump;    // and as they become
};

// Makes ready what the jumps need, without changing a function yet. False: one cannot be diverted, and none
// is.
bool prepare(HMODULE module, Diversion* diversions, size_t count);

// Writes the jump, or what was there before, at once: a thread that comes there meets the one or the other.
void write_jump(const Diversion& diversion, bool jump);

}  // namespace hummock::faces

#endif  // HUMMOCK_FACES_WINDOWS_DIVERT_H
