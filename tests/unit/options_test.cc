#include "base/options.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/capture.h"

namespace options = hummock::options;
using options::values;
using support::contains;

namespace {

// Loads the options as if the program and its environment were these; returns the warnings.
std::string load(const char* program_conf, std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return support::standard_error_of([&] { options::load(program_conf, environment.data()); });
}

std::string effective() {
  return support::standard_error_of([] { options::print_effective(); });
}

std::string get(const char* name) {
  char value[64];
  return options::get(name, value, sizeof(value)) == 0 ? value : "?";
}

// The allocator under this program reads the same values: leave them as a program would find them.
struct Restore {
  ~Restore() { options::load(nullptr, nullptr); }
};

}  // namespace

TEST_CASE("defaults") {
  Restore restore;
  CHECK(load(nullptr, {}) == "");
  for (const options::Option& option : options::kTable) {
    INFO(option.name);
    CHECK(option.least <= option.initial);
    CHECK(option.initial <= option.most);
    CHECK(strlen(option.name) < 16);
    CHECK(contains(effective(), (std::string("hummock: ") + option.name + ":").c_str()));
  }
  CHECK(options::kCount <= 20);
  CHECK(values.decay_ms == 1000);
  CHECK(values.quarantine == size_t{16} << 20);
  CHECK(values.fork);
  CHECK(!values.checked);
  CHECK(get("quarantine") == "16M");
  CHECK(get("dirty_max") == "auto");
  CHECK(get("stats") == "none");
  CHECK(get("fork") == "on");
}

TEST_CASE("each source goes over the one before, and is named") {
  Restore restore;
  CHECK(load("decay_ms:1,stacks:1,dirty_max:1M",
             {"HUMMOCK_STACKS=3", "PATH=/bin", "HUMMOCK_CONF=stacks:2,dirty_max=2M", "HUMMOCK_RUN_X=1"}) ==
        "");
  CHECK(values.decay_ms == 1);
  CHECK(values.dirty_max == size_t{2} << 20);
  CHECK(values.stacks == 3u);
  CHECK(options::set("quarantine", "1G") == 0);
  const std::string all = effective();
  CHECK(contains(all, "hummock: decay_ms:1 (hummock_conf)\n"));
  CHECK(contains(all, "hummock: dirty_max:2M (HUMMOCK_CONF)\n"));
  CHECK(contains(all, "hummock: stacks:3 (HUMMOCK_STACKS)\n"));
  CHECK(contains(all, "hummock: quarantine:1G (hummock_option_set)\n"));
  CHECK(contains(all, "hummock: checked:off (default)\n"));
}

TEST_CASE("a privileged program ignores its environment") {
  Restore restore;
  setenv("HUMMOCK_DECAY_MS", "77", 1);
  options::init(true);
  CHECK(values.decay_ms == 1000);
  options::init(false);
  CHECK(values.decay_ms == 77);
  unsetenv("HUMMOCK_DECAY_MS");
}

TEST_CASE("spellings") {
  Restore restore;
  for (const char* on : {"on", "1", "true", "yes", "ON", "True"}) {
    CHECK(load((std::string("checked:") + on).c_str(), {}) == "");
    CHECK(values.checked);
  }
  for (const char* off : {"off", "0", "false", "no", "Off"}) {
    CHECK(load((std::string("fork=") + off).c_str(), {}) == "");
    CHECK(!values.fork);
  }
  CHECK(load(" decay_ms : never , quarantine = 3k ,, stats:exit,", {}) == "");
  CHECK(values.decay_ms == -1);
  CHECK(values.quarantine == 3072u);
  CHECK(values.stats == options::Stats::at_exit);
  CHECK(load("quarantine:0,dirty_max:AUTO,decay_ms:-1", {}) == "");
  CHECK(values.quarantine == 0u);
  CHECK(load("quarantine:1T,dirty_max:1024G", {}) == "");
  CHECK(get("dirty_max") == "1T");
}

TEST_CASE("unknown names are warned of with the nearest known one") {
  Restore restore;
  CHECK(contains(load("decayms:3", {}),
                 "unknown option \"decayms\" in hummock_conf; the nearest is decay_ms\n"));
  CHECK(contains(load(nullptr, {"HUMMOCK_CONF=chekced:on"}),
                 "unknown option \"chekced\" in HUMMOCK_CONF; the nearest is checked\n"));
  CHECK(contains(load(nullptr, {"HUMMOCK_STACK=3"}),
                 "unknown variable HUMMOCK_STACK; the nearest is HUMMOCK_STACKS\n"));
  CHECK(load(nullptr, {"HUMMOCK_RUN_NOTIFY=3:4", "HUMMOCK=1", "HUMMOCKY=2"}) == "");
  const std::string very_long(5000, 'x');
  CHECK(contains(load(very_long.c_str(), {}), "..."));
}

TEST_CASE("bad values are warned of and leave the value") {
  Restore restore;
  for (const char* bad : {"stacks:17", "stacks:-1", "stacks:", "stacks", "stacks:2K", "stacks:x",
                          "stacks:3 4", "stacks:99999999999999999999"}) {
    INFO(bad);
    CHECK(contains(load(bad, {}), "it may be 0 to 16; kept 8\n"));
    CHECK(values.stacks == 8u);
  }
  for (const char* bad : {"quarantine:-1", "quarantine:2T", "quarantine:1Q", "quarantine:M", "quarantine:1MM",
                          "quarantine:9999999999T"}) {
    INFO(bad);
    CHECK(contains(load(bad, {}), "it may be a size from 0 to 1T; kept 16M\n"));
  }
  CHECK(contains(load("checked:maybe", {}), "option checked cannot be \"maybe\" (hummock_conf)"));
  CHECK(contains(load("stats:1", {}), "it may be none or exit; kept none\n"));
  CHECK(contains(load("decay_ms:-2", {}), "-1 to 86400000 or never; kept 1000\n"));
  CHECK(contains(load("stacks:5", {"HUMMOCK_STACKS=many"}), "kept 5\n"));
}

TEST_CASE("get") {
  Restore restore;
  load(nullptr, {});
  char value[8];
  CHECK(options::get("decay_ms", value, sizeof(value)) == 0);
  CHECK(std::string(value) == "1000");
  CHECK(options::get("decay_ms", value, 5) == 0);
  CHECK(options::get("decay_ms", value, 4) == ERANGE);
  CHECK(std::string(value) == "100");
  CHECK(options::get("decay_ms", value, 0) == ERANGE);
  CHECK(options::get("decay_ms", nullptr, 8) == ERANGE);
  CHECK(options::get("nothing", value, sizeof(value)) == ENOENT);
  CHECK(std::string(value) == "");
  CHECK(options::get(nullptr, value, sizeof(value)) == ENOENT);
}

TEST_CASE("set") {
  Restore restore;
  load(nullptr, {});
  CHECK(options::set("decay_ms", "5") == 0);
  CHECK(values.decay_ms == 5);
  CHECK(options::set("decay_ms", "five") == EINVAL);
  CHECK(options::set("decay_ms", nullptr) == EINVAL);
  CHECK(options::set("decay_ms", "-2") == EINVAL);
  CHECK(values.decay_ms == 5);
  CHECK(options::set("checked", "on") == EPERM);
  CHECK(options::set("checked", "perhaps") == EINVAL);
  CHECK(!values.checked);
  CHECK(options::set("nothing", "1") == ENOENT);
  CHECK(options::set(nullptr, "1") == ENOENT);
}

TEST_CASE("help has a line for every option") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  options::print_help(ends[1]);
  close(ends[1]);
  char all[8192];
  const ssize_t n = read(ends[0], all, sizeof(all));
  close(ends[0]);
  REQUIRE(n > 0);
  const std::string text(all, static_cast<size_t>(n));
  for (const options::Option& option : options::kTable) {
    INFO(option.name);
    CHECK(contains(text, (std::string("  ") + option.name + " ").c_str()));
    CHECK(contains(text, option.help));
  }
}
