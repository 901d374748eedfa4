#include "os/region_log.h"

#include <string.h>

#include "base/message.h"
#include "base/options.h"
#include "hummock/hummock.h"
#include "os/lock.h"
#include "os/os.h"

namespace hummock::os {

bool log_on;
EventHook event_hook;

namespace {

using base::Line;
using options::values;

constexpr size_t kPathRoom = 4096;

// All are written at start; later under the lock, and then `file` and `identity` are atomic, relaxed: who has
// the old ones sees that they are not the log.
Lock<Rank::region_log> lock;
char path[kPathRoom];  // absolute: the program may change its folder
size_t folder;         // bytes of `path` before the name, once known; 0: the name is itself absolute
int file = -1;
uint64_t identity;     // of the file: the program may close descriptors that are not its own
uint64_t started;      // ns
int denied;            // the error for which the file is not where it was asked for, else 0
bool forked;           // atomic, relaxed: the child has no file of its own yet
size_t total;          // atomic, relaxed
uint64_t memory_line;  // ns since the start: when the last of those was written; atomic, relaxed

void put(char** at, const char* end, const char* text) {
  while (*text != '\0' && *at < end) *(*at)++ = *text++;
}

void put_number(char** at, const char* end, uint64_t number) {
  Line line("");
  line.dec(number);
  for (size_t i = 0; i < line.size() && *at < end; ++i) *(*at)++ = line.data()[i];
}

}  // namespace

void expand_pattern(const char* pattern, char* out, size_t room) {
  char* at = out;
  const char* end = out + room - 1;
  for (const char* c = pattern; *c != '\0' && at < end; ++c) {
    char time[16];
    if (c[0] != '%' || strchr("pt%", c[1]) == nullptr || c[1] == '\0') {
      *at++ = *c;
      continue;
    }
    ++c;
    if (*c == '%') *at++ = '%';
    if (*c == 'p') put_number(&at, end, process_id());
    if (*c == 't') write_time(time), put(&at, end, time);
  }
  *at = '\0';
}

namespace {

void write_head(unsigned parent) {
  base::write_line(file, Line("") << "hummock " << HUMMOCK_VERSION_MAJOR << "." << HUMMOCK_VERSION_MINOR
                                  << "." << HUMMOCK_VERSION_PATCH << " region log");
  char time[16];
  write_time(time);
  base::write_line(file, Line("") << "started: " << time << " UTC");
  Line process("");
  process << "process: " << process_id();
  if (parent != 0) process << ", forked from " << parent;
  base::write_line(file, process);
  if (denied != 0)
    base::write_line(
        file, Line("") << "here because: " << path << " cannot be opened (" << error_name(denied) << ")");
  describe_machine(file);
  options::print_effective(file, "option: ");
  base::write_line(file, Line("") << "events:");
}

bool open_file() {
  int error = 0;
  const int opened = open_append(path, &error);
  if (opened < 0) {
    base::say(Line() << "the log " << path << " cannot be opened (" << error_name(error)
                     << "): no region log");
    return false;
  }
  denied = error;
  __atomic_store_n(&identity, file_identity(opened), __ATOMIC_RELAXED);
  __atomic_store_n(&file, opened, __ATOMIC_RELAXED);
  return true;
}

// A child's file stands in the folder where its parent's does.
bool make_path(const char* name) {
  const size_t length = strlen(name);
  if (folder == 0) {
    if (!absolute_path(name, path, sizeof path)) return false;
    folder = strlen(path) - length;
    return true;
  }
  if (folder + length >= sizeof path) return false;
  memcpy(path + folder, name, length + 1);
  return true;
}

void begin_file(unsigned parent) {
  char name[options::kTextRoom + 64];
  const options::Path pattern = values.log;
  expand_pattern(options::is_file(pattern) ? pattern : "malloc_%p.log", name, sizeof name);
  bool on = make_path(name);
  if (!on) base::say(Line() << "the path of the log " << name << " is too long: no region log");
  on = on && open_file();
  __atomic_store_n(&log_on, on, __ATOMIC_RELAXED);
  if (on) write_head(parent);
}

unsigned logged_process;  // whose file it is

bool is_mine(int fd) {
  return file_identity(fd) == __atomic_load_n(&identity, __ATOMIC_RELAXED);
}

// The file, opened again when the program closed it; -1: there is none any more.
int open_log() {
  if (__atomic_load_n(&forked, __ATOMIC_RELAXED)) {
    LockGuard guard(lock);
    if (forked) {
      const unsigned parent = logged_process;
      logged_process = process_id();
      begin_file(parent);
      __atomic_store_n(&forked, false, __ATOMIC_RELAXED);
    }
  }
  const int fd = __atomic_load_n(&file, __ATOMIC_RELAXED);
  if (!is_logging() || is_mine(fd)) return is_logging() ? fd : -1;
  LockGuard guard(lock);
  if (!is_mine(file) && !open_file()) __atomic_store_n(&log_on, false, __ATOMIC_RELAXED);
  return is_logging() ? file : -1;
}

// "    0.015s": ten columns.
void put_seconds(Line& line, uint64_t since) {
  const uint64_t ms = since / 1000000;
  line.right(ms / 1000, 5).text(".");
  const char thousandths[] = {static_cast<char>('0' + ms / 100 % 10), static_cast<char>('0' + ms / 10 % 10),
                              static_cast<char>('0' + ms % 10)};
  line.text(thousandths, 3).text("s");
}

// "   0.015s:" is column 11, "   0.18ms" column 21.
void put_time(Line& line, uint64_t since, uint64_t took) {
  put_seconds(line, since);
  line.text(": ");
  const uint64_t hundredths = took / 10000;
  line.right(hundredths / 100, 16).text(".");
  const char two[] = {static_cast<char>('0' + hundredths / 10 % 10),
                      static_cast<char>('0' + hundredths % 10)};
  line.text(two, 2).text("ms ");
}

}  // namespace

void start_log() {
  if (values.log == nullptr) return;
  started = now_ns();
  logged_process = process_id();
  folder = 0;
  begin_file(0);
}

void log_at_fork(ForkStep step) {
  lock.at_fork(step);
  if (step == ForkStep::in_child && is_logging()) __atomic_store_n(&forked, true, __ATOMIC_RELAXED);
}

void log_note(const char* name, const Line& text) {
  // A child that has nothing to log has no file to say so.
  if (!is_logging() || __atomic_load_n(&forked, __ATOMIC_RELAXED)) return;
  const int fd = open_log();
  if (fd < 0) return;
  Line line("");
  base::write_line(fd, line.text(name).text(": ").text(text.data(), text.size()));
}

bool memory_line_due() {
  if (!is_logging()) return false;
  constexpr uint64_t kLeast = 20'000'000;
  const uint64_t since = now_ns() - started;
  return since - __atomic_load_n(&memory_line, __ATOMIC_RELAXED) >
         (since / 100 > kLeast ? since / 100 : kLeast);
}

void log_memory(size_t live, size_t resident) {
  if (!is_logging()) return;
  const uint64_t since = now_ns() - started;
  __atomic_store_n(&memory_line, since, __ATOMIC_RELAXED);
  Line text("");
  put_seconds(text, since);
  log_note("figures", text.text(" live ").dec(live >> 10).text("k resident ").dec(resident >> 10).text("k"));
}

size_t logged_total() {
  return __atomic_load_n(&total, __ATOMIC_RELAXED);
}

uint64_t Event::begin() {
  return now_ns();
}

void Event::write(const char* what, const void* address, size_t size, ptrdiff_t change, const char* reason) {
  const EventHook hook = __atomic_load_n(&event_hook, __ATOMIC_ACQUIRE);
  if (hook != nullptr) hook(what, address, size);
  const uint64_t now = now_ns();
  const size_t sum = __atomic_add_fetch(&total, static_cast<size_t>(change), __ATOMIC_RELAXED);
  const int fd = is_logging() ? open_log() : -1;
  if (fd < 0) return;
  Line line("");
  put_time(line, start_ - started, now - start_);
  line.right(size >> 10, 33).text("k at:").pointer(address).text(" ").text(what);
  line.text(" (").right(sum >> 20, line.size() + 6).text("M)");
  if (reason != nullptr) line.text(" ").text(reason);
  base::write_line(fd, line);
}

}  // namespace hummock::os
