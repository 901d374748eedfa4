// Programs of known leaks: the first argument says which. "grow" goes on until its input ends.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

#define OWN_FRAME __attribute__((noinline, noclone))

struct Node {
  Node* next;
  char text[40];
};

char* volatile kept;
void* volatile sink;
thread_local Node* volatile of_thread;  // else it is not there at all, as nobody reads it

OWN_FRAME void* leak_here(size_t size) {
  void* block = malloc(size);
  memset(block, 1, size);
  asm volatile("" : "+r"(block));
  return block;
}

OWN_FRAME void* keep_here(size_t size) {
  void* block = calloc(1, size);
  asm volatile("" : "+r"(block));
  return block;
}

OWN_FRAME void* hang_here(size_t size) {
  void* block = calloc(1, size);
  asm volatile("" : "+r"(block));
  return block;
}

// What it held on its stack is overwritten.
OWN_FRAME void wipe() {
  char area[16384];
  memset(area, 0, sizeof area);
  asm volatile("" : : "r"(area) : "memory");
}

OWN_FRAME void lose(int count, size_t size) {
  for (int i = 0; i < count; ++i) sink = leak_here(size);
  sink = nullptr;
}

OWN_FRAME void lose_list() {
  auto* head = static_cast<Node*>(leak_here(sizeof(Node)));
  head->next = nullptr;
  for (int i = 0; i < 4; ++i) {
    auto* node = static_cast<Node*>(hang_here(sizeof(Node)));
    node->next = head->next;
    head->next = node;
  }
}

OWN_FRAME void lose_ring() {
  auto* a = static_cast<Node*>(leak_here(sizeof(Node)));
  auto* b = static_cast<Node*>(leak_here(sizeof(Node)));
  a->next = b;
  b->next = a;
}

// Freed memory has the only pointer.
OWN_FRAME void lose_behind_freed() {
  auto* node = static_cast<Node*>(malloc(sizeof(Node)));
  node->next = nullptr;
  void* lost = leak_here(77);
  memcpy(node->text + 16, &lost, sizeof lost);
  free(node);
}

std::mutex mutex;
std::condition_variable& changed = *new std::condition_variable;  // its end would wait for the threads
int ready;

// Waits for ever with blocks on its stack and in its thread's own storage.
OWN_FRAME void hold() {
  void* volatile block = keep_here(100);
  of_thread = static_cast<Node*>(keep_here(sizeof(Node)));
  std::unique_lock<std::mutex> lock(mutex);
  ++ready;
  changed.notify_all();
  changed.wait(lock, [] { return ready < 0; });
  sink = block;
}

void hold_in_threads() {
  for (int i = 0; i < 3; ++i) std::thread(hold).detach();
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [] { return ready == 3; });
}

std::map<int, std::string>* table;
std::vector<void*>* list;

void fill_containers() {
  table = new std::map<int, std::string>;
  for (int i = 0; i < 100; ++i) (*table)[i] = std::string(100, 'x');
  list = new std::vector<void*>;
  for (int i = 0; i < 50; ++i) list->push_back(keep_here(200));
}

// What answers requests from outside is beside the fast path.
void grow() {
  kept = static_cast<char*>(keep_here(5000));
  puts("ready");
  fflush(stdout);
  std::thread([] {
    while (getchar() != EOF) {
    }
    _exit(0);
  }).detach();
  for (size_t i = 0;; ++i) {
    lose(1, 1000);
    free(hang_here(2000));
    free(malloc((200 << 10) + (i % 20 << 17)));
    usleep(500);
  }
}

}  // namespace

int main(int, char** arguments) {
  const std::string which = arguments[1];
  if (which == "plain") lose(10, 100);
  if (which == "large") lose(3, 1 << 20);
  if (which == "huge") lose(1, 64 << 20);
  if (which == "list") lose_list();
  if (which == "ring") lose_ring();
  if (which == "freed") lose_behind_freed();
  if (which == "interior") kept = static_cast<char*>(keep_here(1000)) + 500;
  if (which == "threads") hold_in_threads();
  if (which == "containers") fill_containers();
  if (which == "grow") grow();
  if (which == "mixed") {
    kept = static_cast<char*>(keep_here(5000));
    lose(7, 48);
    fill_containers();
  }
  wipe();
  exit(arguments[2] != nullptr ? atoi(arguments[2]) : 0);
}
