#include "trace_write.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace hummock::tool {
namespace {

constexpr std::size_t kFrame = 1 << 20;  // bytes that are packed together: what a killed tool loses
constexpr int kLevel = 1;

FILE* open_unchanged(const std::string& path, bool* is_new) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC;
  int number = open(path.c_str(), kFlags | O_EXCL, 0666);
  *is_new = number >= 0;
  if (number < 0) number = open(path.c_str(), kFlags, 0666);
  return number < 0 ? nullptr : fdopen(number, "wb");
}

}  // namespace

TraceWriter::TraceWriter(const std::string& path)
    : path_(path), file_(open_unchanged(path, &is_new_)), packed_(ZSTD_compressBound(2 * kFrame)) {
  if (file_ == nullptr) throw std::runtime_error(path + " cannot be written: " + strerror(errno));
  context_ = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
  text_.reserve(2 * kFrame);
}

void TraceWriter::begin() {
  if (ftruncate(fileno(file_), 0) != 0 && errno != EINVAL) fail();  // a pipe has no length
  write(kTraceMagic, sizeof kTraceMagic - 1);
  write(reinterpret_cast<const char*>(&kTraceVersion), sizeof kTraceVersion);
}

TraceWriter::~TraceWriter() {
  ZSTD_freeCCtx(context_);
  if (file_ != nullptr) fclose(file_);
}

void TraceWriter::write(const char* bytes, std::size_t count) {
  if (!failure_.empty()) return;
  if (fwrite(bytes, 1, count, file_) != count) return fail();
  file_bytes_ += count;
}

void TraceWriter::fail() {
  if (failure_.empty()) failure_ = path_ + " cannot be written: " + strerror(errno);
}

void TraceWriter::pack() {
  const std::size_t size =
      ZSTD_compress2(context_, packed_.data(), packed_.size(), text_.data(), text_.size());
  if (ZSTD_isError(size) != 0) throw std::runtime_error(path_ + ": " + ZSTD_getErrorName(size));
  write(packed_.data(), size);
  text_.clear();
}

void TraceWriter::put_number(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) put(static_cast<std::uint8_t>(value | 0x80));
  put(static_cast<std::uint8_t>(value));
}

std::uint32_t TraceWriter::add_process(std::uint32_t pid, const std::string& program) {
  if (processes_.empty()) begin();
  put(kProcess);
  put_number(pid);
  put_number(program.size());
  for (const char letter : program) put(static_cast<std::uint8_t>(letter));
  processes_.emplace_back();
  processes_.back().pid = pid;
  processes_.back().program = program;
  times_.push_back(0);
  return static_cast<std::uint32_t>(processes_.size() - 1);
}

void TraceWriter::end_process(std::uint32_t process) {
  const TraceProcess& counts = processes_[process];
  put(kProcessEnd);
  put_number(process);
  put_number(counts.dropped);
  put_number(counts.unknown);
  put_number(counts.forks);
  put_number(counts.ended ? 1 : 0);
}

void TraceWriter::add(TraceCall& call) {
  TraceProcess& process = processes_[call.process];
  if (call.process != process_ || call.thread != thread_) {
    process_ = call.process;
    thread_ = call.thread;
    put(kThread);
    put_number(process_);
    put_number(thread_);
  }
  put(static_cast<std::uint8_t>(kCall + call.call));
  const auto since = static_cast<std::int64_t>(call.time - times_[process_]);
  times_[process_] = call.time;
  put_number(static_cast<std::uint64_t>(since) << 1 ^ static_cast<std::uint64_t>(since >> 63));
  ++process.calls;
  if (is_allocation(call.call)) {
    if (call.call == HUMMOCK_RECORD_ALIGNED) put_number(call.align);
    put_number(call.size);
    call.block = process.allocations++;
    process.bytes += call.size;
  } else {
    put_number(process.allocations - call.block);
    const bool resizes = call.call == kResize;
    if (resizes || call.call == HUMMOCK_RECORD_SIZED) put_number(call.size);
    if (call.call == HUMMOCK_RECORD_SIZED) put_number(call.align);
    ++(resizes ? process.resizes : process.releases);
    if (resizes) process.bytes += call.size;
  }
  if (text_.size() >= kFrame) pack();
}

void TraceWriter::finish() {
  if (!processes_.empty()) {
    put(kEnd);
    pack();
  } else if (is_new_) {
    unlink(path_.c_str());
  }
  if (fclose(file_) != 0) fail();
  file_ = nullptr;
}

}  // namespace hummock::tool
