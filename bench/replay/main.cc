// hummock-replay: the calls of one process again, on whatever malloc this process has.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "arena.h"
#include "clock.h"
#include "hummock/record.h"
#include "json.h"
#include "memory.h"
#include "plan.h"
#include "sampler.h"

namespace {

enum class Touch { kNone, kFirst, kAll };

struct Slot {
  char* block;
  uint64_t size;
  std::atomic<uint32_t> turn;
};

// A thread's own line: others look how far it is.
struct alignas(128) Player {
  std::atomic<uint32_t> position;
  uint32_t limit;  // it may go so far before it looks at the others again
  uint64_t allocations, releases, resizes, bytes;
};

const PlanHead* head;
const PlanThread* plan_threads;
const PlanEvent* events;
Slot* slots;
Player* players;
std::atomic<uint32_t> playing;
Touch touch = Touch::kFirst;
uint32_t window = 4096;

constexpr size_t kPage = 4096;
constexpr uint32_t kDone = UINT32_MAX;

void touch_from(char* block, size_t from, size_t size) {
  if (touch == Touch::kNone || from >= size) return;
  if (touch == Touch::kAll) {
    memset(block + from, 1, size - from);
    return;
  }
  for (size_t at = (from + kPage - 1) & ~(kPage - 1); at < size; at += kPage) block[at] = 1;
}

class Pause {
 public:
  void wait() {
    ++tries_;
    if (tries_ < 200) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else if (tries_ < 1000) {
      sched_yield();
    } else {
      usleep(50);
    }
  }

 private:
  unsigned tries_ = 0;
};

// So that no thread runs far ahead of what the others did meanwhile.
void wait_for_others(Player& self, uint32_t position) {
  for (Pause pause;; pause.wait()) {
    uint32_t least = kDone;
    for (uint32_t i = 0; i < head->threads; ++i) {
      const uint32_t other = players[i].position.load(std::memory_order_relaxed);
      if (other < least) least = other;
    }
    self.limit = least > kDone - window ? kDone : least + window;
    if (position <= self.limit) return;
  }
}

void* allocate(const PlanEvent& event) {
  if (event.call == HUMMOCK_RECORD_CALLOC) return calloc(1, event.size);
  if (event.call == HUMMOCK_RECORD_NEW) return operator new(event.size, std::nothrow);
  if (event.call != HUMMOCK_RECORD_ALIGNED) return malloc(event.size);
  void* block = nullptr;
  const size_t align = size_t{1} << (event.align < 4 ? 4 : event.align);
  return posix_memalign(&block, align, event.size) == 0 ? block : nullptr;
}

void release(const PlanEvent& event, char* block) {
  if (event.call == HUMMOCK_RECORD_DELETE) return operator delete(block);
  if (event.call == HUMMOCK_RECORD_SIZED) return operator delete(block, event.size);
  free(block);
}

void play_call(Player& self, const PlanEvent& event, Slot& slot) {
  if (event.call == HUMMOCK_RECORD_RESIZE_END) {
    auto* block = static_cast<char*>(realloc(slot.block, event.size));
    if (block == nullptr) fail(3, "realloc(%zu) failed", static_cast<size_t>(event.size));
    touch_from(block, slot.size, event.size);
    slot.block = block;
    slot.size = event.size;
    ++self.resizes;
    self.bytes += event.size;
  } else if (event.call >= HUMMOCK_RECORD_FREE) {
    release(event, slot.block);
    ++self.releases;
  } else {
    slot.block = static_cast<char*>(allocate(event));
    if (slot.block == nullptr) fail(3, "no memory for %zu bytes", static_cast<size_t>(event.size));
    touch_from(slot.block, 0, event.size);
    slot.size = event.size;
    ++self.allocations;
    self.bytes += event.size;
  }
}

void start_player(uint32_t index);

void play(uint32_t index) {
  Player& self = players[index];
  const PlanEvent* event = events + plan_threads[index].first;
  for (const PlanEvent* const end = event + plan_threads[index].count; event != end; ++event) {
    self.position.store(event->position, std::memory_order_relaxed);
    if (event->position > self.limit) wait_for_others(self, event->position);
    if (event->call == kStartThread) {
      start_player(event->slot);
      continue;
    }
    Slot& slot = slots[event->slot];
    for (Pause pause; slot.turn.load(std::memory_order_acquire) != event->turn;) pause.wait();
    play_call(self, *event, slot);
    slot.turn.store(event->turn + 1, std::memory_order_release);
  }
  self.position.store(kDone, std::memory_order_relaxed);
}

void start_player(uint32_t index) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, size_t{256} << 10);
  playing.fetch_add(1);
  pthread_t thread;
  const int error = pthread_create(
      &thread, &attributes,
      [](void* which) -> void* {
        play(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(which)));
        playing.fetch_sub(1);
        return nullptr;
      },
      reinterpret_cast<void*>(static_cast<uintptr_t>(index)));
  if (error != 0) fail(3, "thread %u of %u: %s", index, head->threads, strerror(error));
  pthread_attr_destroy(&attributes);
}

// The file is shared memory, and so are our own books: what is private is the allocator's.
template <class T>
T* shared_array(size_t count) {
  void* memory = mmap(nullptr, count * sizeof(T) + 1, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) fail(3, "no memory for %zu blocks", count);
  return static_cast<T*>(memory);
}

void open_plan(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (file < 0 || fstat(file, &about) != 0) fail(2, "%s cannot be read", path);
  const auto size = static_cast<size_t>(about.st_size);
  void* memory = size < sizeof(PlanHead) ? MAP_FAILED
                                         : mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
  if (memory == MAP_FAILED) fail(2, "%s is no plan of hummock replay", path);
  head = static_cast<const PlanHead*>(memory);
  const bool whole =
      memcmp(head->magic, kPlanMagic, sizeof kPlanMagic) == 0 &&
      size == sizeof(PlanHead) + head->threads * sizeof(PlanThread) + head->events * sizeof(PlanEvent);
  if (!whole) fail(2, "%s is no plan of hummock replay", path);
  plan_threads = reinterpret_cast<const PlanThread*>(head + 1);
  events = reinterpret_cast<const PlanEvent*>(plan_threads + head->threads);
  slots = shared_array<Slot>(head->slots);
  players = shared_array<Player>(head->threads);
  for (uint32_t i = 0; i < head->threads; ++i)
    players[i].position.store(events[plan_threads[i].first].position, std::memory_order_relaxed);
}

// What the program still held is held; a few small blocks come and go, as of a program at rest.
size_t settled(double seconds) {
  for (const uint64_t end = nanoseconds() + static_cast<uint64_t>(seconds * 1e9); nanoseconds() < end;) {
    void* volatile block = malloc(64);
    free(block);
    usleep(10000);
  }
  return private_bytes();
}

void report(Sampler& sampler, double seconds, const Usage& before, const Usage& after, double settle) {
  const size_t at_end = settle > 0 ? settled(settle) : 0;  // before there is a report to hold
  Player sum = {};
  for (uint32_t i = 0; i < head->threads; ++i) {
    sum.allocations += players[i].allocations;
    sum.releases += players[i].releases;
    sum.resizes += players[i].resizes;
    sum.bytes += players[i].bytes;
  }
  const uint64_t calls = sum.allocations + sum.releases + sum.resizes;
  const double cpu =
      static_cast<double>(after.cpu_nanoseconds - before.cpu_nanoseconds) / 1e9 - sampler.cpu_seconds();
  Json json;
  json.open('{');
  json.key("operations").number(calls);
  json.key("seconds").number(seconds);
  json.key("cpu_seconds").number(cpu);
  json.key("system_seconds").number(after.system_seconds - before.system_seconds);
  json.key("ops_per_second").number(static_cast<double>(calls) / seconds);
  json.key("peak_bytes").number(uint64_t{sampler.peak()});
  json.key("settled_bytes");
  if (settle > 0) {
    json.number(uint64_t{at_end});
  } else {
    json.null();
  }
  json.key("live_bytes").number(head->live_peak);
  json.key("start_bytes").number(uint64_t{sampler.start()});
  json.key("books_bytes").number(0);
  json.key("minor_faults").number(after.minor_faults - before.minor_faults);
  json.key("major_faults").number(after.major_faults - before.major_faults);
  json.key("page_size").number(static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  json.key("latency").null();
  json.key("allocations").number(sum.allocations);
  json.key("releases").number(sum.releases);
  json.key("resizes").number(sum.resizes);
  json.key("bytes").number(sum.bytes);
  sampler.write(json);
  json.close('}');
  json.print(1);
}

double decimal(const char* name, const char* text) {
  char* end = nullptr;
  const double value = strtod(text, &end);
  if (end == text || *end != 0 || !(value >= 0) || value > 1e9) fail(2, "%s: '%s' is no number", name, text);
  return value;
}

Touch touch_of(const char* text) {
  if (strcmp(text, "none") == 0) return Touch::kNone;
  if (strcmp(text, "first") == 0) return Touch::kFirst;
  if (strcmp(text, "all") == 0) return Touch::kAll;
  fail(2, "--touch: none, first or all, not '%s'", text);
}

void run(double settle) {
  Sampler sampler;
  const Usage before = usage_now();
  const uint64_t start = nanoseconds();
  play(0);
  while (playing.load() != 0) usleep(100);
  const double seconds = static_cast<double>(nanoseconds() - start) / 1e9;
  sampler.stop();
  report(sampler, seconds, before, usage_now(), settle);
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && strcmp(arguments[1], "--list") == 0) {
    free(malloc(1));  // for who asks the loader where these lead
    return 0;
  }
  if (count < 2 || count % 2 != 0)
    fail(2, "usage: hummock-replay PLAN [--touch none|first|all] [--window N] [--settle S]");
  double settle = 0;
  for (int i = 2; i < count; i += 2) {
    const char* name = arguments[i];
    const char* value = arguments[i + 1];
    if (strcmp(name, "--touch") == 0) {
      touch = touch_of(value);
    } else if (strcmp(name, "--window") == 0) {
      window = static_cast<uint32_t>(decimal(name, value));
    } else if (strcmp(name, "--settle") == 0) {
      settle = decimal(name, value);
    } else {
      fail(2, "unknown option %s", name);
    }
  }
  open_plan(arguments[1]);
  run(settle);
  return 0;
}
