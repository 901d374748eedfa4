#include "base/options.h"
#include "base/option_value.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <string.h>

#include <string>
#include <vector>

#include "support/capture.h"

namespace options = hummock::options;
using options::values;
using support::contains;

namespace {

// A word, and not the name of a file.
bool is_on(options::Path path) {
  return path != nullptr && !options::is_file(path);
}

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
    CHECK(options::allows(option, option.initial));
    CHECK(option.initial <= option.most);
    CHECK(strlen(option.name) < 16);
    CHECK(contains(effective(), (std::string("hummock: ") + option.name + ":").c_str()));
  }
  CHECK(values.decay_ms == 1000);
  CHECK(values.quarantine == size_t{16} << 20);
  CHECK(values.observe);
  CHECK(!values.checked);
  CHECK(get("quarantine") == "16M");
  CHECK(get("dirty_max") == "auto");
  CHECK(get("stats") == "none");
  CHECK(get("observe") == "on");
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
    CHECK(load((std::string("observe=") + off).c_str(), {}) == "");
    CHECK(!values.observe);
  }
  CHECK(load(" decay_ms : never , quarantine = 3k ,, stats:exit,", {}) == "");
  CHECK(values.decay_ms == -1);
  CHECK(values.quarantine == 3072u);
  CHECK(is_on(values.stats));
  for (const char* mib : {"512M", "512m", "512MB", "512mb", "512MiB", "512 MiB", "524288K", "524288KiB",
                          "536870912", "536870912B"}) {
    INFO(mib);
    CHECK(load((std::string("quarantine:") + mib).c_str(), {}) == "");
    CHECK(values.quarantine == size_t{512} << 20);
  }
  for (const char* gib : {"2G", "2gb", "2GiB", "2048M"}) {
    CHECK(load((std::string("quarantine:") + gib).c_str(), {}) == "");
    CHECK(get("quarantine") == "2G");
  }
  const struct {
    const char* text;
    int64_t ms;
  } durations[] = {{"100", 100},   {"100ms", 100},   {"1s", 1000},     {"2 S", 2000},
                   {"2m", 120000}, {"2min", 120000}, {"24h", 86400000}};
  for (const auto& each : durations) {
    INFO(each.text);
    CHECK(load((std::string("decay_ms:") + each.text).c_str(), {}) == "");
    CHECK(values.decay_ms == each.ms);
  }
  for (const char* on : {"1", "on", "true", "YES"}) {
    INFO(on);
    const std::string conf = std::string("stats:") + on + ",log:" + on + ",profile:" + on;
    CHECK(load(conf.c_str(), {}) == "");
    CHECK(is_on(values.stats));
    CHECK(is_on(values.log));
    CHECK(values.profile == 1u);
  }
  for (const char* off : {"0", "off", "false", "No"}) {
    INFO(off);
    const std::string is = std::string(":") + off;
    const std::string conf = "stats" + is + ",log" + is + ",huge_pages" + is + ",huge_max" + is +
                             ",space_initial" + is + ",space_expand" + is + ",huge_reserve" + is;
    CHECK(load(conf.c_str(), {}) == "");
    CHECK(values.stats == nullptr);
    CHECK(values.huge_pages == options::HugePages::off);
    CHECK(values.huge_max == 0u);
  }
  CHECK(get("space_expand") == "never");
  CHECK(get("huge_reserve") == "0");
  CHECK(load("quarantine:0,dirty_max:AUTO,decay_ms:-1", {}) == "");
  CHECK(values.quarantine == 0u);
  CHECK(load("quarantine:1T,dirty_max:1024G", {}) == "");
  CHECK(get("dirty_max") == "1T");
  CHECK(load("dirty_max:0", {}) == "");
  CHECK(get("dirty_max") == "0");  // none waits
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
  for (const char* bad :
       {"quarantine:-1", "quarantine:2T", "quarantine:1Q", "quarantine:M", "quarantine:1MM",
        "quarantine:1M M", "quarantine:1.5G", "quarantine:0x10", "quarantine:+1", "quarantine:- 1",
        "quarantine:9999999999T", "quarantine:99999999999999999999", "quarantine:-99999999999999999999T"}) {
    INFO(bad);
    CHECK(contains(load(bad, {}), "it may be a size from 0 to 1T; kept 16M\n"));
    CHECK(values.quarantine == size_t{16} << 20);
  }
  CHECK(contains(
      load("stats:2", {}),
      "the nearest is none; it may be none or exit or a file, with a / or . in its name; kept none\n"));
  CHECK(contains(
      load("stats:exot", {}),
      "the nearest is exit; it may be none or exit or a file, with a / or . in its name; kept none\n"));
  CHECK(contains(
      load("decay_ms:-2", {}),
      "the nearest is never; it may be 0 to 86400000 ms, as 100, 100ms, 2s or 1h, or never; kept 1000\n"));
  CHECK(contains(load("decay_ms:nevr", {}), "the nearest is never; "));
  CHECK(contains(load("log:onn", {}), "the nearest is on; "));
  CHECK(contains(load("stats:yess", {}), "the nearest is yes; "));
  CHECK(contains(load("dirty_max:atuo", {}), "the nearest is auto; "));
  CHECK(contains(load("decay_ms:10sec", {}), "the nearest is 10s; "));
  CHECK(contains(load("decay_ms:10M B", {}), "kept 1000\n"));
  CHECK(contains(load("stacks:5", {"HUMMOCK_STACKS=many"}), "cannot be \"many\" (HUMMOCK_STACKS); "));
  CHECK(values.stacks == 5u);
}

TEST_CASE("flags are joined by a plus, in any order") {
  Restore restore;
  CHECK(load("space_initial:1M,space_with:zero + LOCK", {}) == "");
  CHECK(values.space_with == (options::kSpaceLock | options::kSpaceZero));
  CHECK(get("space_with") == "lock+zero");
  CHECK(load("space_with:none", {}) == "");
  CHECK(values.space_with == 0);
}

TEST_CASE("options of former versions still do what they did, and are told of") {
  Restore restore;
  for (const char* conf : {"log:region,log_file:a.log", "log_file:a.log,log:on"}) {
    INFO(conf);
    CHECK(contains(load(conf, {}), "option log_file is now log:FILE\n"));
    CHECK(get("log") == "a.log");
    CHECK(get("log_file") == "a.log");
  }
  load("log_file:a.log", {});
  CHECK(values.log == nullptr);  // it alone began no log
  load("log:b/c.log,log_file:a.log", {});
  CHECK(get("log") == "b/c.log");
  CHECK(contains(load("stats:exit", {"HUMMOCK_STATS_FILE=s-%p"}), "option stats_file is now stats:FILE\n"));
  CHECK(get("stats") == "s-%p");
  CHECK(load("stats:exit", {}) == "");
  CHECK(get("stats_file") == "none");
  const std::string said = load("space_initial:1M,space_lock:on,space_zero:yes,space_reserve:firstalloc", {});
  CHECK(contains(said, "option space_lock is now space_with:lock\n"));
  CHECK(contains(said, "option space_reserve is now space_with:firstalloc\n"));
  CHECK(get("space_with") == "lock+zero+firstalloc");
  for (const char* on : {"require", "on", "yes"}) {  // who asks for huge pages is to have them
    load((std::string("space_initial:1M,space_lock:on,space_huge:") + on).c_str(), {});
    CHECK(get("space_with") == "lock+huge");
    CHECK(get("space_huge") == "require");
  }
  CHECK(contains(load("space_initial:1M,space_huge:require,space_huge:try", {}),
                 "option space_huge is now space_with:tryhuge\n"));
  CHECK(get("space_with") == "tryhuge");
  CHECK(get("space_huge") == "try");
  load("space_initial:1M,space_lock:on,space_lock:off", {});
  CHECK(get("space_with") == "none");
  CHECK(get("space_lock") == "off");
  CHECK(options::set("space_lock", "on") == EPERM);
  CHECK(options::set("stats", "exit") == 0);
  CHECK(is_on(values.stats));
  CHECK(options::set("stats", "a.txt") == EPERM);
}

TEST_CASE("how many bytes stand between two samples") {
  Restore restore;
  const struct {
    const char* conf;
    size_t bytes;
  } cases[] = {{"", 512 << 10},
               {"profile:on", 512 << 10},
               {"profile:1", 512 << 10},
               {"profile:all", 1},
               {"profile:64K", 64 << 10},
               {"profile_bytes:8K", 8 << 10},
               {"profile:on,profile_bytes:8K", 8 << 10},
               {"profile_bytes:1,profile:on", 1},
               {"profile_bytes:8K,profile:64K", 64 << 10}};
  for (const auto& each : cases) {
    INFO(each.conf);
    const std::string said = load(each.conf, {});
    CHECK(options::sample_bytes() == each.bytes);
    CHECK(contains(said, "option profile_bytes is now profile:BYTES\n") ==
          contains(each.conf, "profile_bytes"));
  }
  load("profile_bytes:8K", {});
  CHECK(values.profile == 0u);  // it alone samples nothing
  CHECK(get("profile_bytes") == "8K");
  CHECK(contains(load("profile_bytes:0", {}), "it may be a size from 1 to 1T; kept 512K\n"));
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

TEST_CASE("help has a line for every option, and they are not too many") {
  CHECK(options::kCount <= 20);
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
