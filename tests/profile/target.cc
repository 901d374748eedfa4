// Programs whose live memory is known, to be profiled. "known strings|buffers|threads END": allocates, prints
// the bytes that are live by function, and ends so: kill (by SIGKILL) or exit. "serve": the same again and
// again until its input ends. "hoard": blocks that are written, until somebody
// ends it. "lives": blocks that are freed at once, others after 20 ms. "fork N": as many
// children, each with known memory, that outlive no signal.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

#define OWN_FRAME __attribute__((noinline, noclone))

unsigned long long live_in_keep, live_in_grow;

OWN_FRAME void* keep(size_t size) {
  void* block = malloc(size);
  asm volatile("" : "+r"(block));
  __atomic_fetch_add(&live_in_keep, size, __ATOMIC_RELAXED);
  return block;
}

OWN_FRAME void* drop_soon(size_t size) {
  void* block = calloc(1, size);
  asm volatile("" : "+r"(block));
  return block;
}

OWN_FRAME void* grow(size_t size) {
  auto* block = static_cast<char*>(malloc(size / 4));
  for (size_t room = size / 2; room <= size; room *= 2) {
    block = static_cast<char*>(realloc(block, room));
    if (block != nullptr) memset(block, 1, 64);
  }
  asm volatile("" : "+r"(block));
  __atomic_fetch_add(&live_in_grow, size, __ATOMIC_RELAXED);
  return block;
}

// Many small blocks, most of which go again.
void strings(unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) {
    keep(20 + i % 300);
    free(drop_soon(500));
  }
}

// Large ones, that grow.
void buffers(unsigned rounds) {
  for (unsigned i = 0; i < rounds / 400; ++i) {
    grow(size_t{4096} << (i % 8));
    keep(70000 + 1000 * (i % 100));
    free(drop_soon(300000));
  }
}

void in_threads(unsigned rounds) {
  std::vector<std::thread> crew;
  for (unsigned t = 0; t < 4; ++t)
    crew.emplace_back([rounds] {
      strings(rounds / 4);
      buffers(rounds / 8);
    });
  for (std::thread& each : crew) each.join();
}

void run(const char* what, unsigned rounds) {
  if (strcmp(what, "strings") == 0) strings(rounds);
  if (strcmp(what, "buffers") == 0) buffers(rounds);
  if (strcmp(what, "threads") == 0) in_threads(rounds);
}

void say_live() {
  printf("{\"keep\": %llu, \"grow\": %llu}\n", live_in_keep, live_in_grow);
  fflush(stdout);
}

// Not only the fast path: what answers requests from outside is beside it.
void serve() {
  printf("ready\n");
  fflush(stdout);
  std::thread([] {
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    _exit(0);
  }).detach();
  std::list<void*> kept;
  for (unsigned i = 0;; ++i) {
    kept.push_back(keep(1000 + i % 5000));
    for (unsigned k = 0; k < 20; ++k) free(drop_soon(100 + k * 700));
    if (kept.size() > 20000) {
      free(kept.front());
      kept.pop_front();
    }
    if (i % 100 != 0) continue;
    for (size_t k = 0; k < 20; ++k) free(malloc((200 << 10) + (k << 17)));
    usleep(500);
  }
}

OWN_FRAME void* hold_for_a_while(size_t size) {
  void* block = malloc(size);
  asm volatile("" : "+r"(block));
  return block;
}

void lives() {
  std::vector<void*> held;
  for (unsigned i = 0; i < 20000; ++i) {
    held.push_back(hold_for_a_while(1000));
    free(drop_soon(1000));
    keep(100);
  }
  usleep(20000);
  for (void* each : held) free(each);
}

int fork_many(unsigned count) {
  std::vector<pid_t> children;
  for (unsigned i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      strings(50000);
      raise(SIGKILL);
    }
    children.push_back(child);
  }
  bool fine = true;
  for (const pid_t child : children) {
    int status = 0;
    fine = fine && waitpid(child, &status, 0) == child && WIFSIGNALED(status);
  }
  return fine ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "known") {
    run(arguments[2], 400000);
    say_live();
    if (strcmp(arguments[3], "kill") == 0) raise(SIGKILL);
    return 7;
  }
  if (what == "serve") serve();
  for (size_t i = 0; what == "hoard"; ++i) memset(keep(1000 + i % 3000), 1, 1000 + i % 3000);
  if (what == "lives") return lives(), 0;
  return what == "fork" ? fork_many(static_cast<unsigned>(atoi(arguments[2]))) : 2;
}
