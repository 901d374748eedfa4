// The option parser: a program's own text and an environment, of any bytes. What is in effect stays within
// each option's bounds, what is not understood is told in whole lines, and values can be printed and read
// again.
#include "base/options.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "fuzz.h"

// A value that cannot be had may end the process: here it ends the loading alone (the linker's --wrap).
extern "C" [[noreturn]] void __real__ZN7hummock4base5leaveEi(int status);
namespace {
jmp_buf loading;
bool is_loading = false;
}  // namespace
extern "C" [[noreturn]] void __wrap__ZN7hummock4base5leaveEi(int status) {
  if (is_loading) longjmp(loading, 1);
  __real__ZN7hummock4base5leaveEi(status);
}

namespace {

namespace options = hummock::options;
using fuzz::expect;
using options::Kind;

// Standard error, for as long as it lives, goes to a file in memory.
class Captured {
 public:
  Captured() : saved_(dup(2)) {
    expect(ftruncate(file(), 0) == 0 && lseek(file(), 0, SEEK_SET) == 0, "a file in memory");
    dup2(file(), 2);
  }
  ~Captured() {
    dup2(saved_, 2);
    close(saved_);
  }
  static std::string text() {
    std::string all(static_cast<size_t>(lseek(file(), 0, SEEK_END)), '\0');
    expect(pread(file(), all.data(), all.size(), 0) == static_cast<ssize_t>(all.size()), "a file in memory");
    return all;
  }

 private:
  static int file() {
    static const int fd = memfd_create("said", MFD_CLOEXEC);
    return fd;
  }
  int saved_;
};

void check_lines(const std::string& said) {
  constexpr char kPrefix[] = "hummock: ";
  for (size_t at = 0; at < said.size();) {
    const size_t end = said.find('\n', at);
    expect(end != std::string::npos, "whole lines");
    expect(said.compare(at, sizeof kPrefix - 1, kPrefix) == 0, "every line names the library");
    expect(end - at < 512, "lines of bounded length");
    for (size_t i = at; i < end; ++i)
      expect(static_cast<unsigned char>(said[i]) >= ' ' && said[i] != 127,
             "no control characters in a message");
    at = end + 1;
  }
}

// Words may stand outside the bounds: "never" is -1.
bool is_word(const options::Option& option, int64_t value) {
  const std::string words = "|" + std::string(option.words) + "|";
  return words.find("=" + std::to_string(value) + "|") != std::string::npos;
}

void check_values() {
  const int64_t* values = reinterpret_cast<const int64_t*>(&options::values);
  for (size_t i = 0; i < options::kCount; ++i) {
    const options::Option& option = options::kTable[i];
    if (option.kind != Kind::text)
      expect((values[i] >= option.least && values[i] <= option.most) || is_word(option, values[i]),
             "a value within its bounds");
    char text[options::kTextRoom + 1];
    expect(options::get(option.name, text, sizeof text) == 0, "a value can be printed");
    char small[4] = {1, 1, 1, 1};
    const int error = options::get(option.name, small, 3);
    expect(error == (strlen(text) < 3 ? 0 : ERANGE), "room that is too small is told");
    expect(small[3] == 1 && memchr(small, '\0', 3) != nullptr, "text within its room, ended");
    if (option.when != options::When::any_time || option.kind == Kind::text) continue;
    const int64_t before = values[i];
    expect(options::set(option.name, text) == 0 && values[i] == before, "what is printed can be read again");
  }
}

// False when it would have ended the process.
bool load(std::string text) {
  // The first line is the program's, the others are the environment's.
  static std::vector<const char*> environment;
  environment.clear();
  for (char& c : text) c = c == '\n' ? '\0' : c == '\1' ? '\n' : c;
  for (size_t at = 0; at <= text.size(); at += strlen(text.c_str() + at) + 1)
    environment.push_back(text.c_str() + at);
  environment.push_back(nullptr);
  is_loading = true;
  const bool done = setjmp(loading) == 0;
  if (done) options::load(environment[0], environment.data() + 1);
  is_loading = false;
  return done;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::string said;
  {
    Captured captured;
    const bool loaded = load(text);
    said = Captured::text();
    expect(loaded || !said.empty(), "what ends the process is told");
  }
  check_lines(said);
  check_values();
  const size_t colon = text.find_first_of(":=");
  if (colon != std::string::npos) {
    const std::string name = text.substr(0, colon), value = text.substr(colon + 1);
    const int error = options::set(name.c_str(), value.c_str());
    expect(error == 0 || error == ENOENT || error == EINVAL || error == EPERM, "the errors of set");
    check_values();
  }
  {
    Captured captured;
    options::print_effective();
    said = Captured::text();
  }
  check_lines(said);
  options::load(nullptr, nullptr);
  return 0;
}
