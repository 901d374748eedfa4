#include "figures.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <utility>

#include "processes.h"

namespace hummock::tool {
namespace {

constexpr char kLink[] = "/memfd:" HUMMOCK_PAGE_NAME " (deleted)";
constexpr char kSilentChild[] =
    "it is a child of fork and has made no call that answers yet: it is idle, or its thread caches serve "
    "every "
    "call; ask again later";
constexpr unsigned kPauseUs = 2000;
constexpr unsigned kTries = 100;         // to read without tearing
constexpr unsigned kChildWaitMs = 1000;  // for a child's own page

#define HUMMOCK_HEAD_AT(field) offsetof(hummock_page_t, head.field)

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

template <size_t N>
bool is_text(const char (&text)[N]) {
  if (memchr(text, '\0', N) == nullptr) return false;
  return std::all_of(text, text + strlen(text), [](char c) { return c >= ' ' && c < 127; });
}

bool tables_hold(const hummock_figures_t& figures) {
  return figures.class_count <= HUMMOCK_PAGE_CLASSES && figures.thread_count <= HUMMOCK_PAGE_THREADS &&
         figures.heap_count <= HUMMOCK_PAGE_HEAPS && figures.option_count <= HUMMOCK_PAGE_OPTIONS &&
         figures.space_count <= HUMMOCK_PAGE_SPACES && figures.tag_count <= HUMMOCK_PAGE_TAGS;
}

// Else one process could spoil the metrics of all, in which each series may stand once.
bool rows_differ(const hummock_figures_t& f) {
  std::vector<uint64_t> sizes, tags;
  std::for_each(f.classes, f.classes + f.class_count,
                [&](const auto& row) { sizes.push_back(row.block_size); });
  std::for_each(f.tags, f.tags + f.tag_count, [&](const auto& row) { tags.push_back(row.tag); });
  const auto differ = [](std::vector<uint64_t>& all) {
    std::sort(all.begin(), all.end());
    return std::adjacent_find(all.begin(), all.end()) == all.end();
  };
  return differ(sizes) && differ(tags);
}

bool texts_hold(const hummock_figures_t& f) {
  const auto named = [](const auto& row) { return is_text(row.name); };
  return std::all_of(
             f.options, f.options + f.option_count,
             [](const hummock_page_option_t& each) { return is_text(each.name) && is_text(each.value); }) &&
         std::all_of(f.heap, f.heap + f.heap_count, named) &&
         std::all_of(f.space, f.space + f.space_count, named);
}

// A memfd whose length cannot change: no other kind of file has both seals. So nothing that somebody else put
// under the name is ever written to.
bool is_sealed_memory(int fd) {
  struct stat about;
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return false;
  const int seals = fcntl(fd, F_GET_SEALS);
  constexpr int kFixed = F_SEAL_SHRINK | F_SEAL_GROW;
  return seals >= 0 && (seals & kFixed) == kFixed && about.st_size >= ssize_t{kFirstPageSize};
}

// Why nothing may be read or written there by what we know of pages; null: it may.
const char* why_no_page(const hummock_page_head_t& head) {
  if (head.magic != HUMMOCK_PAGE_MAGIC) return "its page of figures is not Hummock's";
  if (head.version != HUMMOCK_PAGE_VERSION || head.size < kFirstPageSize)
    return "its page of figures is of another version of Hummock than this command";
  return nullptr;
}

}  // namespace

std::optional<hummock_page_t> check_page(std::string_view bytes, std::string* why) {
  const auto refuse = [why](const char* reason) {
    *why = reason;
    return std::nullopt;
  };
  hummock_page_t page = {};
  if (bytes.size() < kFirstPageSize) return refuse("its page of figures is too short");
  memcpy(&page, bytes.data(), std::min(bytes.size(), sizeof page));
  if (const char* reason = why_no_page(page.head)) return refuse(reason);
  if (!is_text(page.head.library) || !tables_hold(page.figures) || !texts_hold(page.figures) ||
      !rows_differ(page.figures))
    return refuse("its page of figures is broken");
  return page;
}

PageFile::~PageFile() {
  if (fd_ >= 0) close(fd_);
}

PageFile::PageFile(PageFile&& other) noexcept
    : pid_(other.pid_),
      fd_(std::exchange(other.fd_, -1)),
      writable_(other.writable_),
      is_own_(other.is_own_) {}

PageFile& PageFile::operator=(PageFile&& other) noexcept {
  pid_ = other.pid_;
  std::swap(fd_, other.fd_);
  writable_ = other.writable_;
  is_own_ = other.is_own_;
  return *this;
}

// Opened for reading first, as nothing happens by that; then once more for requests.
bool PageFile::take(int fd, std::string* why) {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  if (!is_sealed_memory(fd)) {
    *why = "what it calls a page of figures is not one";
    close(fd);
    return false;
  }
  fd_ = fd;
  hummock_page_head_t head;
  const char* reason = load(0, &head) ? why_no_page(head) : "its page of figures cannot be read";
  if (reason != nullptr) {
    *why = reason;
    return false;
  }
  const std::string again = "/proc/self/fd/" + std::to_string(fd);
  const int both = ::open(again.c_str(), O_RDWR | O_CLOEXEC);
  writable_ = both >= 0;
  if (writable_) close(fd);
  fd_ = writable_ ? both : fd;
  return true;
}

std::optional<PageFile> PageFile::choose(int pid, const std::vector<int>& fds, std::string* why) {
  const uint32_t number = number_in_its_namespace(pid);
  std::optional<PageFile> chosen;
  for (const int fd : fds) {
    PageFile file;
    uint32_t writer = 0;
    file.pid_ = pid;
    if (!file.take(fd, why) || !file.load(HUMMOCK_HEAD_AT(pid), &writer)) continue;
    file.is_own_ = writer == number;
    if (!chosen || !chosen->is_own_) chosen = std::move(file);
  }
  return chosen;
}

void PageFile::ask_child() const {
  uint32_t children = 0;
  if (load(HUMMOCK_HEAD_AT(children), &children) &&
      store(HUMMOCK_HEAD_AT(child), number_in_its_namespace(pid_)))
    store(HUMMOCK_HEAD_AT(children), children + 1);
}

std::optional<PageFile> PageFile::open(int pid, std::string* why) {
  unsigned pause = kPauseUs;
  for (const uint64_t end = now_ns() + uint64_t{kChildWaitMs} * 1000000; now_ns() < end; pause += kPauseUs) {
    auto file = choose(pid, open_links_to(pid, kLink, why), why);
    if (!file || file->is_own_) return file;
    if (!has_mapped(pid, kLink)) {
      *why = "it looks at another process, and does not run on Hummock";
      return std::nullopt;
    }
    if (!may_make_page(pid, why)) return std::nullopt;
    file->ask_child();  // again and again: others may ask other children by the same page
    usleep(pause);
  }
  *why = kSilentChild;
  return std::nullopt;
}

template <class T>
bool PageFile::load(size_t offset, T* out) const {
  return pread(fd_, out, sizeof *out, static_cast<off_t>(offset)) == ssize_t{sizeof *out};
}

template <class T>
bool PageFile::store(size_t offset, T value) const {
  return pwrite(fd_, &value, sizeof value, static_cast<off_t>(offset)) == ssize_t{sizeof value};
}

std::optional<hummock_page_t> PageFile::copy(std::string* why) const {
  std::string bytes(sizeof(hummock_page_t), '\0');
  for (unsigned i = 0; i < kTries; ++i) {
    uint32_t before = 1, after = 0;
    const bool begun = load(HUMMOCK_HEAD_AT(sequence), &before);
    const ssize_t length = pread(fd_, bytes.data(), sizeof(hummock_page_t), 0);
    const bool got = begun && length >= ssize_t{kFirstPageSize};
#if !defined(__SANITIZE_THREAD__)                         // which knows no fences
    std::atomic_thread_fence(std::memory_order_acquire);  // with the release of who writes
#endif
    if (!got || !load(HUMMOCK_HEAD_AT(sequence), &after)) break;
    if (before == after && before % 2 == 0)
      return check_page({bytes.data(), static_cast<size_t>(length)}, why);
    usleep(kPauseUs);
  }
  *why = "its page of figures cannot be read";
  return std::nullopt;
}

void PageFile::ask() const {
  uint32_t asked = 0;
  if (writable_ && load(HUMMOCK_HEAD_AT(asked), &asked)) store(HUMMOCK_HEAD_AT(asked), asked + 1);
}

std::optional<Snapshot> PageFile::read(unsigned wait_ms, std::string* why) const {
  Snapshot snapshot;
  uint32_t served = 0, asked = 0;
  ask();
  load(HUMMOCK_HEAD_AT(asked), &asked);
  for (const uint64_t end = now_ns() + uint64_t{wait_ms} * 1000000; writable_;) {
    if (!load(HUMMOCK_HEAD_AT(served), &served)) break;
    snapshot.fresh = static_cast<int32_t>(served - asked) >= 0;
    if (snapshot.fresh || now_ns() > end) break;
    usleep(kPauseUs);
  }
  const auto page = copy(why);
  if (!page) return std::nullopt;
  if (page->figures.taken == 0) {
    *why = kNoAnswer;
    return std::nullopt;
  }
  snapshot.page = *page;
  const uint64_t now = now_ns();
  snapshot.age_ms = now > page->figures.taken ? (now - page->figures.taken) / 1000000 : 0;
  snapshot.pid = pid_;
  snapshot.program = program_of(pid_);
  snapshot.cgroup = cgroup_of(pid_);
  snapshot.resident = resident_of(pid_);
  return snapshot;
}

namespace {

using Pages = std::vector<PageFile>;
using Note = std::function<void(int pid, const std::string& why)>;

// Children make pages in turn, as a page has room for one such request. Who was not asked in time is the
// first some other time.
void ask_children(Pages children, Pages* pages, uint64_t end, const Note& note) {
  if (!children.empty())
    std::rotate(children.begin(),
                children.begin() + static_cast<ptrdiff_t>(now_ns() / 1000 % children.size()), children.end());
  const auto has_answered = [&](const PageFile& child) {
    if (now_ns() >= end) return false;
    child.ask_child();
    usleep(kPauseUs);
    std::string why;
    auto file = PageFile::choose(child.pid(), open_links_to(child.pid(), kLink, nullptr), &why);
    if (!file) return true;  // it has ended
    if (!file->is_own()) return false;
    file->ask();
    pages->push_back(std::move(*file));
    return true;
  };
  while (!children.empty() && now_ns() < end)
    children.erase(std::remove_if(children.begin(), children.end(), has_answered), children.end());
  for (const PageFile& child : children) note(child.pid(), kSilentChild);
}

// Of all that have one. A child that has its parent's is in *children.
Pages open_pages(const std::vector<int>& pids, Pages* children, const Note& note) {
  Pages pages;
  for (const int pid : pids) {
    const std::vector<int> fds = open_links_to(pid, kLink, nullptr);
    if (fds.empty()) continue;
    std::string why;
    auto file = PageFile::choose(pid, fds, &why);
    if (file && !file->is_own() && !has_mapped(pid, kLink)) continue;  // one that looks, as we do
    if (!file || (!file->is_own() && !may_make_page(pid, &why))) {
      note(pid, why);
      continue;
    }
    if (file->is_own()) file->ask();
    (file->is_own() ? pages : *children).push_back(std::move(*file));
  }
  return pages;
}

}  // namespace

std::vector<Snapshot> read_all(const std::vector<int>& pids, unsigned wait_ms, std::vector<Silent>* silent) {
  const Note note = [silent](int pid, const std::string& why) {
    silent->push_back({std::to_string(pid) + " (" + printable(program_of(pid)) + ")", why});
  };
  Pages children;
  Pages pages = open_pages(pids, &children, note);
  const uint64_t begin = now_ns(), end = begin + uint64_t{wait_ms} * 1000000;
  ask_children(std::move(children), &pages, begin + (end - begin) / 2, note);
  std::vector<Snapshot> snapshots;
  for (const PageFile& file : pages) {
    std::string why;
    const uint64_t now = now_ns();
    const auto snapshot = file.read(now < end ? static_cast<unsigned>((end - now) / 1000000) : 0, &why);
    snapshot ? snapshots.push_back(*snapshot) : note(file.pid(), why);
  }
  return snapshots;
}

std::optional<uint32_t> PageFile::find_option(const std::string& name, unsigned wait_ms,
                                              std::string* why) const {
  const auto snapshot = read(wait_ms, why);
  if (!snapshot) return std::nullopt;
  const hummock_figures_t& figures = snapshot->page.figures;
  for (uint32_t i = 0; i < figures.option_count; ++i) {
    if (name == figures.options[i].name) return i;
  }
  *why = "its version of Hummock has no option " + name;
  return std::nullopt;
}

int PageFile::request(uint32_t kind, uint32_t option, int64_t value, unsigned wait_ms) const {
  if (!writable_) return EACCES;
  const uint64_t end = now_ns() + uint64_t{wait_ms} * 1000000;
  while (flock(fd_, LOCK_EX | LOCK_NB) != 0) {  // anybody who may open the page may hold it for ever
    if (errno != EWOULDBLOCK || now_ns() > end) return errno == EWOULDBLOCK ? EBUSY : errno;
    usleep(kPauseUs);
  }
  uint32_t number = 0, answered = 0;
  int32_t result = -1;
  load(HUMMOCK_HEAD_AT(request), &number);
  store(HUMMOCK_HEAD_AT(kind), kind);
  store(HUMMOCK_HEAD_AT(option), option);
  store(HUMMOCK_HEAD_AT(value), value);
  store(HUMMOCK_HEAD_AT(request), ++number);
  ask();
  for (; now_ns() < end; usleep(kPauseUs)) {
    if (!load(HUMMOCK_HEAD_AT(answered), &answered) || answered != number) continue;
    load(HUMMOCK_HEAD_AT(result), &result);
    break;
  }
  flock(fd_, LOCK_UN);
  return result;
}

}  // namespace hummock::tool
