// A program to look at. It prints "ready" and does what its first argument says until its input ends.
#include <dlfcn.h>
#include <fcntl.h>
#include <hummock/hummock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

// The library is preloaded.
#pragma weak hummock_tag
#pragma weak hummock_heap_create
#pragma weak hummock_heap_malloc
#pragma weak hummock_heap_set_name
#pragma weak hummock_space_create

namespace {

std::atomic<bool> ended{false};

void say_ready() {
  printf("ready\n");
  fflush(stdout);
}

void wait_for_end() {
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  ended = true;
}

// Blocks of many sizes that live for a while. Enough of them to leave the fast path often.
void churn(unsigned seed) {
  std::vector<void*> live(4000);
  while (!ended) {
    for (int i = 0; i < 2000; ++i) {
      seed = seed * 1103515245 + 12345;
      void*& one = live[(seed >> 8) % live.size()];
      free(one);
      one = malloc(16 + (seed >> 4) % 3000);
      if (one != nullptr) memset(one, 1, 16);
    }
    usleep(1000);
  }
  for (void* each : live) free(each);
}

// What a program does that is to be hard to look at: it starts threads, forks, throws, loads and unloads a
// library that allocates (where the environment names one).
void fork_and_throw() {
  const char* plugin = getenv("OBSERVE_PLUGIN");
  while (!ended) {
    void* library = plugin != nullptr ? dlopen(plugin, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if ((library == nullptr) != (plugin == nullptr)) abort();
    const pid_t child = fork();
    if (child == 0) {
      free(malloc(1 << 20));
      _exit(0);
    }
    if (child > 0) waitpid(child, nullptr, 0);
    try {
      throw std::vector<int>(1000);
    } catch (const std::vector<int>&) {
    }
    std::thread([] { free(malloc(70000)); }).join();
    if (library != nullptr) dlclose(library);
  }
}

void run_threads(unsigned count) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) threads.emplace_back(churn, i + 1);
  threads.emplace_back(fork_and_throw);
  say_ready();
  wait_for_end();
  for (std::thread& each : threads) each.join();
}

// Holds what the second argument says, and makes no further call but the one that answers.
void hold(size_t count, size_t size) {
  std::vector<void*> blocks(count);
  for (void*& each : blocks) each = memset(malloc(size), 1, size);
  say_ready();
  while (!ended) {
    char byte;
    if (read(0, &byte, 1) <= 0) break;
    // Each byte of input: some calls that leave the fast path.
    for (int i = 0; i < 50; ++i) free(malloc((200 << 10) + (i << 17)));
  }
  for (void* each : blocks) free(each);
}

// What it frees first stays, and then it rests.
void leave_free(size_t mib) {
  std::vector<void*> blocks(mib);
  for (void*& each : blocks) each = memset(malloc(1 << 20), 1, 1 << 20);
  for (void* each : blocks) free(each);
  say_ready();
  wait_for_end();
}

// A heap with a name, a space, tags, and some thousand slow calls to be timed.
void name_things() {
  hummock_heap_t* heap = hummock_heap_create();
  hummock_heap_set_name(heap, "requests");
  for (int i = 0; i < 1000; ++i) hummock_heap_malloc(heap, 1000);
  hummock_space_options_t options = {};
  options.size = sizeof options;
  options.name = "orders";
  options.initial = 1 << 20;
  hummock_space_create(&options, nullptr);
  std::vector<void*> blocks;
  blocks.reserve(1 << 20);  // else it draws, too
  for (uint32_t tag : {0, 17, 18, 0}) {
    hummock_tag(tag);
    for (unsigned i = 0; i < 10000 * (tag + 1); ++i) blocks.push_back(malloc(100));
  }
  std::thread worker(churn, 1);
  say_ready();
  wait_for_end();
  worker.join();
}

// Bursts of 440 MiB in changing sizes, each freed.
int burst() {
  unsigned seed = 1;
  for (int round = 0; round < 12; ++round) {
    const unsigned most = round % 3 == 0 ? 800 : round % 3 == 1 ? 9000 : 400000;
    std::vector<void*> blocks;
    for (size_t bytes = 0; bytes < size_t{440} << 20;) {
      seed = seed * 1103515245 + 12345;
      const size_t size = 600 + (seed >> 8) % most * 2;
      void* block = malloc(size);
      if (block == nullptr) break;
      blocks.push_back(memset(block, 1, size));
      bytes += size;
    }
    for (void* each : blocks) free(each);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "churn";
  const size_t number = count > 2 ? strtoull(arguments[2], nullptr, 10) : 1;
  if (strcmp(what, "threads") == 0) {
    run_threads(static_cast<unsigned>(number));
  } else if (strcmp(what, "hidden") == 0) {  // as a program is that has changed its user
    prctl(PR_SET_DUMPABLE, 0);
    run_threads(1);
  } else if (strcmp(what, "hold") == 0) {
    hold(number, count > 3 ? strtoull(arguments[3], nullptr, 10) : 1000);
  } else if (strcmp(what, "leave_free") == 0) {
    leave_free(number);
  } else if (strcmp(what, "names") == 0) {
    name_things();
  } else if (strcmp(what, "idle") == 0) {
    say_ready();
    wait_for_end();
  } else if (strcmp(what, "fork") == 0) {
    const pid_t child = fork();
    std::thread worker(churn, 1);
    if (child > 0) printf("%d\n", child);
    if (child > 0) say_ready();
    wait_for_end();
    worker.join();
    if (child > 0) waitpid(child, nullptr, 0);
  } else if (strcmp(what, "crew") == 0) {  // a server that forks its workers before they have work
    for (size_t i = 0; i < number; ++i) {
      if (fork() == 0) wait_for_end(), _exit(0);
    }
    std::thread worker(churn, 1);
    say_ready();
    wait_for_end();
    worker.join();
  } else if (strcmp(what, "pages") == 0) {  // what is no page of figures, under its name
    const char page[8] = {};
    for (size_t i = 0; i < number; ++i) {
      // Half of them behind the page, which stands above 500.
      const int fd = fcntl(memfd_create("hummock", MFD_ALLOW_SEALING), F_DUPFD, i % 2 == 0 ? 3 : 600);
      if (ftruncate(fd, 1 << 16) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0 ||
          pwrite(fd, page, sizeof page, 0) != sizeof page)
        abort();
    }
    say_ready();
    wait_for_end();
  } else if (strcmp(what, "close") == 0) {  // as daemons do
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    std::thread worker(churn, 1);
    say_ready();
    wait_for_end();
    worker.join();
  }
  return strcmp(what, "burst") == 0 ? burst() : 0;
}
