// Another program in a process of its own, on whatever malloc this one has: what is preloaded is passed on.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

class Run;

// A folder for a run's files; the program's working directory while it exists.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  // Writes a file in it.
  static void write(const char* name, const char* text, size_t length);

 private:
  char path_[256];
};

struct ChildUse {
  double seconds;
  double cpu_seconds;
  double system_seconds;  // part of it
  size_t peak_bytes;
  uint64_t minor_faults;
  uint64_t major_faults;
};

// Is there such a program on PATH?
bool is_installed(const char* program);

enum class Preload { kKeep, kDrop };

// Starts it with its standard input from a file (null: nothing) and its output to nowhere. What is preloaded
// here is preloaded there, too, unless it is dropped.
pid_t start_child(const char* const* arguments, const char* input, Preload preload = Preload::kKeep);
// Waits until it ends, with a look at the memory of `watched` (0: of none) now and then; ends this program
// when it went wrong. `started` is when the time began.
ChildUse wait_for_child(pid_t child, const char* name, uint64_t started, Run& run, pid_t watched);
// Both, watched.
ChildUse run_child(Run& run, const char* const* arguments, const char* input = nullptr);
