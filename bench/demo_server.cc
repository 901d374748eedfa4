// A small server in one program: each thread keeps a table of objects of random sizes, replaces them at
// random, and passes some to its neighbour, who frees them. Prints one line of JSON.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kThreads = 8;
constexpr size_t kObjects = 20000;  // a thread
constexpr int kBatch = 1000;        // operations timed together

struct Random {
  uint64_t state;
  uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }
  size_t below(size_t n) { return next() % n; }
};

// Most objects are small, some are pages, a few are large.
size_t draw_size(Random& random) {
  const size_t kind = random.below(1000);
  if (kind < 900) return 16 + random.below(500);
  if (kind < 998) return 512 + random.below(8000);
  return 65536 + random.below(65536);
}

struct Mailbox {
  std::mutex mutex;
  std::vector<char*> letters;
};

Mailbox mailboxes[kThreads];
std::atomic<bool> stop;

struct Result {
  uint64_t operations = 0;
  std::vector<double> batches;  // microseconds
};

char* make(Random& random) {
  const size_t size = draw_size(random);
  char* object = static_cast<char*>(malloc(size));
  if (object == nullptr) abort();
  object[0] = object[size - 1] = 1;
  return object;
}

void empty(Mailbox& mailbox) {
  std::vector<char*> letters;
  {
    std::lock_guard guard(mailbox.mutex);
    letters.swap(mailbox.letters);
  }
  for (char* letter : letters) free(letter);
}

void serve(int number, Result& result) {
  Random random{0x9e3779b97f4a7c15u * static_cast<uint64_t>(number + 1)};
  std::vector<char*> table(kObjects);
  for (char*& object : table) object = make(random);
  while (!stop.load(std::memory_order_relaxed)) {
    const auto begin = Clock::now();
    for (int i = 0; i < kBatch; ++i) {
      char*& object = table[random.below(kObjects)];
      if (random.below(8) == 0) {
        Mailbox& neighbour = mailboxes[(number + 1) % kThreads];
        std::lock_guard guard(neighbour.mutex);
        neighbour.letters.push_back(object);
      } else {
        free(object);
      }
      object = make(random);
    }
    empty(mailboxes[number]);
    result.operations += kBatch;
    result.batches.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  for (char* object : table) free(object);
}

double percentile(std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 2.0;
  std::vector<Result> results(kThreads);
  std::vector<std::thread> threads;
  const auto begin = Clock::now();
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back(serve, t, std::ref(results[static_cast<size_t>(t)]));
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  uint64_t operations = 0;
  std::vector<double> batches;
  for (Result& result : results) {
    operations += result.operations;
    batches.insert(batches.end(), result.batches.begin(), result.batches.end());
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("{\"ops_per_s\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"peak_mib\": %.1f}\n",
         static_cast<double>(operations) / took, percentile(batches, 0.5), percentile(batches, 0.99),
         static_cast<double>(usage.ru_maxrss) / 1024.0);
  return 0;
}
