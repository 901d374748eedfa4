// All calls at once, from a seed:
//   chaos [--seed N] [--steps N] [--threads N] [--mode M] [--plugin FILE] [--without A,B…] [--patience S]
// Every worker makes the same operations for the same seed, whatever the others do; with one thread the whole
// run is the same. Every 250 steps all stop, blocks change hands, and no two live blocks may overlap.
// Modes: default checked decay0 background thp fork, limit (of address space), refuse (the system does;
// prefixed).
// --without leaves out heap, post, thread, fork, spawn, dlopen, stats, trim, signal.
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <barrier>
#include <memory>
#include <thread>

#include "calls.h"
#include "refuse.h"
#include "worker.h"

namespace chaos {

Settings settings;

namespace {

// Never ended: a signal may look at them.
std::vector<Worker*>* workers = new std::vector<Worker*>;

// Without malloc and stdio: either may be what hangs.
void say(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  [[maybe_unused]] const ssize_t written =
      write(2, line, static_cast<size_t>(std::min<int>(length, sizeof line)));
}

void how_to_repeat() {
  say("chaos: to see it again: --seed %llu --steps %zu --threads %zu --mode %s\n",
      static_cast<unsigned long long>(settings.seed), settings.steps, settings.threads,
      settings.mode.c_str());
  for (size_t i = 0; i < workers->size(); ++i)
    say("chaos: worker %zu, step %zu: %s\n", i, (*workers)[i]->at.load(), (*workers)[i]->doing.load());
}

void hang(int) {
  say("chaos: HANG: %u s without an end\n", settings.patience);
  how_to_repeat();
  signal(SIGABRT, SIG_DFL);
  abort();
}

void died(int number) {
  say("chaos: signal %d\n", number);
  how_to_repeat();
  signal(number, SIG_DFL);
  raise(number);
}

std::atomic<size_t> signals{0};

void limit_address_space(bool on) {
  if (settings.mode != "limit") return;
  rlimit limit = {};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = on ? std::min<rlim_t>(size_t{300} << 20, limit.rlim_max) : limit.rlim_max;
  setrlimit(RLIMIT_AS, &limit);
}

void check_overlap() {
  std::vector<Block> all;
  for (Worker* worker : *workers) worker->collect(&all);
  std::sort(all.begin(), all.end(), [](const Block& a, const Block& b) { return a.address < b.address; });
  for (size_t i = 1; i < all.size(); ++i)
    require(all[i - 1].address + std::max<size_t>(all[i - 1].usable, 1) <= all[i].address,
            "no overlap with another live block", all[i]);
}

void exchange_posts() {
  for (Worker* from : *workers) {
    for (size_t to = 0; to < workers->size(); ++to) (*workers)[to]->receive(from->posted_to(to));
  }
}

// Does this worker's thread end after this round? Another one then goes on with its blocks.
bool ends(size_t index, size_t round) {
  return support::Random(settings.seed ^ (index << 32) ^ round).one_in(3);
}

void run() {
  const size_t rounds = (settings.steps + kRound - 1) / kRound;
  for (size_t i = 0; i < settings.threads; ++i) workers->push_back(new Worker(i));
  std::vector<std::thread> threads(settings.threads);
  std::barrier meeting(static_cast<ptrdiff_t>(settings.threads + 1));
  const auto life = [&](size_t index, size_t round) {
    for (bool more = true; more; ++round) {
      meeting.arrive_and_wait();
      (*workers)[index]->run(round * kRound, std::min(kRound, settings.steps - round * kRound));
      more = round + 1 < rounds && !ends(index, round);
      meeting.arrive_and_wait();
    }
  };
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < settings.threads; ++i) {
      if (threads[i].joinable() && !ends(i, round - 1)) continue;
      if (threads[i].joinable()) threads[i].join();
      threads[i] = std::thread(life, i, round);
    }
    alarm(settings.patience);
    limit_address_space(true);
    meeting.arrive_and_wait();
    meeting.arrive_and_wait();
    limit_address_space(false);
    check_overlap();
    exchange_posts();
  }
  for (std::thread& thread : threads) thread.join();
  for (Worker* worker : *workers) worker->finish();
  alarm(0);
}

// The options of a mode stand in the environment before the library is loaded.
void enter_mode(char** arguments) {
  static constexpr const char* kOptions[][2] = {{"default", ""},
                                                {"checked", "checked:on"},
                                                {"decay0", "decay_ms:0"},
                                                {"background", "background:on,decay_ms:50"},
                                                {"thp", "huge_pages:thp"},
                                                {"fork", ""},
                                                {"limit", ""},
                                                {"refuse", "decay_ms:0"}};
  for (const auto& [name, options] : kOptions) {
    if (settings.mode != name) continue;
    if (getenv("CHAOS_READY") != nullptr || *options == '\0') return;
    setenv("CHAOS_READY", "1", 1);
    setenv("HUMMOCK_CONF", options, 1);
    execv("/proc/self/exe", arguments);
  }
  say("chaos: no mode is called %s\n", settings.mode.c_str());
  exit(2);
}

void read_arguments(int count, char** arguments) {
  settings.seed = support::run_seed();
  settings.steps = support::scaled(settings.steps);
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i];
    std::string value = arguments[i + 1];
    const unsigned long long number = strtoull(value.c_str(), nullptr, 0);
    if (name == "--seed") settings.seed = number;
    if (name == "--steps") settings.steps = support::scaled(number, 100);
    if (name == "--threads") settings.threads = std::clamp<size_t>(number, 1, 64);
    if (name == "--mode") settings.mode = value;
    if (name == "--plugin") settings.plugin = value;
    if (name == "--patience") settings.patience = static_cast<unsigned>(number);
    while (name == "--without" && !value.empty()) {
      const size_t comma = std::min(value.find(','), value.size());
      settings.without.insert(value.substr(0, comma));
      value.erase(0, comma + 1);
    }
  }
}

}  // namespace

void fail(const char* promise, const Block& block) {
  say("chaos: BROKEN: %s; block %p of %zu bytes (usable %zu, aligned to %zu)\n", promise,
      static_cast<void*>(block.address), block.size, block.usable, block.alignment);
  abort();
}

}  // namespace chaos

int main(int count, char** arguments) {
  using namespace chaos;
  read_arguments(count, arguments);
  enter_mode(arguments);
  if (!calls::kPrefixed && hummock_is_active() == 0) {
    fprintf(stderr, "chaos: the process's malloc is not Hummock's\n");
    return 2;
  }
  say("chaos: --seed %llu --steps %zu --threads %zu --mode %s\n",
      static_cast<unsigned long long>(settings.seed), settings.steps, settings.threads,
      settings.mode.c_str());
  if (settings.mode == "refuse") refuse::install();
  signal(SIGALRM, hang);
  for (int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) signal(number, died);
  struct sigaction action = {};
  action.sa_handler = [](int) { ++signals; };
  sigaction(SIGUSR1, &action, nullptr);
  run();
  uint64_t digest = 0;
  size_t misses = 0;
  for (Worker* worker : *workers) digest += worker->digest(), misses += worker->misses();
  printf("chaos: no promise broken; operations %016llx, %zu refused\n",
         static_cast<unsigned long long>(digest), misses);
}
