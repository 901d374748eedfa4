#include "json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"

namespace {
constexpr size_t kRoom = 200 * 1024;  // a table of all sizes takes 20 KiB, the list of workloads 60
}

Json::Json() : buffer_(arena_array<char>(kRoom)) {}

void Json::put(const char* bytes, size_t count) {
  if (length_ + count > kRoom) fail(3, "more output than there is room for");
  memcpy(buffer_ + length_, bytes, count);
  length_ += count;
}

void Json::separate() {
  if (!first_) put(",", 1);
  first_ = false;
}

Json& Json::open(char bracket) {
  separate();
  put(&bracket, 1);
  first_ = true;
  return *this;
}

Json& Json::close(char bracket) {
  put(&bracket, 1);
  first_ = false;
  return *this;
}

Json& Json::key(const char* name) {
  text(name);
  put(":", 1);
  first_ = true;
  return *this;
}

Json& Json::text(const char* value) {
  separate();
  put("\"", 1);
  for (const char* at = value; *at != 0; ++at) {
    if (*at == '"' || *at == '\\') put("\\", 1);
    if (static_cast<unsigned char>(*at) >= ' ') put(at, 1);
  }
  put("\"", 1);
  return *this;
}

Json& Json::raw(const char* value) {
  separate();
  put(value, strlen(value));
  return *this;
}

Json& Json::number(uint64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(value));
  return raw(digits);
}

Json& Json::number(double value) {
  char digits[40];
  snprintf(digits, sizeof digits, value < 1e6 ? "%.9g" : "%.0f", value);
  return raw(digits);
}

Json& Json::splice(const Json& other) {
  separate();
  put(other.buffer_, other.length_);
  return *this;
}

void Json::print(int file) const {
  for (size_t done = 0; done < length_;) {
    const ssize_t wrote = write(file, buffer_ + done, length_ - done);
    if (wrote <= 0) fail(3, "cannot write the result");
    done += static_cast<size_t>(wrote);
  }
  if (write(file, "\n", 1) != 1) fail(3, "cannot write the result");
}
