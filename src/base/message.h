// Text for people, made without malloc, stdio or locale: usable before main, inside malloc and while
// locks are held.
#ifndef HUMMOCK_BASE_MESSAGE_H
#define HUMMOCK_BASE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

namespace hummock::base {

// One line of text being built. Text that does not fit is cut, and the line then ends in "..."; control
// characters become question marks.
class Line {
 public:
  static constexpr size_t kRoom = 512;

  // Every message names the library; tables (which do not) pass an empty prefix.
  explicit Line(const char* prefix = "hummock: ") { text(prefix); }

  Line& text(const char* words);
  Line& text(const char* words, size_t length);
  Line& raw(const char* words);  // with its control characters
  Line& dec(uint64_t number);
  Line& signed_dec(int64_t number);
  Line& hex(uint64_t number);               // 0x1f
  Line& pointer(const void* address);       // 0x00007f..., as hex
  Line& bytes(size_t count);                // "512 B", "1.5 KiB", "64 MiB"
  Line& pad_to(size_t column);              // spaces up to `column`
  Line& right(uint64_t number, size_t to);  // `number` ending before column `to`

  Line& operator<<(const char* words) { return text(words); }
  Line& operator<<(const void* address) { return pointer(address); }
  Line& operator<<(unsigned number) { return dec(number); }
  Line& operator<<(unsigned long number) { return dec(number); }
  Line& operator<<(unsigned long long number) { return dec(number); }
  Line& operator<<(int number) { return signed_dec(number); }
  Line& operator<<(long number) { return signed_dec(number); }
  Line& operator<<(long long number) { return signed_dec(number); }
  Line& operator<<(bool) = delete;

  // The text without the end of line; data()[size()] is '\n'.
  const char* data() const { return text_; }
  size_t size() const { return length_; }
  // The text as a C string, until something is added.
  const char* c_str() {
    text_[length_] = '\0';
    return text_;
  }

 private:
  void cut();

  size_t length_ = 0;  // ≤ kRoom - 1
  char text_[kRoom];   // text_[length_] == '\n' after every call
};

// Writes the line and its end to `fd` in one write(2), so that lines of several threads do not mix.
// Keeps errno; a descriptor that is closed or would block loses the line.
void write_line(int fd, const Line& line);

// write_line to standard error.
void say(const Line& line);

// The status of a program that does not run because what it was started with cannot be had.
inline constexpr int kCannotHave = 125;

// say, then ends the process with kCannotHave: for what the user asked for and cannot have.
[[noreturn]] void quit(const Line& line);

// say, then abort(). Callers may hold locks of ours: nothing here takes one.
[[noreturn]] void die(const Line& line);

// For a wrong argument, found before anything was changed: gives the line to the program's handler, which
// may leave by longjmp; without one, or when it returns, as die. Callers hold no lock.
[[noreturn]] void refuse(const Line& line);
// Its first half.
void offer(const Line& line);

using RefusalHandler = void (*)(const char* message);
// Null means none.
void set_refusal_handler(RefusalHandler handler);

}  // namespace hummock::base

#endif  // HUMMOCK_BASE_MESSAGE_H
