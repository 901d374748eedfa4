// Files that the tool and its programs write for the user.
#pragma once

#include <string>

namespace hummock::tool {

// What of a file there says that it is a program, which nobody wants to be written over by a log or a
// profile: "is executable". Empty: nothing, or there is no file.
std::string looks_like_program(const std::string& path);

// Takes those of the numbers 0, 1 and 2 whose file is closed, or the next file that is opened would be read
// or written as a standard stream. To use them stays an error, and programs that are executed have them
// closed.
void guard_standard_streams();

}  // namespace hummock::tool
