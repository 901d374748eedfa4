// Replay of a recorded sequence of allocations.
//
// A trace is a file in the byte order of the machine: the 8 letters "HUMMOCKT", a 32-bit number of blocks
// (the highest id plus 1), a 32-bit 0, a 64-bit number of records, then the records, 16 bytes each:
//   old id (32 bit), new id (32 bit), size (64 bit)
// where old id 0 means an allocation, new id 0 a free, and neither 0 a realloc; ids count from 1.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blocks.h"

namespace {

struct Record {
  uint32_t old_id;
  uint32_t new_id;
  uint64_t size;
};

struct Header {
  char magic[8];
  uint32_t ids;
  uint32_t zero;
  uint64_t records;
};

constexpr char kMagic[] = "HUMMOCKT";

struct Trace {
  const Record* records;
  uint64_t count;
  uint32_t ids;
};

// ---- The synthetic trace --------------------------------------------------------------------------------

constexpr uint64_t kSyntheticRecords = 500000;
constexpr uint32_t kSyntheticIds = 60000;

// Sizes of programs at large: a few favourite ones, the rest mostly small.
uint64_t synthetic_size(Rng& rng) {
  static constexpr uint16_t kFavourites[] = {24, 32, 40, 48, 56, 64, 72, 96, 128, 152, 208, 552, 1024, 4096};
  const size_t kind = rng.below(1000);
  if (kind < 600) return kFavourites[rng.below(sizeof kFavourites / sizeof *kFavourites)];
  if (kind < 900) return rng.log_uniform(kLeast, 512);
  if (kind < 990) return rng.log_uniform(512, 16384);
  return rng.one_in(50) ? rng.log_uniform(262144, 2 << 20) : rng.log_uniform(8192, 262144);
}

// Records until a block ends: most end soon, some live as long as a phase of the program, few to its end.
uint64_t synthetic_lifetime(Rng& rng) {
  const size_t kind = rng.below(100);
  if (kind < 70) return rng.log_uniform(1, 64);
  if (kind < 94) return rng.log_uniform(64, 30000);
  return rng.log_uniform(30000, 1000000);
}

// Blocks by the record they end at: a wheel of lists. Far ends come round and are put on again.
class Calendar {
 public:
  Calendar()
      : first_(arena_array<uint32_t>(kDays)),
        next_(arena_array<uint32_t>(kSyntheticIds + 1)),
        end_(arena_array<uint64_t>(kSyntheticIds + 1)) {}

  void put(uint32_t id, uint64_t end) {
    end_[id] = end;
    next_[id] = first_[end % kDays];
    first_[end % kDays] = id;
  }

  // The blocks that end at `now`, one at a time; 0 when there are no more.
  uint32_t take(uint64_t now) {
    for (uint32_t* link = &first_[now % kDays]; *link != 0; link = &next_[*link]) {
      const uint32_t id = *link;
      if (end_[id] > now) continue;
      *link = next_[id];
      return id;
    }
    return 0;
  }

 private:
  static constexpr size_t kDays = 65536;
  uint32_t* first_;
  uint32_t* next_;
  uint64_t* end_;
};

Trace make_trace(uint64_t seed) {
  Rng rng(seed);
  Record* records = arena_array<Record>(kSyntheticRecords + kSyntheticIds);
  uint32_t* unused = arena_array<uint32_t>(kSyntheticIds + 1);
  uint32_t* held = arena_array<uint32_t>(kSyntheticIds + 1);  // 1: lives
  Calendar calendar;
  size_t spare = 0;
  for (uint32_t id = kSyntheticIds; id >= 1; --id) unused[spare++] = id;
  uint64_t count = 0;
  for (uint64_t now = 0; count < kSyntheticRecords; ++now) {
    while (const uint32_t id = calendar.take(now)) {
      if (count == kSyntheticRecords) break;
      records[count++] = {id, 0, 0};
      held[id] = 0;
      unused[spare++] = id;
    }
    if (spare == 0 || count == kSyntheticRecords) continue;
    const uint32_t id = unused[--spare];
    held[id] = 1;
    const uint64_t size = synthetic_size(rng);
    records[count++] = {0, id, size};
    if (rng.one_in(20) && count < kSyntheticRecords) records[count++] = {id, id, 2 * size};
    calendar.put(id, now + 1 + synthetic_lifetime(rng));
  }
  for (uint32_t id = 1; id <= kSyntheticIds; ++id)
    if (held[id] != 0) records[count++] = {id, 0, 0};
  return {records, count, kSyntheticIds + 1};
}

// ---- Files ----------------------------------------------------------------------------------------------

void check_trace(const Trace& trace, const char* name) {
  auto* held = arena_array<uint8_t>(trace.ids);
  for (uint64_t i = 0; i < trace.count; ++i) {
    const Record& record = trace.records[i];
    const bool good = record.old_id < trace.ids && record.new_id < trace.ids &&
                      (record.old_id | record.new_id) != 0 && (record.old_id == 0 || held[record.old_id]) &&
                      (record.new_id == 0 || record.new_id == record.old_id || !held[record.new_id]) &&
                      record.size <= UINT32_MAX;
    if (!good) fail(2, "%s: record %llu makes no sense", name, static_cast<unsigned long long>(i));
    held[record.old_id] = 0;
    held[record.new_id] = 1;
  }
}

Trace read_trace(const char* name) {
  const int file = open(name, O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) fail(2, "cannot read %s", name);
  const auto length = static_cast<size_t>(status.st_size);
  void* memory = length < sizeof(Header)
                     ? MAP_FAILED
                     : mmap(nullptr, length, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
  if (memory == MAP_FAILED) fail(2, "%s is no trace", name);
  close(file);
  const auto* header = static_cast<const Header*>(memory);
  if (memcmp(header->magic, kMagic, sizeof header->magic) != 0 || header->ids == 0 ||
      header->records != (length - sizeof(Header)) / sizeof(Record))
    fail(2, "%s is no trace", name);
  const Trace trace = {reinterpret_cast<const Record*>(header + 1), header->records, header->ids};
  check_trace(trace, name);
  return trace;
}

void write_bytes(int file, const char* name, const void* bytes, size_t length) {
  for (size_t done = 0; done < length;) {
    const ssize_t wrote = write(file, static_cast<const char*>(bytes) + done, length - done);
    if (wrote <= 0) fail(3, "cannot write %s", name);
    done += static_cast<size_t>(wrote);
  }
}

void write_trace(const Trace& trace, const char* name) {
  const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) fail(2, "cannot write %s", name);
  Header header = {{}, trace.ids, 0, trace.count};
  memcpy(header.magic, kMagic, sizeof header.magic);
  write_bytes(file, name, &header, sizeof header);
  write_bytes(file, name, trace.records, trace.count * sizeof(Record));
  close(file);
}

// ---- Replay ---------------------------------------------------------------------------------------------

class Replay final : public Load {
 public:
  explicit Replay(Trace trace) : trace_(trace) {}

  void set_up(Run& run) override { blocks_ = arena_array<char*>(size_t{trace_.ids} * run.threads()); }

  void work(Worker& worker) override {
    char** blocks = blocks_ + worker.index * size_t{trace_.ids};
    do {  // whole traces: parts would not compare
      for (uint64_t i = 0; i < trace_.count; ++i) step(worker, blocks, trace_.records[i]);
      drop_all(worker, blocks, trace_.ids);  // what the trace did not free
    } while (worker.more(trace_.count));
  }

 private:
  static void step(Worker& worker, char** blocks, const Record& record) {
    const size_t size = record.size < kLeast ? kLeast : record.size;
    if (record.old_id == 0) {
      blocks[record.new_id] = make_block(worker, size);
    } else if (record.new_id == 0) {
      drop_block(worker, blocks[record.old_id]);
      blocks[record.old_id] = nullptr;
    } else {
      const size_t old_size = stamped_size(blocks[record.old_id]);
      char* block = static_cast<char*>(realloc(blocks[record.old_id], size));
      if (block == nullptr) fail_memory(size);
      blocks[record.old_id] = nullptr;
      Stamp kept;
      memcpy(&kept, block, sizeof kept);
      if (kept.size != old_size) fail_broken(block);
      stamp(block, size);
      worker.live_add(static_cast<int64_t>(size) - static_cast<int64_t>(old_size));
      blocks[record.new_id] = block;
    }
  }

  Trace trace_;
  char** blocks_ = nullptr;
};

constexpr Workload kWorkloads[] = {
    {.name = "trace-replay",
     .group = "challenge",
     .title = "Replay of a trace",
     .description =
         "Each thread replays a trace of allocations, reallocs and frees: of --trace FILE, or a synthetic "
         "one of 500,000 records with favourite sizes and mostly short lives.",
     .unit = "record",
     .threads = {{1, 2, 4}},
     .sizes = {},
     .quick = {.threads = {{1}}, .seconds = 0.2},
     .normal = {.threads = {{1, 2}}, .seconds = 0.5, .settle = 1},
     .full = {.seconds = 2, .settle = 1},
     .run =
         [](Run& run) {
           const Options& options = run.options;
           const Trace trace =
               options.trace != nullptr ? read_trace(options.trace) : make_trace(options.seed);
           if (options.write_trace != nullptr) write_trace(trace, options.write_trace);
           Replay load(trace);
           run.execute(load);
         }},
};

}  // namespace

Family trace_family() {
  return family_of(kWorkloads);
}
