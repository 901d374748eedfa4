// What this layer needs of the system. The os layer defines it.
#ifndef HUMMOCK_BASE_SYSTEM_H
#define HUMMOCK_BASE_SYSTEM_H

#include <stddef.h>

namespace hummock::base {

// Writes to a descriptor (1 and 2 exist everywhere) in one call if it can. Keeps errno; false: some of the
// text is lost. Takes no lock of ours.
bool write_text(int fd, const char* text, size_t length);

// To be called before the first text: where standard error is closed at start, its number becomes that of a
// file that the program opens, and nothing of ours may be in there.
void note_standard_error();

// Ends the process at once, as a crash: for a heap that cannot go on.
[[noreturn]] void stop();
// The same where no handler of the program's may run first.
[[noreturn]] void stop_here();

// Ends the process with this status and without ado: no handler of exit runs.
[[noreturn]] void leave(int status);

// The process's NAME=value strings up to a null pointer; null when there are none.
const char* const* environment();

// Options that the program brings along, null when it has none; and what people know them by.
const char* program_conf();
const char* program_conf_name();

}  // namespace hummock::base

#endif  // HUMMOCK_BASE_SYSTEM_H
