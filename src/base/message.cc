#include "base/message.h"

#include <string.h>

#include "base/system.h"

namespace hummock::base {
namespace {

constexpr size_t kDigits = 20;  // of 2^64 in decimal

// Writes `number` so that it ends before `end`; returns its first character.
char* digits_before(char* end, uint64_t number, unsigned base) {
  do {
    *--end = "0123456789abcdef"[number % base];
    number /= base;
  } while (number != 0);
  return end;
}

// Names and values of the user's may hold anything. A control character would end the line, or do things to
// the terminal.
void copy_printable(char* to, const char* from, size_t length) {
  for (size_t i = 0; i < length; ++i) {
    const unsigned char c = static_cast<unsigned char>(from[i]);
    to[i] = c < ' ' || c == 127 ? '?' : from[i];
  }
}

}  // namespace

Line& Line::text(const char* words) {
  return text(words, strlen(words));
}

Line& Line::text(const char* words, size_t length) {
  const size_t left = kRoom - 1 - length_;
  const bool fits = length <= left;
  copy_printable(text_ + length_, words, fits ? length : left);
  length_ += fits ? length : left;
  if (!fits) cut();
  text_[length_] = '\n';
  return *this;
}

void Line::cut() {
  memcpy(text_ + kRoom - 1 - 3, "...", 3);
}

Line& Line::raw(const char* words) {
  const size_t length = strlen(words);
  if (length > kRoom - 1 - length_) return *this;
  memcpy(text_ + length_, words, length);
  length_ += length;
  text_[length_] = '\n';
  return *this;
}

Line& Line::dec(uint64_t number) {
  char room[kDigits];
  char* end = room + kDigits;
  const char* first = digits_before(end, number, 10);
  return text(first, static_cast<size_t>(end - first));
}

Line& Line::signed_dec(int64_t number) {
  if (number >= 0) return dec(static_cast<uint64_t>(number));
  return text("-").dec(-static_cast<uint64_t>(number));
}

Line& Line::hex(uint64_t number) {
  char room[kDigits];
  char* end = room + kDigits;
  const char* first = digits_before(end, number, 16);
  return text("0x").text(first, static_cast<size_t>(end - first));
}

Line& Line::pointer(const void* address) {
  return hex(reinterpret_cast<uintptr_t>(address));
}

Line& Line::bytes(size_t count) {
  constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  unsigned unit = 0;
  while (unit < 6 && (count >> (10 * unit)) >= 1024) ++unit;
  const unsigned shift = 10 * unit;
  dec(count >> shift);
  const size_t rest = count - (count >> shift << shift);
  const size_t tenths = unit == 0 ? 0 : (rest >> (shift - 10)) * 10 / 1024;
  if (tenths != 0) text(".").dec(tenths);
  return text(kUnits[unit]);
}

Line& Line::pad_to(size_t column) {
  while (length_ < column && length_ < kRoom - 1) text(" ", 1);
  return *this;
}

Line& Line::right(uint64_t number, size_t to) {
  size_t width = 1;
  for (uint64_t rest = number; rest >= 10; rest /= 10) ++width;
  return pad_to(to > width ? to - width : 0).dec(number);
}

void write_line(int fd, const Line& line) {
  write_text(fd, line.data(), line.size() + 1);
}

void say(const Line& line) {
  write_line(2, line);
}

void quit(const Line& line) {
  say(line);
  leave(kCannotHave);
}

void die(const Line& line) {
  say(line);
  stop();
}

namespace {
RefusalHandler refusal_handler = nullptr;
}

void set_refusal_handler(RefusalHandler handler) {
  // release: pairs with the acquire of offer; the handler sees what was written before it was set.
  __atomic_store_n(&refusal_handler, handler, __ATOMIC_RELEASE);
}

void offer(const Line& line) {
  const RefusalHandler handler = __atomic_load_n(&refusal_handler, __ATOMIC_ACQUIRE);
  if (handler == nullptr) return;
  char message[Line::kRoom];
  memcpy(message, line.data(), line.size());
  message[line.size()] = '\0';
  handler(message);
}

void refuse(const Line& line) {
  offer(line);
  die(line);
}

}  // namespace hummock::base
