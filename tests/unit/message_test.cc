#include "base/message.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <stdint.h>

#include <string>

#include "support/capture.h"

using hummock::base::Line;

namespace {

std::string text(const Line& line) {
  return std::string(line.data(), line.size());
}
Line plain() {
  return Line("");
}

}  // namespace

TEST_CASE("numbers") {
  CHECK(text(plain().dec(0)) == "0");
  CHECK(text(plain().dec(UINT64_MAX)) == "18446744073709551615");
  CHECK(text(plain().signed_dec(-1)) == "-1");
  CHECK(text(plain().signed_dec(INT64_MIN)) == "-9223372036854775808");
  CHECK(text(plain().hex(0)) == "0x0");
  CHECK(text(plain().hex(UINT64_MAX)) == "0xffffffffffffffff");
  CHECK(text(plain().pointer(reinterpret_cast<void*>(0x7f00beef))) == "0x7f00beef");
  CHECK(text(plain().pointer(nullptr)) == "0x0");
}

TEST_CASE("control characters neither end a line nor reach the terminal") {
  CHECK(text(plain().text("a\nb\033[1m\177\t")) == "a?b?[1m??");
  CHECK(text(plain().text("\xc3\xbc")) == "\xc3\xbc");
}

TEST_CASE("bytes for people") {
  CHECK(text(plain().bytes(0)) == "0 B");
  CHECK(text(plain().bytes(1023)) == "1023 B");
  CHECK(text(plain().bytes(1024)) == "1 KiB");
  CHECK(text(plain().bytes(1536)) == "1.5 KiB");
  CHECK(text(plain().bytes((size_t{1} << 20) - 1)) == "1023.9 KiB");
  CHECK(text(plain().bytes(size_t{64} << 20)) == "64 MiB");
  CHECK(text(plain().bytes(SIZE_MAX)) == (sizeof(size_t) == 8 ? "15.9 EiB" : "3.9 GiB"));
}

TEST_CASE("the stream form") {
  const Line line = Line() << "free(" << static_cast<void*>(nullptr) << ") " << 7u << " " << -7 << " "
                           << size_t{9};
  CHECK(text(line) == "hummock: free(0x0) 7 -7 9");
}

TEST_CASE("columns") {
  CHECK(text(plain().text("ab").pad_to(5).text("c")) == "ab   c");
  CHECK(text(plain().text("abcdef").pad_to(3)) == "abcdef");
  CHECK(text(plain().right(42, 6)) == "    42");
  CHECK(text(plain().right(123456, 3)) == "123456");
  CHECK(plain().pad_to(100000).size() == Line::kRoom - 1);
}

TEST_CASE("a text too long is cut and ends its line") {
  Line line("");
  for (int i = 0; i < 1000; ++i) line << "0123456789";
  CHECK(line.size() == Line::kRoom - 1);
  CHECK(line.data()[line.size()] == '\n');
  CHECK(text(line).substr(line.size() - 3) == "...");

  const std::string exact(Line::kRoom - 1, 'x');
  CHECK(text(plain().text(exact.c_str())) == exact);
  CHECK(text(plain().text((exact + "y").c_str())) == exact.substr(3) + "...");
}

TEST_CASE("say writes one line and keeps errno") {
  errno = 4711;
  CHECK(support::standard_error_of([] { hummock::base::say(Line() << "one"); }) == "hummock: one\n");
  errno = 4711;
  hummock::base::write_line(-1, plain());
  CHECK(errno == 4711);
}

TEST_CASE("die says and aborts") {
  const support::Ending ending = support::ending_of([] { hummock::base::die(Line() << "the end"); });
  CHECK(ending.said == "hummock: the end\n");
  CHECK(ending.aborted);
}
