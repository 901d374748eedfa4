// What becomes of memory that a program frees: takes 400 MB in small blocks, frees all but one in 10,000,
// idles, works a little. Prints the seconds and its resident MiB ten times a second.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

const Clock::time_point begin = Clock::now();

double seconds() {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void print_resident() {
  static double next = 0;
  if (seconds() < next) return;
  next = seconds() + 0.1;
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == nullptr || fscanf(file, "%*s %ld", &pages) != 1) abort();
  fclose(file);
  printf("%.2f %.1f\n", seconds(),
         static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1048576);
  fflush(stdout);
}

void* make(size_t size) {
  void* block = malloc(size);
  if (block == nullptr) abort();
  return memset(block, 1, size);
}

void work_and_wait(double until) {
  while (seconds() < until) {
    for (size_t i = 0; i < 100; ++i) free(make(16 + i * 10));
    print_resident();
    usleep(50000);
  }
}

}  // namespace

int main() {
  constexpr size_t kTotal = 400u << 20;
  std::vector<void*> blocks;
  blocks.reserve(1000000);
  print_resident();
  size_t size = 64;
  for (size_t taken = 0; taken < kTotal; taken += size) {
    size = 64 + (size * 7919 + 13) % 960;
    blocks.push_back(make(size));
    if (blocks.size() % 10000 == 0) print_resident();
  }
  work_and_wait(seconds() + 0.5);
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i % 10000 != 0) free(blocks[i]);
  std::vector<void*>().swap(blocks);  // what is kept needs no list
  print_resident();
  work_and_wait(seconds() + 4.1);
}
