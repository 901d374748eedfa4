// What a piece of a test writes to standard error, and how it ends when it should die.
#ifndef HUMMOCK_TESTS_CAPTURE_H
#define HUMMOCK_TESTS_CAPTURE_H

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace support {

// `act` must not write more than a pipe holds, 64 KiB.
template <class Act>
std::string standard_error_of(Act act) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int saved = dup(2);
  dup2(ends[1], 2);
  act();
  dup2(saved, 2);
  close(saved);
  close(ends[1]);
  std::string all;
  char piece[4096];
  for (ssize_t n; (n = read(ends[0], piece, sizeof(piece))) > 0;) all.append(piece, static_cast<size_t>(n));
  close(ends[0]);
  return all;
}

struct Ending {
  std::string said;
  bool aborted;  // else it went on to the end
};

// Runs `act` in a child of its own.
template <class Act>
Ending ending_of(Act act) {
  int status = -1;
  std::string said = standard_error_of([&] {
    const pid_t child = fork();
    if (child == 0) {
      alarm(600);
      // An emulator adds a line of its own when a program dies: by then standard error is closed. Once
      // this returns, abort() goes on and ends the process by the signal.
      signal(SIGABRT, [](int) { close(2); });
      act();
      _exit(0);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
  });
  const bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  const bool went_on = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  INFO(said);
  CHECK((aborted || went_on));
  return {std::move(said), aborted};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace support

#endif  // HUMMOCK_TESTS_CAPTURE_H
