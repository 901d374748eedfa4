// Something done in a child, and how the child ended.
#ifndef HUMMOCK_TESTS_SECURITY_CHILDREN_H
#define HUMMOCK_TESTS_SECURITY_CHILDREN_H

#include <signal.h>
#include <stddef.h>

namespace battery {

struct Ending {
  int code;          // -1: a signal ended it
  int signal;        // 0: it ended itself
  const char* text;  // what it wrote to standard error

  // With a message, by its own will.
  bool told() const { return signal == SIGABRT && text[0] != 0; }
};

// Runs work(argument) in a child that then exits with 0; one that hangs ends by SIGALRM.
Ending in_child(void (*work)(const void*), const void* argument);

template <class Work>
Ending in_child(const Work& work) {
  return in_child([](const void* w) { (*static_cast<const Work*>(w))(); }, &work);
}

// Zeroed memory that children share with their parent.
void* shared_memory(size_t size);

// No core files, of this process and its children.
void leave_no_cores();

}  // namespace battery

#endif  // HUMMOCK_TESTS_SECURITY_CHILDREN_H
