// The region log: its lines, that nothing of it allocates, and that it finds its file again.
#include "os/region_log.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "base/message.h"
#include "base/options.h"
#include "os/os.h"

namespace os = hummock::os;
namespace options = hummock::options;

// This program's own malloc counts, while it is told to.
namespace {
bool counting;
size_t allocations;
}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* malloc(size_t size) {
  allocations += counting;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  allocations += counting;
  return __libc_calloc(count, size);
}
void* realloc(void* block, size_t size) {
  allocations += counting;
  return __libc_realloc(block, size);
}
}
#endif

namespace {

constexpr bool kWide = sizeof(void*) == 8;
void* const kSomewhere =
    reinterpret_cast<void*>(static_cast<uintptr_t>(kWide ? 0x7f0000000000u : 0x7f000000u));

struct Folder {
  char name[32] = "/tmp/region-log-XXXXXX";
  Folder() { REQUIRE(mkdtemp(name) != nullptr); }
  ~Folder() {
    options::load(nullptr, nullptr);
    os::log_on = false;
    REQUIRE(system((std::string("rm -r ") + name).c_str()) == 0);
  }
  std::string path(const char* file) const { return std::string(name) + "/" + file; }
};

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

void start(const std::string& conf) {
  options::load(("log:region," + conf).c_str(), nullptr);
  os::start_log();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("nothing is written, and no clock read, when it is off") {
  options::load(nullptr, nullptr);
  os::start_log();
  CHECK(!os::log_on);
  os::Event event;
  CHECK(!event.on());
  event.log("Alloc SP", nullptr, 1, 1);
  CHECK(os::logged_total() == 0);
}

TEST_CASE("head and events, without malloc") {
  Folder folder;
  const std::string path = folder.path("a.log");
  options::load(("log:" + path).c_str(), nullptr);
  allocations = 0;
  counting = true;
  os::start_log();
  os::Event event;
  event.log("Alloc LP", kSomewhere, size_t{32} << 20, 32 << 20, "why");
  os::Event().log("Free", kSomewhere, size_t{8} << 20, -(8 << 20));
  os::log_note("summary", hummock::base::Line("") << "the end");
  counting = false;
  CHECK(allocations == 0);
  const std::string text = read(path);
  CAPTURE(text);
  CHECK(text.compare(0, 8, "hummock ") == 0);
  CHECK(contains(text, " region log\nstarted: 20"));
  CHECK(contains(text, "process: " + std::to_string(getpid()) + "\n"));
  CHECK(contains(text, "\nkernel: Linux "));
  CHECK(contains(text, "\nmemory: total "));
  CHECK(contains(text, "\ncommit: limit "));
  CHECK(contains(text, "\nprocesses: "));
  CHECK(contains(text, "\nuptime: "));
  CHECK(contains(text, "\nrights: user "));
  CHECK(contains(text, "\noption: log:" + path + " (hummock_conf)\n"));
  CHECK(contains(text, "\noption: huge_pages:auto (default)\n"));
  const std::string at = kWide ? "at:0x7f0000000000" : "at:0x7f000000";
  CHECK(contains(text, "32768k " + at + " Alloc LP (    32M) why\n"));
  CHECK(contains(text, "8192k " + at + " Free (    24M)\n"));
  CHECK(contains(text, "summary: the end\n"));
  CHECK(text.back() == '\n');
}

TEST_CASE("names of files") {
  Folder folder;
  REQUIRE(chdir(folder.name) == 0);
  start("log_file:x_%p_%t_100%%_%q");
  REQUIRE(os::log_on);
  REQUIRE(chdir("/") == 0);
  char found[300] = "";
  FILE* list = popen((std::string("ls ") + folder.name).c_str(), "r");
  CHECK(fgets(found, sizeof found, list) != nullptr);
  pclose(list);
  const std::string begin = "x_" + std::to_string(getpid()) + "_20";
  CHECK(std::string(found).compare(0, begin.size(), begin) == 0);
  CHECK(contains(found, "_100%_%q\n"));
  CHECK(std::string(found).size() == begin.size() - 2 + 15 + 9);
}

TEST_CASE("a file that the program closed, and gave its number to another one") {
  Folder folder;
  const std::string path = folder.path("b.log"), other = folder.path("other");
  start("log_file:" + path);
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  os::Event().log("Alloc SP", nullptr, 4096, 0, "first");
  const int mine = open(other.c_str(), O_RDWR | O_CREAT, 0600);
  for (int fd = 3; fd < 1024; ++fd) {
    if (fd != mine) dup2(mine, fd);
  }
  os::Event().log("Alloc SP", nullptr, 4096, 0, "second");
  CHECK(contains(read(path), " first\n"));
  CHECK(contains(read(path), " second\n"));
  CHECK(read(other).empty());
  for (int fd = 3; fd < 1024; ++fd) close(fd);
}

TEST_CASE("a file that cannot be opened is told, and the program goes on") {
  Folder folder;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int saved = dup(2);
  dup2(ends[1], 2);
  start("log_file:" + folder.path("none/here.log"));
  dup2(saved, 2);
  close(saved);
  close(ends[1]);
  char said[1000] = "";
  CHECK(::read(ends[0], said, sizeof said - 1) > 0);
  close(ends[0]);
  CHECK(contains(said, "none/here.log cannot be opened (ENOENT): no region log\n"));
  CHECK(!os::log_on);
}

TEST_CASE("errno is the program's") {
  Folder folder;
  errno = 123;
  start("log_file:" + folder.path("c.log"));
  CHECK(os::log_on);
  os::Event().log("Alloc SP", nullptr, 4096, 0);
  CHECK(errno == 123);
}
