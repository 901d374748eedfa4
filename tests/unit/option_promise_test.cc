// Options that promise something: what is not understood there ends the program.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/options.h"
#include "support/capture.h"

namespace options = hummock::options;
using support::contains;

namespace {

struct End {
  std::string said;
  int status;
};

// Loads the options as if the program and its environment were these, in a process of its own; 0 when it goes
// on.
End end_of(const char* program_conf, std::vector<const char*> environment = {}) {
  End end{"", -1};
  environment.push_back(nullptr);
  end.said = support::standard_error_of([&] {
    const pid_t child = fork();
    if (child == 0) {
      options::load(program_conf, environment.data());
      _exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status)) end.status = WEXITSTATUS(status);
  });
  return end;
}

// It ended with 125 and one line, which has these words.
void check_refused(const End& end, const std::string& words) {
  INFO(end.said);
  CHECK(end.status == 125);
  CHECK(contains(end.said, words));
  CHECK(end.said.find("hummock: ") == 0);
  CHECK(end.said.find('\n') == end.said.size() - 1);
}

}  // namespace

TEST_CASE("a promise that is not understood ends the program with one line") {
  check_refused(
      end_of("space_initial:512XB"),
      "option space_initial cannot be \"512XB\" (hummock_conf); the nearest is 512MB; it may be a size "
      "from 0 to 512G or none\n");
  check_refused(end_of(nullptr, {"HUMMOCK_SPACE_INITIAL=999G"}),
                "cannot be \"999G\" (HUMMOCK_SPACE_INITIAL); the nearest is 512G; ");
  check_refused(end_of(nullptr, {"HUMMOCK_CONF=huge_pages:requir"}),
                "option huge_pages cannot be \"requir\" (HUMMOCK_CONF); the nearest is require; ");
  check_refused(end_of("space_lock:maybe"), "option space_lock cannot be \"maybe\"");
  check_refused(end_of("space_lock:onn"), "the nearest is on; it may be on or off\n");
  check_refused(end_of("checked:yess"), "it may be on or off\n");
  check_refused(end_of("huge_max:-1"), "the nearest is none; ");
  check_refused(end_of("huge_max:2T"), "the nearest is 1T; ");
  check_refused(end_of("huge_reserve:half"), "cannot be \"half\"");
  check_refused(end_of("space_initial:1M,space_huge:tyr"), "the nearest is try; ");
  check_refused(end_of("space_initial:1M,space_reserve:later"), "it may be start or firstalloc\n");
  check_refused(end_of("space_initial:1M,space_with:lock+zeros"),
                "the nearest is lock; it may be none or lock or zero or firstalloc or huge or tryhuge, or "
                "several joined by +\n");
  for (const options::Option& option : options::kTable) {
    if (option.kind == options::Kind::text) continue;
    for (const char* nonsense : {"", "what?", "-7", "99999999999999999999999999", "line\nline"}) {
      INFO(option.name, nonsense);
      const End end = end_of((std::string(option.name) + ":" + nonsense).c_str());
      CHECK(end.status == (option.duty == options::Duty::promise ? 125 : 0));
      CHECK(end.said.find('\n') == end.said.size() - 1);
      CHECK(contains(end.said, "; the nearest is "));
    }
  }
  check_refused(end_of(("huge_max:" + std::string(5000, 'x')).c_str()),
                "xxx...\" (hummock_conf); the nearest is none;");
}

TEST_CASE("an unknown name that begins like a promise ends the program, too") {
  check_refused(end_of("space_intial:512M"),
                "unknown option \"space_intial\" in hummock_conf; the nearest is space_initial\n");
  check_refused(end_of(nullptr, {"HUMMOCK_SPACE_WIT=lock"}),
                "unknown variable HUMMOCK_SPACE_WIT; the nearest is HUMMOCK_SPACE_WITH\n");
  check_refused(end_of("huge_page:2m"), "the nearest is huge_pages\n");
  check_refused(end_of("spce_initial:512M"), "the nearest is space_initial\n");
  check_refused(end_of("limt_hard:1G"), "the nearest is limit_hard\n");
  check_refused(end_of("spaceinitial:5G"), "the nearest is space_initial\n");
  CHECK(end_of("chekced:on,spaces:1,huge:1,decay_msec:1,dirty_maxx:1M").status == 0);
}

TEST_CASE("what is said of a space needs one") {
  for (const char* alone : {"space_with:lock", "space_expand:1M", "space_with:tryhuge",
                            "space_with:zero+firstalloc", "space_with:lock,space_initial:none"}) {
    INFO(alone);
    check_refused(end_of(alone), "needs a space, of the size space_initial; there is none\n");
  }
  CHECK(end_of("space_with:none,space_expand:0,space_initial:none").status == 0);
  CHECK(end_of("space_with:lock,space_initial:1M").status == 0);
}
