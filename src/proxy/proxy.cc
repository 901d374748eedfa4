// Proxies: made and ended.
#include "proxy/proxy.h"

#include <errno.h>
#include <pthread.h>

#include "base/bits.h"
#include "os/os.h"

namespace hummock::proxy {
namespace {

uint64_t slots_taken[kSlots / 64];  // guarded by `registry`
uint64_t last_serial;

void before_fork() {
  os::take_streams();
  registry.at_fork(os::ForkStep::before);
}
void after_fork_in_parent() {
  registry.at_fork(os::ForkStep::in_parent);
  os::release_streams();
}
// Caches of threads that the child does not have stay with the proxy: their elements are lost to the child.
void after_fork_in_child() {
  registry.at_fork(os::ForkStep::in_child);
  os::reset_streams();
}

// Before there are threads: one may fork while another makes the first proxy. And before the heap's, as in
// space/registry.cc.
__attribute__((constructor(101))) void handle_forks() {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

uint32_t take_slot() {
  os::LockGuard guard(registry);
  for (uint32_t i = 0; i < kSlots / 64; ++i) {
    if (~slots_taken[i] == 0) continue;
    const auto bit = static_cast<uint32_t>(__builtin_ctzll(~slots_taken[i]));
    slots_taken[i] |= uint64_t{1} << bit;
    return i * 64 + bit;
  }
  return kSlots;
}

void leave_slot(uint32_t slot) {
  if (slot == kSlots) return;
  os::LockGuard guard(registry);
  slots_taken[slot / 64] &= ~(uint64_t{1} << slot % 64);
}

// How large everything becomes. False when it cannot be.
struct Plan {
  uint32_t buckets;
  size_t pool_bytes;
  uint32_t shift;
  size_t pools;   // bytes of all pools
  size_t marks;   // bytes of all marks, the stopper's among them
  size_t record;  // bytes of the proxy and of all marks and links
};

// Newton's iteration: each step doubles the number of right bits, of which an odd number gives three.
uint64_t inverse_of(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

bool make_plan(const hummock_proxy_options_t& options, Plan* plan) {
  plan->buckets = options.bucket_count < kBuckets ? options.bucket_count : kBuckets;
  // An index has 32 bits, and the smallest element 16 bytes.
  if (options.bucket_bytes > size_t{1} << (sizeof(size_t) == 8 ? 35 : 31)) return false;
  plan->pool_bytes = base::align_up(options.bucket_bytes, kPoolStep);
  const size_t room = plan->pool_bytes == 0 ? kPoolStep : plan->pool_bytes;
  plan->shift = base::log2_floor(room) + (base::is_power_of_two(room) ? 0 : 1);
  plan->pools = size_t{plan->buckets} << plan->shift;
  plan->marks = base::align_up(plan->pools / kGranule + 1, sizeof(uint32_t));
  plan->record = sizeof(Proxy) + plan->marks;
  for (uint32_t i = 0; i < plan->buckets; ++i) {
    plan->record += plan->pool_bytes / hummock_proxy_size_at(options.sizes, i) * sizeof(uint32_t);
  }
  plan->record = base::align_up(plan->record, os::page_size());
  return true;
}

void open_pools(Proxy* proxy, const Plan& plan) {
  auto* links = reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(proxy + 1) + plan.marks);
  for (uint32_t i = 0; i < plan.buckets; ++i) {
    Pool& pool = proxy->pools[i];
    const size_t size = hummock_proxy_size_at(proxy->sizes, i);
    pool.base = proxy->base + (size_t{i} << plan.shift);
    pool.twos = static_cast<uint32_t>(__builtin_ctzll(size));
    pool.inverse = inverse_of(size >> pool.twos);
    pool.element_size = static_cast<uint32_t>(size);
    pool.elements = static_cast<uint32_t>(plan.pool_bytes / size);
    pool.links = links;
    links += pool.elements;
    // The inline calls take the first byte of a marked granule for the start of an element.
    const bool plain = size % kGranule == 0 && !proxy->counting;
    pool.mark = plain ? HUMMOCK_PROXY_MARK_PLAIN : HUMMOCK_PROXY_MARK_SPECIAL;
  }
}

void open_bins(Proxy* proxy) {
  for (uint32_t i = 0; i < kDirectSize / kSizeStep; ++i) {
    const size_t bucket = hummock_proxy_index_for(proxy->sizes, size_t{i} * kSizeStep + 1);
    const bool plain = bucket < proxy->buckets && proxy->pools[bucket].mark == HUMMOCK_PROXY_MARK_PLAIN;
    proxy->bin_of[i] = static_cast<uint16_t>((plain ? bucket : kBuckets) * sizeof(Bin));
  }
  proxy->marks[proxy->granules] = HUMMOCK_PROXY_MARK_SPECIAL;
}

constexpr hummock_proxy_fallback_t kDefaultFallback = {
    hummock_proxy_default_allocate, hummock_proxy_default_release, hummock_proxy_default_reallocate,
    hummock_proxy_default_usable_size, nullptr};

}  // namespace

Proxy* create(const hummock_proxy_options_t& options) {
  Plan plan;
  Proxy* proxy = nullptr;
  void* pools = nullptr;
  if (make_plan(options, &plan)) {
    proxy = static_cast<Proxy*>(os::map(plan.record));
    if (proxy != nullptr && plan.pools != 0) {
      pools = os::map(plan.pools);
      if (pools == nullptr) os::unmap(proxy, plan.record);
    }
  }
  if (proxy == nullptr || (pools == nullptr && plan.pools != 0)) {
    errno = ENOMEM;
    return nullptr;
  }
  // relaxed: it orders nothing.
  proxy->serial = __atomic_add_fetch(&last_serial, 1, __ATOMIC_RELAXED);
  proxy->base = static_cast<char*>(pools);
  proxy->shift = plan.shift - HUMMOCK_PROXY_GRANULE_LOG2;
  proxy->slot = take_slot();
  proxy->buckets = plan.buckets;
  proxy->sizes = options.sizes;
  proxy->counting = options.count_calls != 0;
  proxy->fallback = options.fallback == nullptr ? kDefaultFallback : *options.fallback;
  proxy->misuse = options.misuse;
  proxy->misuse_context = options.misuse_context;
  proxy->granules = plan.pools / kGranule;
  proxy->marks = reinterpret_cast<hummock_proxy_mark_t*>(proxy + 1);
  proxy->mapped = plan.record;
  open_pools(proxy, plan);
  open_bins(proxy);
  return proxy;
}

void destroy(Proxy* proxy) {
  forget_caches(proxy);
  leave_slot(proxy->slot);
  if (proxy->base != nullptr) os::unmap(proxy->base, proxy->granules * kGranule);
  os::unmap(proxy, proxy->mapped);
}

}  // namespace hummock::proxy
