#include "bench/peers.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "bench/document.h"
#include "bench/process.h"
#include "hummock/hummock.h"
#include "near.h"
#include "preload.h"
#include "run.h"

namespace hummock::tool {
namespace {

namespace fs = std::filesystem;

struct Packaged {
  const char* name;
  const char* library;
  const char* package;
};

constexpr Packaged kPackaged[] = {
    {"jemalloc", "libjemalloc.so.2", "libjemalloc2"},
    {"mimalloc", "libmimalloc.so.2", "libmimalloc2.0"},
    {"tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"},
    {"tbbmalloc", "libtbbmalloc_proxy.so.2", "libtbbmalloc2"},
};

constexpr const char* kNewest[] = {"mimalloc-v3", "mimalloc-v2",    "snmalloc",
                                   "rpmalloc",    "jemalloc-5.3.1", "google-tcmalloc"};

std::string resolved(const std::string& path) {
  std::error_code error;
  const fs::path result = fs::canonical(path, error);
  return error ? "" : result.string();
}

std::string find_packaged(const char* library) {
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                             "/usr/lib", "/usr/local/lib"})
    if (std::string path = resolved(fs::path(folder) / library); !path.empty()) return path;
  return "";
}

Allocator hummock_itself(const BenchOptions& options) {
  const std::string library = resolved(options.library.empty() ? find_library() : options.library);
  if (library.empty() && !options.library.empty())
    throw std::runtime_error("--lib " + options.library + ": no such file");
  if (library.empty()) throw std::runtime_error("libhummock.so.1 was not found; name it with --lib");
  return {"hummock",
          fmt::format("{}.{}.{}", HUMMOCK_VERSION_MAJOR, HUMMOCK_VERSION_MINOR, HUMMOCK_VERSION_PATCH),
          library,
          "build",
          HUMMOCK_BUILD_COMPILER,
          HUMMOCK_BUILD_FLAGS,
          ""};
}

Allocator packaged(const Packaged& known, const std::string& library) {
  const std::string version = output_of({"dpkg-query", "-W", "-f", "${Version}\n", known.package});
  return {known.name, version.empty() ? "unknown" : version,
          library,    version.empty() ? "found" : "apt",
          "",         version.empty() ? "" : std::string(known.package) + " as packaged",
          ""};
}

// Builds what is not built yet; what cannot be built is left out and named.
void add_newest(const std::vector<std::string>& names, const BenchOptions& options, Peers& peers) {
  if (names.empty()) return;
  const std::string script = find_file("peers-source/build.sh", "peers/build.sh", "bench/peers/build.sh");
  if (script.empty()) throw std::runtime_error("the newest peers' build.sh was not found");
  const std::string folder =
      fs::absolute(options.peers.empty() ? fs::path("build/peers") : fs::path(options.peers)).string();
  std::vector<std::string> command = {script, folder};
  command.insert(command.end(), names.begin(), names.end());
  if (run_openly(command) != 0) peers.missing.push_back("some of the newest peers could not be built");
  for (const std::string& name : names) {
    const std::string library = resolved(fmt::format("{}/lib/lib{}.so", folder, name));
    std::ifstream file(fmt::format("{}/lib/{}.json", folder, name));
    if (library.empty() || !file) {
      peers.missing.push_back(fmt::format("{}: see {}/build.log", name, folder));
      continue;
    }
    const Json facts = Json::parse(file);
    peers.allocators.push_back({name, facts.at("version"), library, "crates.io", facts.at("compiler"),
                                facts.at("flags"), facts.at("setting")});
  }
}

bool is_newest(const std::string& name) {
  return std::find(std::begin(kNewest), std::end(kNewest), name) != std::end(kNewest);
}

const Packaged* find_known(const std::string& name) {
  const auto* end = std::end(kPackaged);
  const auto* found =
      std::find_if(std::begin(kPackaged), end, [&](const Packaged& one) { return name == one.name; });
  return found == end ? nullptr : found;
}

// The names behind "apt" and "newest", and behind nothing at all.
std::vector<std::string> names_wanted(const BenchOptions& options) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  const auto add_newest_names = [&add] { std::for_each(std::begin(kNewest), std::end(kNewest), add); };
  if (options.baseline != "hummock") add(options.baseline);
  for (const std::string& name : options.against) {
    if (name == "newest") {
      add_newest_names();
    } else if (name == "apt") {
      for (const Packaged& known : kPackaged) add(known.name);
    } else if (name != "hummock") {
      add(name);
    }
  }
  if (options.against.empty()) {
    add("system");
    for (const Packaged& known : kPackaged) add(known.name);
  }
  if (options.newest) add_newest_names();
  return names;
}

std::vector<std::string> names_known() {
  std::vector<std::string> names = {"hummock", "system", "apt", "newest"};
  for (const Packaged& known : kPackaged) names.push_back(known.name);
  names.insert(names.end(), std::begin(kNewest), std::end(kNewest));
  return names;
}

void add_packaged(const Packaged& known, bool by_name, Peers& peers) {
  const std::string library = find_packaged(known.library);
  if (!library.empty()) {
    peers.allocators.push_back(packaged(known, library));
    return;
  }
  const std::string what = fmt::format("{} is not installed: apt-get install {}", known.name, known.package);
  if (by_name) throw std::runtime_error(what);
  peers.missing.push_back(what);
}

void add_given(const std::string& text, std::size_t equals, Peers& peers) {
  const std::string library = resolved(text.substr(equals + 1));
  if (library.empty()) throw std::runtime_error(text.substr(equals + 1) + " is not there");
  peers.allocators.push_back({text.substr(0, equals), "unknown", library, "given", "", "", ""});
}

// Of the loader's "  123: binding file A [0] to B [0]: normal symbol `malloc' [GLIBC_2.2.5]": A and B.
std::pair<std::string, std::string> binding_of(const std::string& line) {
  const std::string before = "binding file ";
  const std::size_t start = line.find(before), middle = line.find(" [0] to "),
                    end = line.find(" [0]: normal symbol");
  const bool ours =
      line.find("symbol `malloc'") != std::string::npos || line.find("symbol `free'") != std::string::npos;
  if (!ours || start == std::string::npos || middle == std::string::npos || end == std::string::npos)
    return {};
  const std::size_t source = start + before.size(), target = middle + 8;
  return {line.substr(source, middle - source), line.substr(target, end - target)};
}

}  // namespace

std::vector<std::string> environment_of(const Allocator& allocator) {
  std::vector<std::string> environment = {
      allocator.library.empty() ? "LD_PRELOAD" : "LD_PRELOAD=" + preloadable(allocator.library)};
  if (!allocator.setting.empty()) environment.push_back(allocator.setting);
  return environment;
}

Peers find_allocators(const BenchOptions& options) {
  Peers peers;
  peers.allocators.push_back(hummock_itself(options));
  std::vector<std::string> newest;
  for (const std::string& name : names_wanted(options)) {
    const auto& named = options.against;
    const bool by_name =
        name == options.baseline || std::find(named.begin(), named.end(), name) != named.end();
    if (const std::size_t equals = name.find('='); equals != std::string::npos) {
      add_given(name, equals, peers);
    } else if (name == "system") {
      peers.allocators.push_back(
          {"system", std::string("glibc ") + gnu_get_libc_version(), "", "system", "", "", ""});
    } else if (const Packaged* known = find_known(name); known != nullptr) {
      add_packaged(*known, by_name, peers);
    } else if (is_newest(name)) {
      newest.push_back(name);
    } else if (std::none_of(named.begin(), named.end(),
                            [&](const std::string& one) { return one.rfind(name + "=", 0) == 0; })) {
      throw std::runtime_error(
          fmt::format("no allocator is called {}{}", name, nearest_text(name, names_known())));
    }
  }
  add_newest(newest, options, peers);
  return peers;
}

std::string why_not_active(const Allocator& allocator, const std::string& worker) {
  std::vector<std::string> environment = environment_of(allocator);
  environment.insert(environment.end(), {"LD_DEBUG=bindings", "LD_BIND_NOW=1"});
  const Outcome outcome = execute({worker, "--list"}, environment, 60);
  if (outcome.status != 0) {
    const std::size_t end = outcome.err.find_last_not_of('\n');
    const std::size_t line = outcome.err.rfind('\n', end);
    return fmt::format("the worker ended with status {}: {}", outcome.status,
                       outcome.err.substr(line == std::string::npos ? 0 : line + 1));
  }
  std::istringstream lines(outcome.err);
  bool seen = false;
  for (std::string line; std::getline(lines, line);) {
    const auto [source, target] = binding_of(line);
    if (target.empty() || resolved(source) == allocator.library) continue;  // it may well want libc's, too
    // The table of a program that is not position independent, which leads on.
    if (fs::path(target).filename().string().find(".so") == std::string::npos) continue;
    const bool right = allocator.library.empty() ? fs::path(target).filename() == "libc.so.6"
                                                 : resolved(target) == allocator.library;
    if (!right) return "malloc or free leads to " + target;
    seen = true;
  }
  return seen ? "" : "the worker does not take malloc from a shared library";
}

}  // namespace hummock::tool
