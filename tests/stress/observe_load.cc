// Everything that looks at the heap or changes its options, at once, beside 64 threads that allocate, hand
// blocks on, fork, throw, load and unload a library. In each answer, and at rest, all sums agree.
// OBSERVE_REQUESTS=10000 makes it so many requests from outside, and so many walks.
#include <errno.h>
#include <fcntl.h>
#include <hummock/hummock.h>
#include <hummock/page.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "heap/attach.h"
#include "observe/page.h"
#include "stress/plugin.h"
#include "stress/stress.h"

namespace {

constexpr size_t kThreads = 64;

std::atomic<bool> stop{false};
std::atomic<size_t> answers{0};  // to requests from outside
std::atomic<size_t> walks{0};
size_t wanted;  // of either
const char* plugin;

// ---- The program ----------------------------------------------------------------------------------

std::mutex handed_lock;
std::vector<void*> handed;     // from thread to thread
std::vector<void*> survivors;  // of all threads, at the end

void hand_on(void* block) {
  const std::lock_guard guard(handed_lock);
  handed.push_back(block);
  if (handed.size() < 100) return;
  for (size_t i = 0; i < 50; ++i) hummock_free(handed[i]);
  handed.erase(handed.begin(), handed.begin() + 50);
}

void throw_some(int depth) {
  if (depth == 0) throw std::string(100, 'x');
  throw_some(depth - 1);
}

void fork_once() {
  const pid_t child = fork();
  if (child == 0) {
    hummock_free(hummock_malloc(100000));
    _exit(0);
  }
  int status = -1;
  const bool ended = child > 0 && waitpid(child, &status, 0) == child;
  if (!ended || status != 0) fprintf(stderr, "child %d: status %#x, errno %d\n", child, status, errno);
  stress::require(ended && status == 0, "a child that ends well");
}

bool enough() {
  return answers >= wanted && walks >= wanted;
}

void use(size_t self) {
  support::Random random(support::run_seed() + self);
  hummock_heap_t* heap = hummock_heap_create();
  void* live[64] = {};
  // Until enough was asked: of that there is more in longer runs.
  for (size_t i = std::min<size_t>(support::scaled(5000, 500), 5000); i > 0 || !enough(); i -= i > 0) {
    void*& block = live[random.below(64)];
    if (random.one_in(8) && block != nullptr) {
      hand_on(block);
    } else {
      hummock_free(block);
    }
    if (random.one_in(200)) hummock_tag(static_cast<uint32_t>(random.below(6)));
    const size_t size = 1 + random.size_up_to(random.one_in(500) ? size_t{4} << 20 : 9000);
    block = random.one_in(6) ? hummock_heap_malloc(heap, size) : hummock_malloc(size);
    if (block == nullptr) continue;  // a limit of the outsider's
    static_cast<char*>(block)[0] = 1;
    if (random.one_in(10)) {
      void* resized = hummock_realloc(block, 1 + random.below(9000));
      if (resized != nullptr) block = resized;
    }
    if (random.one_in(3000)) fork_once();
    if (random.one_in(1000)) stress::load_plugin(plugin);
    if (!random.one_in(1000)) continue;
    try {
      throw_some(5);
    } catch (const std::string& caught) {
      stress::require(caught.size() == 100, "what was thrown");
    }
  }
  for (void* block : live) hummock_free(block);
  void* kept[50];
  for (void*& block : kept) block = hummock_malloc(1 + random.size_up_to(200000));
  hummock_tag(0);
  const std::lock_guard guard(handed_lock);  // blocks of this heap may be among them
  for (void* block : handed) hummock_free(block);
  handed.clear();
  survivors.insert(survivors.end(), kept, kept + 50);
  hummock_heap_destroy(heap);
}

// ---- Who looks ------------------------------------------------------------------------------------

int open_page() {
  for (int fd = 0; fd < 2000; ++fd) {
    char name[64] = {}, link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, name, sizeof name - 1) > 0 && strstr(name, "/memfd:hummock ") == name)
      return open(link, O_RDWR | O_CLOEXEC);
  }
  return -1;
}

template <class T>
T read_at(int fd, size_t offset) {
  T value{};
  stress::require(pread(fd, &value, sizeof value, static_cast<off_t>(offset)) == sizeof value, "the page");
  return value;
}
template <class T>
void write_at(int fd, size_t offset, T value) {
  stress::require(pwrite(fd, &value, sizeof value, static_cast<off_t>(offset)) == sizeof value, "the page");
}
#define AT(field) offsetof(hummock_page_t, head.field)

// As another process would. Options are set by number, all of them, with values in and out of their bounds;
// but for hard limits, by which everything would fail.
size_t ask(int fd, support::Random& random, uint32_t hard) {
  const uint32_t option = static_cast<uint32_t>(random.below(50));
  if (option == hard) return 0;
  const int64_t values[] = {0, 1, 50, 1000, -1, int64_t{1} << 22, int64_t{1} << 40};
  write_at(fd, AT(kind), static_cast<uint32_t>(random.below(4)));
  write_at(fd, AT(option), option);
  write_at(fd, AT(value), values[random.below(7)]);
  write_at(fd, AT(request), read_at<uint32_t>(fd, AT(request)) + 1);
  const uint32_t asked = read_at<uint32_t>(fd, AT(asked)) + 1;
  write_at(fd, AT(asked), asked);
  // Others of the user may ask, too: theirs comes later and is the one that is named.
  while (!stop && static_cast<int32_t>(read_at<uint32_t>(fd, AT(served)) - asked) < 0) usleep(200);
  return 1;
}

// Between two looks at the sequence number others may write: then there is one more try.
void read_figures(int fd, hummock_figures_t* out) {
  uint32_t before, after;
  do {
    before = read_at<uint32_t>(fd, AT(sequence));
    stress::require(pread(fd, out, sizeof *out, offsetof(hummock_page_t, figures)) == sizeof *out,
                    "the page");
    after = read_at<uint32_t>(fd, AT(sequence));
  } while (before != after || before % 2 != 0);
}

// What is gathered bit by bit, beside running threads, is summed up from the same bits.
void check_answer(int fd) {
  hummock_figures_t its;
  read_figures(fd, &its);
  uint64_t live = its.large_bytes, purged = 0, cached = 0, drawn = 0, in_heaps = 0;
  for (uint32_t i = 0; i < its.class_count; ++i) {
    const hummock_page_class_t& row = its.classes[i];
    live += row.live_blocks * row.block_size;
    purged += row.purged;
    stress::require(row.live_blocks * row.block_size <= row.bytes, "blocks are within their slabs");
    stress::require(row.purged + row.untouched <= row.bytes, "so is what is in no memory");
  }
  for (uint32_t i = 0; i < its.thread_count; ++i) cached += its.thread[i].cached;
  for (uint32_t i = 0; i < its.heap_count; ++i) in_heaps += its.heap[i].live;
  for (uint32_t i = 0; i < its.tag_count; ++i) drawn += its.tags[i].bytes;
  stress::require(its.live == live && its.purged_pages == purged, "figures are the sums of the classes");
  stress::require(its.cached == cached && its.threads == its.thread_count, "of the threads");
  stress::require(its.drawn_bytes == drawn, "of the tags");
  stress::require(in_heaps <= its.live, "heaps are a part");
  stress::require(its.taken >= its.began && its.began != 0, "it began before it ended");
}

uint32_t find_hard_limit() {
  std::string text(hummock_stats_json(nullptr, 0) + 8192, '\0');
  text.resize(hummock_stats_json(text.data(), text.size()));
  size_t at = text.find("\"options\":{"), end = text.find("\"limit_hard\"");
  stress::require(at != std::string::npos && end != std::string::npos, "options");
  uint32_t number = 0;
  for (at = text.find("\",\"", at); at < end; at = text.find("\",\"", at + 1)) ++number;
  return number;
}

void look_from_outside() {
  support::Random random(support::run_seed() + 100);
  const uint32_t hard = find_hard_limit();
  const int fd = open_page();
  stress::require(fd >= 0, "a page of figures");
  // Another process would not wait behind 64 threads; where it is not allowed, it takes longer. It sleeps
  // most of the time.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), -20);
  while (!stop) {
    const size_t answered = ask(fd, random, hard);
    if (answered != 0 && !stop) check_answer(fd);
    answers += answered;
  }
  close(fd);
}

struct Sum {
  size_t bytes = 0;
  size_t blocks = 0;
};
int add(void* context, void*, size_t size) {
  auto* sum = static_cast<Sum*>(context);
  sum->bytes += size;
  ++sum->blocks;
  return 1;
}

void look_from_inside() {
  support::Random random(support::run_seed() + 200);
  std::string text(1 << 20, '\0');
  while (!stop) {
    Sum sum;
    stress::require(hummock_heap_walk(nullptr, add, &sum) == 0, "a walk");
    const size_t length = hummock_stats_json(text.data(), text.size());
    stress::require(length > 100 && length < text.size() && text[length - 1] == '}', "figures as JSON");
    hummock_tag_stats_t tag = {sizeof tag, 0, 0};
    const int error = hummock_tag_stats(static_cast<uint32_t>(random.below(8)), &tag);
    stress::require(error == 0 || error == ENOENT, "a tag");
    void* block = hummock_malloc(100);
    const int percent = hummock_slab_utilisation(block);
    stress::require(percent >= 0 && percent <= 100, "the use of a slab");
    hummock_free(block);
    if (random.one_in(20)) hummock_trim(0);
    ++walks;
  }
}

std::atomic<size_t> told;
const hummock_hooks_t kHooks = {sizeof kHooks,
                                nullptr,
                                [](void*, void*, size_t) { told.fetch_add(1, std::memory_order_relaxed); },
                                [](void*, void*, size_t, void*) {},
                                [](void*, void*) {},
                                [](void*, const char*, const void*, size_t) {}};

void install_hooks() {
  for (bool on = true; !stop; on = !on) {
    stress::require(hummock_set_hooks(on ? &kHooks : nullptr) == 0, "hooks");
    usleep(2000);
  }
  hummock_set_hooks(nullptr);
}

// ---- At rest --------------------------------------------------------------------------------------

// Of this thread's own: it is the only one.
void check_sums() {
  hummock_option_set("limit_soft", "none");
  hummock_option_set("decay_ms", "1000");
  hummock_trim(0);  // what rests here goes back
  Sum walked;
  hummock_heap_walk(nullptr, add, &walked);
  hummock_stats_t stats = {};
  stats.size = sizeof stats;
  hummock_stats(&stats);
  size_t classes = stats.large_bytes;
  for (size_t i = 1; i < stats.classes; ++i)
    classes += stats.per_class[i].live_blocks * stats.per_class[i].block_size;
  size_t expected = 0, count = 0;
  for (const void* block : survivors) {
    expected += hummock_usable_size(block);
    count += block != nullptr;
  }
  fprintf(stderr, "at rest: live %zu, of classes %zu, walked %zu in %zu blocks, expected %zu in %zu\n",
          stats.live, classes, walked.bytes, walked.blocks, expected, count);
  stress::require(walked.bytes == expected && walked.blocks == count, "a walk finds what lives");
  stress::require(stats.live == classes, "live is the sum of the classes");
  stress::require(stats.live == walked.bytes, "live is what a walk finds");
  stress::require(stats.threads <= 1 && stats.heaps == 0, "threads and heaps are gone");
}

}  // namespace

int main(int argc, char** argv) {
  const char* requests = getenv("OBSERVE_REQUESTS");
  wanted = requests != nullptr ? strtoul(requests, nullptr, 10) : support::scaled(500, 50);
  support::HangGuard guard(static_cast<unsigned>(280 * std::max<size_t>(1, wanted / 500)));
  if (argc != 2) return 2;
  plugin = argv[1];
  support::run_seed();  // before there are threads, and children
  // What the shared library does when it is mapped.
  hummock::heap::initialise();
  hummock::observe::start_page();
  std::vector<std::thread> others;
  others.emplace_back(look_from_outside);
  others.emplace_back(look_from_inside);
  others.emplace_back(install_hooks);
  stress::run_threads(kThreads, use);
  stop = true;
  for (std::thread& thread : others) thread.join();
  fprintf(stderr, "%zu answers, %zu walks, %zu blocks told of\n", answers.load(), walks.load(), told.load());
  stress::require(walks > 0 && told > 0, "somebody looked");
  check_sums();
}
