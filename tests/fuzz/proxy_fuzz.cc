// Proxies of every kind against a shadow model: contents, overlap, buckets, how many elements there are,
// thread caches that come and go, the fallback, and misuse, which must be told and change nothing.
#include <errno.h>
#include <hummock/proxy.h>

#include <memory>
#include <set>
#include <vector>

#include "fuzz.h"
#include "shadow.h"

namespace {

using fuzz::Block;
using fuzz::expect;

constexpr size_t kMostBlocks = 3000;

class Run {
 public:
  explicit Run(fuzz::Input& input) : input_(input) { make(); }
  ~Run() {
    if (proxy_ == nullptr) return;
    while (!shadow_.empty()) end(shadow_.blocks().begin());
    expect(fallback_blocks_.empty(), "every block of the fallback came back to it");
    if (counts_) check_counts();
    if (input_.flag()) other_.reset();
    hummock_proxy_destroy(proxy_);
  }

  bool made() const { return proxy_ != nullptr; }

  void step() {
    const size_t dice = input_.byte();
    if (dice < 128) return begin();
    if (dice >= 246 && dice < 252) return cache();
    if (dice >= 252) return other_.reset();
    if (shadow_.empty()) return;
    if (dice < 200) return end(shadow_.pick(input_));
    if (dice < 228) return resize(shadow_.pick(input_));
    if (dice < 238) return shadow_.check(shadow_.pick(input_));
    misuse(shadow_.pick(input_));
  }

 private:
  static Run* self(void* context) { return static_cast<Run*>(context); }

  static void* allocate(void* context, size_t bytes, size_t alignment) {
    if (bytes > size_t{1} << 24) return nullptr;
    void* block = nullptr;
    if (posix_memalign(&block, std::max(alignment, sizeof(void*)), bytes) != 0) return nullptr;
    self(context)->fallback_blocks_.insert({block, std::max<size_t>(bytes, 1)});
    return block;
  }
  static void release(void* context, void* block) {
    expect(self(context)->take_out(block), "the fallback is given its own blocks alone");
    free(block);
  }
  static void* reallocate(void* context, void* block, size_t bytes, size_t alignment) {
    const auto entry = self(context)->entry_of(block);
    expect(entry != self(context)->fallback_blocks_.end(), "the fallback resizes its own blocks alone");
    void* moved = allocate(context, bytes, alignment);
    if (moved == nullptr) return nullptr;
    memcpy(moved, block, std::min(bytes, entry->second));
    release(context, block);
    return moved;
  }
  static size_t usable(void* context, void* block) {
    const auto entry = self(context)->entry_of(block);
    return entry == self(context)->fallback_blocks_.end() ? 0 : entry->second;
  }
  static void told(void* context, const char* what, const void*) {
    expect(what != nullptr && *what != '\0', "misuse says what it is");
    ++self(context)->misuses_;
  }

  std::set<std::pair<void*, size_t>>::iterator entry_of(void* block) {
    const auto at = fallback_blocks_.lower_bound({block, 0});
    return at != fallback_blocks_.end() && at->first == block ? at : fallback_blocks_.end();
  }
  bool take_out(void* block) {
    const auto at = entry_of(block);
    if (at == fallback_blocks_.end()) return false;
    fallback_blocks_.erase(at);
    return true;
  }

  void make() {
    const hummock_proxy_fallback_t fallback = {allocate, release, reallocate, usable, this};
    hummock_proxy_options_t options = {};
    options.size = sizeof options;
    options.bucket_count = static_cast<uint32_t>(input_.below(66));
    options.sizes = static_cast<hummock_proxy_sizes_t>(input_.below(3));
    options.bucket_bytes = input_.size_up_to(input_.flag() ? 1 << 20 : 1 << 13);
    options.count_calls = input_.flag();
    options.fallback = &fallback;
    options.misuse = told;
    options.misuse_context = this;
    if (input_.below(32) == 1) options.sizes = input_.byte();
    errno = 0;
    proxy_ = hummock_proxy_create(&options);
    expect(proxy_ != nullptr || errno == EINVAL || errno == ENOMEM, "errno of a proxy that cannot be had");
    counts_ = options.count_calls != 0;
    sizes_ = options.sizes;
    if (proxy_ != nullptr) live_of_.resize(hummock_proxy_bucket_count(proxy_));
  }

  template <class Act>
  void in_a_thread(Act act) {
    if (input_.below(4) != 0) return act();
    if (!other_) other_ = std::make_unique<fuzz::OtherThread>();
    other_->run(act);
  }

  // Its bucket is kept as its owner, -1 for the fallback.
  void admit(void* pointer, Block block) {
    block.usable = hummock_proxy_usable_size(proxy_, pointer);
    block.owner = hummock_proxy_bucket_of(proxy_, pointer);
    if (block.owner >= 0) {
      const size_t index = static_cast<size_t>(block.owner);
      expect(block.usable == hummock_proxy_size_at(sizes_, index), "the element's size");
      expect(++live_of_[index] <= hummock_proxy_bucket_elements(proxy_, index),
             "no more elements than there are");
      expect(index >= hummock_proxy_index_for(sizes_, block.asked),
             "a bucket whose elements are large enough");
    }
    shadow_.admit(pointer, block, input_.flag());
  }
  Block dismiss(fuzz::Shadow::Blocks::iterator at) {
    const Block block = shadow_.forget(at);
    if (block.owner >= 0) --live_of_[static_cast<size_t>(block.owner)];
    return block;
  }

  size_t draw() { return input_.size_up_to(input_.below(8) == 0 ? 1 << 20 : 1500); }

  void begin() {
    if (shadow_.count() >= kMostBlocks || shadow_.live_bytes() > size_t{64} << 20) return;
    Block block;
    block.asked = draw();
    const size_t alignment = input_.flag() ? 16 : input_.size_up_to(16384);
    while (block.alignment < alignment) block.alignment *= 2;
    void* pointer = nullptr;
    in_a_thread([&] { pointer = hummock_proxy_malloc(proxy_, block.asked, alignment); });
    expect(pointer != nullptr, "memory");
    if (block.asked != 0) {
      ++attempts_;
      return admit(pointer, block);
    }
    expect(hummock_proxy_usable_size(proxy_, pointer) == 0, "nothing is usable of no bytes");
    in_a_thread([&] { hummock_proxy_free(proxy_, pointer); });
    expect(misuses_ == 0, "the pointer of no bytes may be freed");
  }

  void end(fuzz::Shadow::Blocks::iterator at) {
    void* pointer = reinterpret_cast<void*>(at->first);
    shadow_.check(at);
    dismiss(at);
    in_a_thread([&] {
      errno = 4711;
      hummock_proxy_free(proxy_, pointer);
      expect(errno == 4711, "free keeps errno");
    });
    expect(misuses_ == 0, "a live block may be freed");
    last_freed_ = hummock_proxy_bucket_of(proxy_, pointer) >= 0 ? pointer : last_freed_;
  }

  void resize(fuzz::Shadow::Blocks::iterator at) {
    void* pointer = reinterpret_cast<void*>(at->first);
    const Block old = at->second;
    shadow_.check(at);
    const size_t size = std::max<size_t>(1, input_.flag() ? draw() : old.asked + input_.below(64));
    void* moved = nullptr;
    in_a_thread([&] { moved = hummock_proxy_realloc(proxy_, pointer, size, 16); });
    expect(moved != nullptr && misuses_ == 0, "a live block may be resized");
    expect(support::intact(moved, old.tag, old.written, std::min(size, old.asked)),
           "realloc keeps the contents");
    dismiss(at);
    Block block;
    block.asked = size;
    block.alignment = 16;
    resized_ = true;  // whether it counts as an attempt depends on where it went
    admit(moved, block);
  }

  // An address in the pools where no live block begins: inside a live one, or the one last freed.
  void misuse(fuzz::Shadow::Blocks::iterator at) {
    char* pointer = reinterpret_cast<char*>(at->first);
    if (at->second.owner < 0) return;
    const bool inner = at->second.usable > 16 && input_.flag();
    void* wrong = inner ? pointer + 1 + input_.below(at->second.usable - 1) : last_freed_;
    if (wrong == nullptr || shadow_.blocks().count(reinterpret_cast<uintptr_t>(wrong)) != 0) return;
    const size_t before = misuses_;
    in_a_thread([&] {
      if (input_.flag()) {
        hummock_proxy_free(proxy_, wrong);
      } else {
        resized_ = true;
        expect(hummock_proxy_realloc(proxy_, wrong, 100, 16) == nullptr, "no block from a wrong pointer");
      }
    });
    expect(misuses_ == before + 1, "misuse is told once");
    misuses_ = 0;
    shadow_.check(at);
  }

  void cache() {
    std::vector<uint32_t> most(input_.below(64));
    for (uint32_t& one : most) one = static_cast<uint32_t>(input_.size_up_to(100));
    const auto warmup = static_cast<hummock_proxy_warmup_t>(input_.below(3));
    const bool create = input_.below(4) != 0;
    in_a_thread([&] {
      if (!create) return hummock_proxy_thread_cache_destroy(proxy_);
      const int error = hummock_proxy_thread_cache_create(proxy_, warmup, most.data(), most.size());
      expect(error == 0 || error == EINVAL, "a thread's cache");
    });
  }

  void check_counts() {
    hummock_proxy_stats_t stats = {};
    expect(hummock_proxy_stats(proxy_, &stats) == 0, "calls are counted");
    expect(stats.attempts == stats.served + stats.fallback, "served or passed on");
    expect(stats.fallback == stats.by_size + stats.by_saturation, "passed on for one of two reasons");
    if (!resized_) expect(stats.attempts == attempts_, "every request is counted");
  }

  fuzz::Input& input_;
  fuzz::Shadow shadow_;
  hummock_proxy_t* proxy_ = nullptr;
  std::set<std::pair<void*, size_t>> fallback_blocks_;
  std::unique_ptr<fuzz::OtherThread> other_;
  std::vector<uint32_t> live_of_;  // elements handed out of each bucket
  hummock_proxy_sizes_t sizes_ = 0;
  bool counts_ = false, resized_ = false;
  size_t attempts_ = 0, misuses_ = 0;
  void* last_freed_ = nullptr;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  Run run(input);
  while (run.made() && !input.empty()) run.step();
  return 0;
}
