// Start and end of the library on Windows, shared by the DLLs.
#ifndef HUMMOCK_FACES_WINDOWS_START_H
#define HUMMOCK_FACES_WINDOWS_START_H

#include <stddef.h>

namespace hummock::faces {

// Asks for large pages as the options say, once more if need be, notes the outcome in the log, and takes
// what huge_reserve wants if nothing was taken yet.
void enable_large_pages();

// For the summary: a request to give memory back, which gave so much.
void note_flush(size_t bytes);

}  // namespace hummock::faces

#endif  // HUMMOCK_FACES_WINDOWS_START_H
