// The page of figures of another process, whose format is in hummock/page.h. All that is read there is taken
// for hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hummock/page.h"

namespace hummock::tool {

// Why a process that was asked has not answered in time.
inline constexpr char kNoAnswer[] =
    "it has made no call that answers yet: it is idle, its thread caches serve every call, or a space serves "
    "its malloc (hummock spaces tells); ask again later";

// What was read, and what the system says of the process.
struct Snapshot {
  int pid = 0;
  std::string program;
  std::string cgroup;
  uint64_t resident = 0;
  uint64_t age_ms = 0;  // since the figures were taken
  bool fresh = false;   // taken because we asked
  hummock_page_t page = {};
};

// The library in a process may be older than this command, or newer. Fields that came later stand behind the
// others: an older page is shorter, and reads 0 there; of a newer one we read what we know.
inline constexpr size_t kFirstPageSize = offsetof(hummock_page_t, figures.drawn_bytes);

// The page, if the bytes are one of a version that we know, with every count within its table and every text
// ended. Else why not.
std::optional<hummock_page_t> check_page(std::string_view bytes, std::string* why);

// An open page, and its process.
class PageFile {
 public:
  PageFile() = default;
  ~PageFile();
  PageFile(PageFile&& other) noexcept;
  PageFile& operator=(PageFile&& other) noexcept;

  // Opens the page of the process; a child of fork is asked to make its own. Else *why says why not.
  static std::optional<PageFile> open(int pid, std::string* why);
  // Which of these open files is its page; they are closed. A child of fork may have its parent's alone.
  static std::optional<PageFile> choose(int pid, const std::vector<int>& fds, std::string* why);

  int pid() const { return pid_; }
  bool is_own() const { return is_own_; }
  // Of a parent's page: asks the child to make one of its own, and waits for nothing.
  void ask_child() const;
  // Asks for figures, and waits so long for them; then those that are there, however old.
  std::optional<Snapshot> read(unsigned wait_ms, std::string* why) const;
  // Asks for figures, and waits for nothing.
  void ask() const;
  // Where the process has that option in its table.
  std::optional<uint32_t> find_option(const std::string& name, unsigned wait_ms, std::string* why) const;
  // Has something done. 0, an error number, or -1: no answer within the time.
  int request(uint32_t kind, uint32_t option, int64_t value, unsigned wait_ms) const;

 private:
  bool take(int fd, std::string* why);
  std::optional<hummock_page_t> copy(std::string* why) const;
  template <class T>
  bool load(size_t offset, T* out) const;
  template <class T>
  bool store(size_t offset, T value) const;

  int pid_ = 0;
  int fd_ = -1;
  bool writable_ = false;
  bool is_own_ = false;
};

// A process that has no figures yet, and why.
struct Silent {
  std::string who;  // its number and its program
  std::string why;
};

// The figures of those of the processes that have a page which this user may open. All are asked, and have so
// long together; those that have none yet are in *silent.
std::vector<Snapshot> read_all(const std::vector<int>& pids, unsigned wait_ms, std::vector<Silent>* silent);

}  // namespace hummock::tool
