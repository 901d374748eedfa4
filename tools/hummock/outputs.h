// Files that the tool and its programs write for the user.
#pragma once

#include <string>

namespace hummock::tool {

// What of a file there says that it is a program, which nobody wants to be written over by a log or a
// profile: "is executable". Empty: nothing, or there is no file.
std::string looks_like_program(const std::string& path);

}  // namespace hummock::tool
