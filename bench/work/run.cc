#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

namespace {

constexpr size_t kStack = 256 * 1024;
constexpr unsigned kLook = 5;  // milliseconds between looks at live bytes and memory

Gate prepared;
Gate finished;

void* worker_main(void* argument) {
  Worker& worker = *static_cast<Worker*>(argument);
  worker.load->prepare(worker);
  prepared.arrive_and_wait();
  worker.load->work(worker);
  worker.finished_at = nanoseconds();
  finished.arrive_and_wait();
  worker.load->clean(worker);
  return nullptr;
}

}  // namespace

pthread_t start_thread(void* (*body)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, body, argument);
  pthread_attr_destroy(&attributes);
  if (error != 0) fail(3, "cannot start a thread (error %d)", error);
  return thread;
}

// ---- Gate -----------------------------------------------------------------------------------------

void Gate::reset(unsigned threads) {
  missing_ = threads;
  open_ = false;
}

void Gate::arrive_and_wait() {
  pthread_mutex_lock(&mutex_);
  if (--missing_ == 0) pthread_cond_signal(&arrived_);
  while (!open_) pthread_cond_wait(&opened_, &mutex_);
  pthread_mutex_unlock(&mutex_);
}

bool Gate::all_arrived(unsigned milliseconds) {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += static_cast<long>(milliseconds) * 1000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_mutex_lock(&mutex_);
  while (missing_ != 0 && pthread_cond_timedwait(&arrived_, &mutex_, &until) != ETIMEDOUT) {
  }
  const bool all = missing_ == 0;
  pthread_mutex_unlock(&mutex_);
  return all;
}

void Gate::open() {
  pthread_mutex_lock(&mutex_);
  open_ = true;
  pthread_cond_broadcast(&opened_);
  pthread_mutex_unlock(&mutex_);
}

// ---- Run ------------------------------------------------------------------------------------------

Run::Run(const Options& given) : options(given) {
  if (options.series) points_ = arena_array<Point>(kPoints);
}

Json& Run::rows() {
  if (rows_ == nullptr) {
    rows_ = new (arena_take(sizeof(Json))) Json();
    rows_->open('[');
  }
  return *rows_;
}

Latency& Run::latency() {
  if (latency_ == nullptr) latency_ = arena_array<Latency>(1);
  return *latency_;
}

void Run::begin() {
  begun_ = true;
  start_bytes_ = resident_bytes();
  peak_reset();
  begun_at_ = nanoseconds();
}

void Run::add_child(const ChildUse& use, uint64_t operations) {
  if (!begun_) begin();
  total_.operations += operations;
  total_.seconds += use.seconds;
  total_.cpu_seconds += use.cpu_seconds;
  system_seconds_ += use.system_seconds;
  minor_faults_ += use.minor_faults;
  major_faults_ += use.major_faults;
  if (use.peak_bytes > peak_bytes_) peak_bytes_ = use.peak_bytes;
  ++children_;
}

bool Run::more_children() const {
  return options.operations != 0 ? children_ < options.operations
                                 : children_ == 0 || total_.seconds < options.seconds;
}

bool Run::due() const {
  return points_ != nullptr && static_cast<double>(nanoseconds() - begun_at_) / 1e9 >= next_point_;
}

void Run::watch() {
  if (due()) watch(resident_bytes());
}

void Run::watch(size_t resident) {
  if (!begun_) begin();
  if (!due()) return;
  const double now = static_cast<double>(nanoseconds() - begun_at_) / 1e9;
  if (point_count_ == kPoints) {  // half as many, half as often
    for (size_t i = 0; i < kPoints / 2; ++i) points_[i] = points_[2 * i];
    point_count_ = kPoints / 2;
    interval_ *= 2;
  }
  points_[point_count_++] = {now, resident};
  next_point_ = now + interval_;
}

void Run::note_live(unsigned threads) {
  int64_t sum = 0;
  for (unsigned i = 0; i < threads; ++i) sum += workers_[i].live.load(std::memory_order_relaxed);
  if (sum > 0) live_is_at_least(static_cast<uint64_t>(sum));
}

// Until all threads have arrived; tells them to stop when `seconds` (0: never) have passed.
void Run::wait(Gate& gate, unsigned threads, double seconds) {
  const uint64_t start = nanoseconds();
  const auto span = static_cast<uint64_t>(seconds * 1e9);
  for (;;) {
    uint64_t look = kLook;
    if (span != 0) {
      const uint64_t passed = nanoseconds() - start;
      if (passed >= span)
        stop_.store(true, std::memory_order_relaxed);
      else if ((span - passed) / 1000000 < look)
        look = (span - passed) / 1000000 + 1;
    }
    const bool all = gate.all_arrived(static_cast<unsigned>(look));
    note_live(threads);
    watch();
    if (all) return;
  }
}

void Run::make_workers(Load& load, unsigned threads, bool fixed) {
  if (workers_room_ < threads) {
    workers_ = static_cast<Worker*>(arena_take((threads + 1) * sizeof(Worker)));
    workers_ = reinterpret_cast<Worker*>((reinterpret_cast<uintptr_t>(workers_) + 127) & ~uintptr_t{127});
    workers_room_ = threads;
    for (unsigned i = 0; i < threads; ++i) workers_[i].latency = arena_array<Latency>(1);
  }
  for (unsigned i = 0; i < threads; ++i) {
    Worker& worker = workers_[i];
    worker.rng.reset(options.seed * 1000003 + i);
    worker.operations = 0;
    worker.limit = options.operations != 0 && !fixed ? options.operations : ~uint64_t{0};
    worker.stop = &stop_;
    worker.live.store(0, std::memory_order_relaxed);
    worker.live_peak = 0;
    worker.index = i;
    worker.threads = threads;
    worker.size = options.size;
    worker.load = &load;
    worker.run = this;
  }
}

Run::Span Run::measure(Load&, unsigned threads) {
  wait(prepared, threads, 0);
  const Usage before = usage_now();
  const uint64_t start = nanoseconds();
  prepared.open();
  const bool timed = workers_[0].limit == ~uint64_t{0};
  wait(finished, threads, timed ? options.seconds : 0);
  const Usage after = usage_now();
  uint64_t end = start + 1;
  Span span = {0, 0, 0};
  for (unsigned i = 0; i < threads; ++i) {
    span.operations += workers_[i].operations;
    if (workers_[i].finished_at > end) end = workers_[i].finished_at;
  }
  if (threads == 1 && workers_[0].live_peak > 0)
    live_is_at_least(static_cast<uint64_t>(workers_[0].live_peak));
  span.seconds = static_cast<double>(end - start) / 1e9;
  span.cpu_seconds = static_cast<double>(after.cpu_nanoseconds - before.cpu_nanoseconds) / 1e9;
  system_seconds_ += after.system_seconds - before.system_seconds;
  minor_faults_ += after.minor_faults - before.minor_faults;
  major_faults_ += after.major_faults - before.major_faults;
  return span;
}

Run::Span Run::execute(Load& load, unsigned threads, bool fixed) {
  if (threads == 0) threads = options.threads;
  make_workers(load, threads, fixed);
  pthread_t* ids = arena_array<pthread_t>(threads);
  stop_.store(false, std::memory_order_relaxed);
  load.set_up(*this);
  if (!begun_) begin();
  prepared.reset(threads);
  finished.reset(threads);
  for (unsigned i = 0; i < threads; ++i) ids[i] = start_thread(worker_main, &workers_[i]);
  const Span span = measure(load, threads);
  finished.open();
  for (unsigned i = 0; i < threads; ++i) pthread_join(ids[i], nullptr);
  load.finish(*this);
  watch();
  peak_bytes_ = peak_bytes();
  for (unsigned i = 0; i < threads; ++i) {
    if (workers_[i].latency->count() == 0) continue;
    latency().merge(*workers_[i].latency);
    *workers_[i].latency = Latency{};
  }
  total_.operations += span.operations;
  total_.seconds += span.seconds;
  total_.cpu_seconds += span.cpu_seconds;
  return span;
}

void Run::settle() {
  if (options.settle <= 0 || children_ != 0) return;
  const uint64_t start = nanoseconds();
  Rng rng(options.seed);
  while (static_cast<double>(nanoseconds() - start) < options.settle * 1e9) {
    void* blocks[32];
    for (void*& block : blocks) block = malloc(rng.log_uniform(16, 4096));
    for (void* block : blocks) free(block);
    usleep(10000);
    watch();
  }
  settled_bytes_ = resident_bytes();
}
