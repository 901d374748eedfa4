// The lock, and the check of the locks' order.
#include "os/lock.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

using namespace hummock;
using os::ForkStep;
using os::Rank;

namespace {

struct End {
  int status;
  std::string told;
};

// How a process ends that does this, and what it says.
template <class Act>
End end_of(Act act) {
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], 2);
    for (int fatal : {SIGABRT, SIGSEGV}) signal(fatal, SIG_DFL);  // doctest's report would follow
    act();
    _exit(0);
  }
  close(pipe_ends[1]);
  End end = {};
  char text[1000];
  for (ssize_t got; (got = read(pipe_ends[0], text, sizeof text)) > 0;) {
    end.told.append(text, static_cast<size_t>(got));
  }
  close(pipe_ends[0]);
  waitpid(child, &end.status, 0);
  return end;
}

bool is_stopped(const End& end, const std::string& said) {
  INFO(end.told);
  return WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT &&
         end.told.find(said) != std::string::npos;
}

os::Lock<Rank::user_pool> high;
os::Lock<Rank::heap> heaps[3];
os::Lock<Rank::page_heap> low;

}  // namespace

TEST_CASE("a lock lets one thread in at a time") {
  static os::Lock<Rank::shard> lock;
  size_t sum = 0;
  std::vector<std::thread> crew;
  for (int t = 0; t < 4; ++t) {
    crew.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        os::LockGuard guard(lock);
        ++sum;
      }
    });
  }
  for (std::thread& thread : crew) thread.join();
  CHECK(sum == 80000);
  CHECK(!lock.is_held());
}

TEST_CASE("locks are taken top down") {
  CHECK(end_of([] {
          high.lock();
          heaps[0].lock();
          low.lock();
          high.unlock();
          low.unlock();
          heaps[0].unlock();
        }).status == 0);
}

TEST_CASE("a lock that is taken out of order ends the process, and both are named") {
  CHECK(is_stopped(end_of([] {
                     low.lock();
                     high.lock();
                   }),
                   "\"user pool\" is asked for under \"page heap\""));
  CHECK(is_stopped(end_of([] {
                     heaps[0].lock();
                     heaps[1].lock();
                   }),
                   "\"heap\" is asked for under \"heap\""));
}

TEST_CASE("who only tries may come in any order, but counts as a holder") {
  CHECK(end_of([] {
          low.lock();
          if (!high.try_lock()) _exit(1);
          high.unlock();
          low.unlock();
          high.lock();
        }).status == 0);
  CHECK(is_stopped(end_of([] {
                     if (low.try_lock()) high.lock();
                   }),
                   "\"user pool\" is asked for under \"page heap\""));
}

TEST_CASE("a fork takes many of one rank, and its thread passes through them") {
  CHECK(end_of([] {
          high.at_fork(ForkStep::before);
          for (auto& lock : heaps) lock.at_fork(ForkStep::before);
          low.at_fork(ForkStep::before);
          high.lock();
          low.lock();
          low.unlock();
          high.unlock();
          if (!high.is_held() || !low.is_held()) _exit(1);
          low.at_fork(ForkStep::in_parent);
          for (auto& lock : heaps) lock.at_fork(ForkStep::in_child);
          high.at_fork(ForkStep::in_parent);
          if (high.is_held() || heaps[2].is_held() || low.is_held()) _exit(2);
          high.lock();
          low.lock();
        }).status == 0);
  CHECK(is_stopped(end_of([] {
                     low.at_fork(ForkStep::before);
                     high.at_fork(ForkStep::before);
                   }),
                   "\"user pool\" is asked for under \"page heap\""));
}

TEST_CASE("others wait until the fork is over") {
  high.at_fork(ForkStep::before);
  bool got = true;
  std::thread([&] { got = high.try_lock(); }).join();
  CHECK(!got);
  std::thread waits([] {
    high.lock();
    high.unlock();
  });
  high.lock();
  high.unlock();
  high.at_fork(ForkStep::in_parent);
  waits.join();
  CHECK(!high.is_held());
}

TEST_CASE("a fork in a signal handler leaves the lock that it interrupted held") {
  high.lock();
  high.at_fork(ForkStep::before);
  high.at_fork(ForkStep::in_parent);
  CHECK(high.is_held());
  high.unlock();
  CHECK(!high.is_held());
}

TEST_CASE("who would wait for itself is told so") {
  CHECK(end_of([] {
          signal(SIGABRT, [](int) { low.lock(); });  // does not run
          low.lock();
          low.lock();
        }).told.find("\"page heap\"") != std::string::npos);
}
