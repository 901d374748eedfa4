// Files that the tool and its programs write for the user.
#pragma once

#include <string>
#include <vector>

namespace hummock::tool {

// Why a log, a profile or another result does not go into a file that is there, because it seems to be a
// program: "is executable, and is not written over". Empty: it may, or there is no file.
std::string not_written_over(const std::string& path);

// Throws where one of these files cannot be written or is a program: before anything runs, not after it.
// Empty names count for nothing, nothing is created, and what is there stays.
void check_writable(const std::vector<std::string>& paths);

// Writes the whole file anew. Throws std::runtime_error when it cannot be written.
void write_text(const std::string& path, const std::string& text);

// Takes those of the numbers 0, 1 and 2 whose file is closed, or the next file that is opened would be read
// or written as a standard stream. To use them stays an error, and programs that are executed have them
// closed.
void guard_standard_streams();

}  // namespace hummock::tool
