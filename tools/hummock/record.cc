#include "record.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "child.h"
#include "run.h"
#include "trace_merge.h"

namespace hummock::tool {
namespace {

constexpr std::size_t kParts = 64;  // programs that are recorded at a time: address space, not memory
constexpr int kDescriptor = 470;    // out of the way of the program's
constexpr useconds_t kBusyPause = 500, kIdlePause = 4000;  // microseconds between looks

using Part = hummock_record_t;
using Ring = hummock_record_ring_t;

template <class T>
T relaxed(const T& from) {
  return __atomic_load_n(&from, __ATOMIC_RELAXED);
}

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + strerror(errno));
}

// The memory that all programs write to.
class Memory {
 public:
  Memory() : fd_(make_memory(HUMMOCK_RECORD_NAME, kParts * sizeof(Part))) {
    if (fd_ < 0) fail("no memory for the calls");
    void* mapped =
        mmap(nullptr, kParts * sizeof(Part), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
    if (mapped == MAP_FAILED) fail("no memory for the calls");
    parts_ = static_cast<Part*>(mapped);
  }
  ~Memory() {
    munmap(parts_, kParts * sizeof(Part));
    close(fd_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Part& part(std::size_t i) { return parts_[i]; }
  // For another program. All reads zero.
  void clear(std::size_t i) {
    fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(i * sizeof(Part)),
              sizeof(Part));
  }
  int descriptor() const { return fd_; }

 private:
  int fd_;
  Part* parts_ = nullptr;
};

// One program that is recorded. What stands in its part may be anything.
class Recorded {
 public:
  Recorded(Part& part, TraceWriter& writer)
      : part_(part),
        writer_(writer),
        pid_(part.head.pid),
        process_(add(part, writer)),
        merge_(writer, process_) {
    lives_.resize(HUMMOCK_RECORD_RINGS);
    pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  }
  ~Recorded() {
    if (pidfd_ >= 0) close(pidfd_);
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  std::uint32_t pid() const { return pid_; }
  bool has_ended() const {
    pollfd end = {pidfd_, POLLIN, 0};
    return pidfd_ >= 0 && poll(&end, 1, 0) == 1;
  }
  bool drain();
  void finish(bool ended);

 private:
  static std::uint32_t add(const Part& part, TraceWriter& writer) {
    std::string name(part.head.program, strnlen(part.head.program, sizeof part.head.program));
    return writer.add_process(part.head.pid, name);
  }
  bool drain_ring(std::uint32_t i);

  Part& part_;
  TraceWriter& writer_;
  std::uint32_t pid_, process_;
  TraceMerge merge_;
  std::vector<std::uint64_t> lives_;  // of each ring: threads that had it before
  std::uint64_t dropped_ = 0;
  int pidfd_;
};

bool Recorded::drain_ring(std::uint32_t i) {
  Ring& ring = part_.ring[i];
  // acquire: all events of a thread that has ended are counted.
  const bool ended = __atomic_load_n(&ring.state, __ATOMIC_ACQUIRE) == HUMMOCK_RECORD_ENDED;
  // acquire: the events are there.
  const std::uint64_t head = __atomic_load_n(&ring.head, __ATOMIC_ACQUIRE);
  const std::uint64_t tail = relaxed(ring.tail);
  const std::uint64_t thread = lives_[i] * HUMMOCK_RECORD_RINGS + i;
  // Else the program has written over the ring: nothing is made of it.
  const std::uint64_t count = head - tail <= HUMMOCK_RECORD_EVENTS ? head - tail : 0;
  for (std::uint64_t at = head - count; at != head; ++at)
    merge_.take(thread, ring.event[at % HUMMOCK_RECORD_EVENTS]);
  // release: the room is free only after this.
  __atomic_store_n(&ring.tail, head, __ATOMIC_RELEASE);
  if (ended) {
    merge_.end_thread(thread);
    ++lives_[i];
    dropped_ += relaxed(ring.dropped);
    __atomic_store_n(&ring.dropped, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&ring.state, std::uint32_t{HUMMOCK_RECORD_UNUSED}, __ATOMIC_RELEASE);
  }
  return count != 0;
}

// False: nothing was there.
bool Recorded::drain() {
  const std::uint32_t rings = std::min<std::uint32_t>(relaxed(part_.head.rings), HUMMOCK_RECORD_RINGS);
  bool any = false;
  for (std::uint32_t i = 0; i < rings; ++i) any |= drain_ring(i);
  merge_.settle(false);
  return any;
}

void Recorded::finish(bool ended) {
  drain();
  merge_.settle(true);
  TraceProcess& counts = writer_.processes()[process_];
  counts.dropped += dropped_ + relaxed(part_.head.dropped);
  for (const Ring& ring : part_.ring) {
    if (&ring - part_.ring >= relaxed(part_.head.rings)) break;
    counts.dropped += relaxed(ring.dropped);
  }
  counts.forks = relaxed(part_.head.forks);
  counts.ended = ended;
  writer_.end_process(process_);
}

class Recording {
 public:
  explicit Recording(TraceWriter& writer) : writer_(writer), recorded_(kParts) {}

  int descriptor() const { return memory_.descriptor(); }
  bool look();    // false: nothing was there
  void finish();  // what still runs is recorded no further

 private:
  void begin(std::size_t i);
  void end(std::size_t i);

  TraceWriter& writer_;
  Memory memory_;
  std::vector<std::optional<Recorded>> recorded_;
};

void Recording::begin(std::size_t i) {
  Part& part = memory_.part(i);
  // acquire: the rest of the head is there.
  if (__atomic_load_n(&part.head.magic, __ATOMIC_ACQUIRE) != HUMMOCK_RECORD_MAGIC) return;
  // A process that has become another program.
  for (std::size_t k = 0; k < kParts; ++k)
    if (recorded_[k] && recorded_[k]->pid() == part.head.pid) end(k);
  recorded_[i].emplace(part, writer_);
}

void Recording::end(std::size_t i) {
  recorded_[i]->finish(true);
  recorded_[i].reset();
  memory_.clear(i);
}

bool Recording::look() {
  bool any = false;
  for (std::size_t i = 0; i < kParts; ++i) {
    if (!recorded_[i]) begin(i);
    if (!recorded_[i]) continue;
    const bool ended = recorded_[i]->has_ended();
    any |= recorded_[i]->drain();
    if (ended) end(i);
  }
  return any;
}

void Recording::finish() {
  look();
  for (std::size_t i = 0; i < kParts; ++i)
    if (recorded_[i]) __atomic_store_n(&memory_.part(i).head.closed, 1, __ATOMIC_RELAXED);
  for (std::size_t i = 0; i < kParts; ++i)
    if (recorded_[i]) recorded_[i]->finish(recorded_[i]->has_ended());
}

[[noreturn]] void become_program(const RecordOptions& options, int memory) {
  int given = fcntl(memory, F_DUPFD, kDescriptor);
  if (given < 0) given = dup(memory);
  struct stat about;
  if (given < 0 || fstat(given, &about) != 0) _exit(kCannotOverride);
  const std::string shared = std::to_string(given) + ":" + std::to_string(about.st_ino);
  RunOptions program;
  program.command = options.command;
  program.library = options.library;
  setenv("HUMMOCK_RUN_RECORD", shared.c_str(), 1);
  setenv(kWatched, "recording", 1);
  const int status = run(program);
  fflush(nullptr);
  _exit(status);
}

std::string amount(std::uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

void tell(const std::string& file, const TraceWriter& writer, const std::vector<TraceProcess>& processes) {
  std::uint64_t calls = 0, dropped = 0, forks = 0;
  for (const TraceProcess& one : processes) {
    calls += one.calls;
    dropped += one.dropped;
    forks += one.forks;
  }
  fprintf(stderr, "hummock record: %s: %s of %s in %s; %s\n", file.c_str(), amount(calls, "call").c_str(),
          amount(processes.size(), "program").c_str(), amount(writer.file_bytes(), "byte").c_str(),
          dropped == 0 ? "none was dropped" : (amount(dropped, "call") + " dropped").c_str());
  if (forks != 0)
    fprintf(stderr, "hummock record: %s: the children were not recorded\n", amount(forks, "fork").c_str());
}

}  // namespace

int record(const RecordOptions& options) {
  // Else they end the command amid the program: a reader that has gone, a limit on the size of files.
  const auto on_pipe = signal(SIGPIPE, SIG_IGN), on_size = signal(SIGXFSZ, SIG_IGN);
  TraceWriter writer(options.file);
  Recording recording(writer);
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGPIPE, on_pipe);
    signal(SIGXFSZ, on_size);
    become_program(options, recording.descriptor());
  }
  if (child < 0) fail("no process");
  pass_signals_to(child);
  int raw = 0;
  bool failed = false;
  while (waitpid(child, &raw, WNOHANG) == 0) {
    usleep(recording.look() ? kBusyPause : kIdlePause);
    if (!failed && !writer.failure().empty())
      fprintf(stderr, "hummock record: %s; the program goes on\n", writer.failure().c_str());
    failed = !writer.failure().empty();
  }
  recording.finish();
  writer.finish();
  const int status = exit_status("hummock record", raw);
  if (!writer.failure().empty()) {
    if (!failed) fprintf(stderr, "hummock record: %s\n", writer.failure().c_str());
    return status_without_result(status);
  }
  if (writer.processes().empty()) {
    if (status >= 125 && status <= 127) return status;  // `hummock run` has said why it did not run
    fprintf(stderr, "hummock record: the program made no call that was seen\n");
    return status_without_result(status);
  }
  tell(options.file, writer, writer.processes());
  return status;
}

}  // namespace hummock::tool
