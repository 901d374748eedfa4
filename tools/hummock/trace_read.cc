#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "trace.h"

namespace hummock::tool {
namespace {

// The file ended where a record did not.
struct Cut {};

}  // namespace

TraceReader::TraceReader(std::istream& in, std::string name)
    : in_(in),
      name_(std::move(name)),
      context_(ZSTD_createDCtx()),
      packed_(ZSTD_DStreamInSize()),
      text_(ZSTD_DStreamOutSize()) {
  char head[sizeof kTraceMagic - 1 + 4] = {};
  in_.read(head, sizeof head);
  std::uint32_t version = 0;
  memcpy(&version, head + sizeof kTraceMagic - 1, sizeof version);
  const bool ours = in_.gcount() == sizeof head && memcmp(head, kTraceMagic, sizeof kTraceMagic - 1) == 0;
  std::string wrong;
  if (!ours) wrong = "is not a trace of hummock record";
  if (ours && version != kTraceVersion)
    wrong = "has format " + std::to_string(version) + "; this program reads format " +
            std::to_string(kTraceVersion);
  if (wrong.empty()) return;
  ZSTD_freeDCtx(context_);
  throw std::runtime_error(name_ + " " + wrong);
}

TraceReader::~TraceReader() {
  ZSTD_freeDCtx(context_);
}

void TraceReader::refuse(const std::string& what) const {
  throw std::runtime_error(name_ + " is damaged: " + what);
}

// More text; false: the file has ended.
bool TraceReader::fill() {
  at_ = end_ = 0;
  while (end_ == 0) {
    if (packed_at_ == packed_end_) {
      in_.read(packed_.data(), static_cast<std::streamsize>(packed_.size()));
      packed_at_ = 0;
      packed_end_ = static_cast<std::size_t>(in_.gcount());
      if (packed_end_ == 0) return false;
    }
    ZSTD_inBuffer input = {packed_.data(), packed_end_, packed_at_};
    ZSTD_outBuffer output = {text_.data(), text_.size(), 0};
    const std::size_t left = ZSTD_decompressStream(context_, &output, &input);
    if (ZSTD_isError(left) != 0) refuse(ZSTD_getErrorName(left));
    packed_at_ = input.pos;
    end_ = output.pos;
  }
  return true;
}

bool TraceReader::byte(std::uint8_t& value) {
  if (at_ == end_ && !fill()) return false;
  value = static_cast<std::uint8_t>(text_[at_++]);
  return true;
}

std::uint64_t TraceReader::number(std::uint64_t most, const char* what) {
  std::uint64_t value = 0;
  std::uint8_t next = 0x80;
  for (unsigned shift = 0; (next & 0x80) != 0; shift += 7) {
    if (!byte(next)) throw Cut();
    const std::uint64_t part = next & 0x7f;
    if (shift > 63 || (shift == 63 && part > 1)) refuse(std::string(what) + " is not a number");
    value |= part << shift;
  }
  if (value > most) refuse(std::string(what) + " is " + std::to_string(value));
  return value;
}

void TraceReader::read_process() {
  if (processes_.size() == kMostProcesses) refuse("too many processes");
  TraceProcess process;
  process.pid = static_cast<std::uint32_t>(number(UINT32_MAX, "a process's number"));
  for (std::uint64_t length = number(255, "the length of a name"); length != 0; --length) {
    std::uint8_t letter = 0;
    if (!byte(letter)) throw Cut();
    process.program += letter > ' ' && letter < 127 ? static_cast<char>(letter) : '?';
  }
  processes_.push_back(std::move(process));
  states_.emplace_back();
}

void TraceReader::read_process_end() {
  const std::uint64_t which = number(UINT32_MAX, "a process");
  if (which >= processes_.size()) refuse("a process ends that never began");
  TraceProcess& process = processes_[which];
  process.dropped = number(UINT64_MAX, "a count");
  process.unknown = number(UINT64_MAX, "a count");
  process.forks = number(UINT64_MAX, "a count");
  process.ended = number(1, "a flag") != 0;
}

void TraceReader::read_thread() {
  const std::uint64_t process = number(UINT32_MAX, "a process");
  if (process >= processes_.size()) refuse("a thread belongs to a process that never began");
  const std::uint64_t thread = number(kMostThreads, "a thread");
  if (thread > processes_[process].threads) refuse("a thread comes before its time");
  process_ = static_cast<std::uint32_t>(process);
  thread_ = static_cast<std::uint32_t>(thread);
  processes_[process].threads = std::max(processes_[process].threads, thread_ + 1);
  has_thread_ = true;
}

void TraceReader::read_block(TraceCall& call, State& state) {
  TraceProcess& process = processes_[call.process];
  if (is_allocation(call.call)) {
    if (process.allocations == kMostBlocks) refuse("too many blocks");
    if (call.call == HUMMOCK_RECORD_ALIGNED)
      call.align = static_cast<std::uint8_t>(number(kMostAlign, "an alignment"));
    call.size = number(kMostSize, "a size");
    call.block = process.allocations++;
    process.bytes += call.size;
    state.live.push_back(true);
    return;
  }
  const std::uint64_t back = number(UINT64_MAX, "a block");
  if (back == 0 || back > process.allocations || !state.live[process.allocations - back])
    refuse("a call names a block that is not live");
  call.block = process.allocations - back;
  const bool resizes = call.call == kResize;
  if (resizes || call.call == HUMMOCK_RECORD_SIZED) call.size = number(kMostSize, "a size");
  if (call.call == HUMMOCK_RECORD_SIZED)
    call.align = static_cast<std::uint8_t>(number(kMostAlign, "an alignment"));
  ++(resizes ? process.resizes : process.releases);
  if (resizes) process.bytes += call.size;
  if (!resizes) state.live[call.block] = false;
}

void TraceReader::read_call(unsigned kind, TraceCall& call) {
  call = {};
  call.call = static_cast<std::uint8_t>(kind);
  if (!is_allocation(kind) && !is_release(kind) && kind != kResize) refuse("a record of an unknown kind");
  if (!has_thread_) refuse("a call belongs to no thread");
  call.process = process_;
  call.thread = thread_;
  State& state = states_[process_];
  const std::uint64_t zigzag = number(UINT64_MAX, "a time");
  state.time += zigzag >> 1 ^ (~(zigzag & 1) + 1);
  call.time = state.time;
  read_block(call, state);
  ++processes_[process_].calls;
}

bool TraceReader::next(TraceCall& call) {
  try {
    for (std::uint8_t kind = 0; !done_ && byte(kind);) {
      if (kind == kProcess) {
        read_process();
      } else if (kind == kProcessEnd) {
        read_process_end();
      } else if (kind == kThread) {
        read_thread();
      } else if (kind == kEnd) {
        done_ = true;
      } else if (kind < kCall) {
        refuse("a record of an unknown kind");
      } else {
        read_call(kind - kCall, call);
        return true;
      }
    }
  } catch (const Cut&) {
  }
  cut_ = !done_;
  done_ = true;
  return false;
}

}  // namespace hummock::tool
