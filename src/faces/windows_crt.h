// The malloc family and the operators of the process's C run times (msvcrt.dll, ucrtbase.dll), served here.
#ifndef HUMMOCK_FACES_WINDOWS_CRT_H
#define HUMMOCK_FACES_WINDOWS_CRT_H

namespace hummock::faces {

// When hummock.exe has asked for it: serves those that are loaded, and such as will be, and tells it what
// came of it. Before the program's own code runs.
void serve_runtimes();

}  // namespace hummock::faces

#endif  // HUMMOCK_FACES_WINDOWS_CRT_H
