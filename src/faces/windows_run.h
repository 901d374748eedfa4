// What hummock.exe, which starts a program with hummock.dll in it, and the DLL tell each other: a mapping of
// this name with the process's number, made by the first before the DLL is loaded.
#ifndef HUMMOCK_FACES_WINDOWS_RUN_H
#define HUMMOCK_FACES_WINDOWS_RUN_H

#include <stdint.h>

namespace hummock::faces {

inline constexpr wchar_t kRunMapping[] = L"Local\\hummock-run-%lu";

struct WindowsRun {
  uint32_t size;      // of this, by hummock.exe; 0 or another: not of this version
  uint32_t users;     // the program's modules that take malloc from a run time that is served
  char served[200];   // names of those, with a blank between
  char refused[200];  // a run time that is not, and why; empty: none
};

}  // namespace hummock::faces

#endif  // HUMMOCK_FACES_WINDOWS_RUN_H
