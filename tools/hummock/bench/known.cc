// What hummock-bench-work and hummock-bench-spaces offer, for a tool without them beside it. Tests hold it to
// what they list themselves.
#include "bench/spaces_bench.h"
#include "bench/worker.h"

namespace hummock::tool {
namespace {

struct KnownWorkload {
  const char* group;
  const char* name;
  const char* title;
};

constexpr KnownWorkload kWorkloads[] = {
    {"basic", "pair", "Pair"},
    {"basic", "batch-1000-fifo", "Batch of 1,000, in order"},
    {"basic", "batch-1000-lifo", "Batch of 1,000, in reverse"},
    {"basic", "batch-1000-random", "Batch of 1,000, in random order"},
    {"basic", "batch-20000-fifo", "Batch of 20,000, in order"},
    {"basic", "batch-20000-lifo", "Batch of 20,000, in reverse"},
    {"basic", "batch-20000-random", "Batch of 20,000, in random order"},
    {"random", "random-live-10k", "10,000 live blocks"},
    {"random", "random-live-300k", "300,000 live blocks"},
    {"random", "random-live-3m", "3,000,000 live blocks"},
    {"large", "large-live", "Large blocks, 64 KiB to the size"},
    {"large", "very-large", "Blocks of 5 to 25 MiB"},
    {"basic", "calloc", "calloc"},
    {"realloc", "realloc-array", "An array grows to the size"},
    {"realloc", "realloc-strings", "Strings grow by appending"},
    {"realloc", "realloc-tiny", "Reallocs, 16 to 256 bytes"},
    {"realloc", "realloc-small", "Reallocs, 16 bytes to 4 KiB"},
    {"realloc", "realloc-medium", "Reallocs, 1 to 64 KiB"},
    {"realloc", "realloc-large", "Reallocs, 64 KiB to 4 MiB"},
    {"server", "server", "Server: threads that hand on their blocks"},
    {"server", "transfer-stress", "Random exchange of blocks between threads"},
    {"server", "mixed-rounds", "Mixed sizes in rounds"},
    {"cross-thread", "queue-1to1", "Producer and consumer, one block at a time"},
    {"cross-thread", "queue-1to1-batch", "Producer and consumer, 256 blocks at a time"},
    {"cross-thread", "queue-ntom", "Producers and consumers, one block at a time"},
    {"cross-thread", "queue-ntom-batch", "Producers and consumers, 256 blocks at a time"},
    {"cross-thread", "cross-mid", "Mid sizes freed by another thread"},
    {"cross-thread", "false-sharing-active", "Active false sharing"},
    {"cross-thread", "false-sharing-passive", "Passive false sharing"},
    {"grid", "big-brain", "Grid of threads and sizes"},
    {"small", "small-sweeps", "100,000 small blocks a thread, replaced in sweeps"},
    {"small", "small-ring", "Small blocks through a ring of 10,000"},
    {"scaling", "constant-load", "Constant load on more and more threads"},
    {"latency", "spaces-sequential", "Time to allocate and to free, size by size"},
    {"latency", "spaces-churn", "Time to allocate and to free, 70 % in use"},
    {"shrink", "mmtest", "Blocks of 20,000 bytes cut to one byte"},
    {"shrink", "shrink", "Blocks of 20,000 bytes cut to the size"},
    {"frames", "frames", "A game's frames"},
    {"frames", "frames-small-pages", "A game's frames, large pages off"},
    {"challenge", "creep", "Address-space creep"},
    {"challenge", "fragmentation", "A growing array among short strings"},
    {"challenge", "string-threads", "Threads that build strings"},
    {"challenge", "wild-threads", "Thread after thread"},
    {"challenge", "alloc-use-free", "Usual sizes, used"},
    {"challenge", "block-spread", "Small blocks among large ones"},
    {"memory", "residue", "What stays after all is freed"},
    {"memory", "idle-producers", "Idle threads whose blocks another frees"},
    {"challenge", "trace-replay", "Replay of a trace"},
    {"programs", "python", "Python"},
    {"programs", "sqlite", "SQLite"},
    {"programs", "git", "Git"},
    {"programs", "compiler", "A compiler"},
    {"programs", "redis", "Redis"},
    {"programs", "lua", "Lua"},
    {"judges", "larson", "After Larson: threads inherit blocks"},
    {"judges", "larson-sized", "After Larson, with sized delete"},
    {"judges", "xmalloc", "After xmalloc: some allocate, others free"},
    {"judges", "sh6", "After sh6bench: waves of small blocks"},
    {"judges", "sh8", "After sh8bench: waves, some freed elsewhere"},
};

}  // namespace

std::vector<Workload> known_workloads() {
  std::vector<Workload> workloads;
  for (const KnownWorkload& known : kWorkloads) {
    Workload& workload = workloads.emplace_back();
    workload.group = known.group;
    workload.name = known.name;
    workload.title = known.title;
  }
  return workloads;
}

std::vector<std::string> known_scenarios() {
  return {"sequential", "churn", "near-full", "alternating", "holes"};
}

}  // namespace hummock::tool
