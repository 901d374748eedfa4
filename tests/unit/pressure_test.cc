// Waiting for memory pressure: woken by what the kernel tells, and not by a descriptor that is none of ours.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "os/os.h"
#include "os/thread.h"

namespace {

// A file that becomes ready with POLLPRI, as a trigger does: a socket that gets urgent data.
struct Pair {
  int near = -1, far = -1;
  Pair() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0);
    REQUIRE(listen(listener, 1) == 0);
    REQUIRE(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    far = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect(far, reinterpret_cast<sockaddr*>(&address), length) == 0);
    near = accept(listener, nullptr, nullptr);
    REQUIRE(near >= 0);
    close(listener);
  }
  ~Pair() {
    close(near);
    close(far);
  }
};

constexpr unsigned kLong = 600000;  // against hangs the test has its own limit

}  // namespace

using namespace hummock;

TEST_CASE("pressure ends the sleep early, and nothing else does") {
  Pair pair;
  os::watch_pressure_at(pair.near);
  CHECK_FALSE(os::sleep_or_pressure(1));
  std::thread([&] { CHECK(send(pair.far, "!", 1, MSG_OOB) == 1); }).join();
  CHECK(os::sleep_or_pressure(kLong));
  os::watch_pressure_at(-1);
  CHECK_FALSE(os::sleep_or_pressure(1));
}

TEST_CASE("a descriptor that the program closed, or has for something else, is left alone") {
  Pair pair, other;
  os::watch_pressure_at(pair.near);
  CHECK(send(other.far, "!", 1, MSG_OOB) == 1);
  REQUIRE(dup2(other.near, pair.near) == pair.near);  // the number is another file's now
  CHECK_FALSE(os::sleep_or_pressure(1));
  Pair third;
  os::watch_pressure_at(third.near);
  close(third.far);
  shutdown(third.near, SHUT_RDWR);  // what else it may say ends the watch
  CHECK_FALSE(os::sleep_or_pressure(1));
  CHECK_FALSE(os::sleep_or_pressure(1));
}

TEST_CASE("to watch or not to watch: it is told which") {
  if (os::watch_pressure()) {
    CHECK_FALSE(os::sleep_or_pressure(0));
  } else {
    CHECK_FALSE(os::sleep_or_pressure(1));
  }
  os::watch_pressure_at(-1);
}
