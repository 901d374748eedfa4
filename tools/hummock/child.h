// A program that is run for the user: it gets the signals that the tool gets.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace hummock::tool {

// Memory for what such programs write: a memfd whose length nobody can change, so that nobody can end the
// others by cutting it. -1 and errno.
int make_memory(const char* name, std::size_t size);

// This process becomes the program at `path` with these words as its arguments. A path without a slash is
// looked for in PATH. Returns when it cannot, with errno.
void exec(const std::string& path, const std::vector<std::string>& words);

// What the others write into a pipe until the last of them has closed it; then this end is closed.
std::string read_pipe(int end);

// Waits for the child's end, whatever signals come. What waitpid said.
int wait_for(pid_t child);

// The terminal sends its signals to the program as well; others are passed on.
void pass_signals_to(pid_t child);

// Calls the handler at SIGINT, SIGTERM and SIGHUP, of those that are not ignored: under nohup, or in a
// background job of a script, they stay so.
void catch_ends(void (*handler)(int));

// What waitpid said, as an exit status. A line on standard error says of a signal.
int exit_status(const char* command, int raw);

}  // namespace hummock::tool
