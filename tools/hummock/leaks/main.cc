// hummock leaks: what a program does not free and nothing points to, or what grows in a process.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>

#include "../profile/session.h"
#include "../profile/start.h"
#include "amounts.h"
#include "figures.h"
#include "leaks_options.h"
#include "outputs.h"
#include "processes.h"
#include "run.h"
#include "scan.h"
#include "suppress.h"

namespace {

using namespace hummock::tool;

constexpr unsigned kColumns = 120;

// By stack: live bytes are those that are lost, churn those lost behind others, peak those still reachable.
struct Found {
  std::map<uint32_t, Amount> lost, indirect, reachable;
};

Found sort_out(const RawProfile& profile, const std::vector<Reach>& reach) {
  Found found;
  for (size_t i = 0; i < reach.size(); ++i) {
    auto& sums = reach[i] == Reach::lost       ? found.lost
                 : reach[i] == Reach::indirect ? found.indirect
                                               : found.reachable;
    sums[profile.live[i].stack] += {static_cast<double>(profile.live[i].size), 1};
  }
  return found;
}

std::vector<Step> steps_of(const RawProfile& profile, Names* names, const RawStack& stack) {
  std::vector<Step> steps;
  for (const uint64_t address : stack.frames) {
    std::string object;
    for (const RawModule& module : profile.modules)
      if (address > module.start && address <= module.end) object = module.path;
    for (const Place& place : names->find(address))
      if (!place.of_allocator) steps.push_back({place.function, place.file, object});
  }
  return steps;
}

// What is known is taken out. The bytes and blocks that were.
Amount suppress(const Suppressions& known, RawProfile* profile) {
  Amount taken;
  Names names(*profile, "");
  for (RawStack& stack : profile->stacks) {
    if (stack.live.bytes <= 0 || !known.match(steps_of(*profile, &names, stack))) continue;
    taken += stack.live;
    stack.live = {};
  }
  return taken;
}

// The stacks of one kind, as a table; how many bytes are in it.
Amount print_kind(const char* title, const RawProfile& profile, const std::map<uint32_t, Amount>& sums,
                  const Suppressions& known, Amount* suppressed, unsigned top) {
  RawProfile part = profile;
  Amount total;
  for (RawStack& stack : part.stacks) stack.live = stack.churn = stack.peak = {};
  for (const auto& [stack, amount] : sums) part.stacks[stack].live = amount;
  *suppressed += suppress(known, &part);
  for (const RawStack& stack : part.stacks) total += stack.live;
  if (total.blocks == 0) return total;
  Report report;
  add_profile(&report, part, "", printable(part.program) + " (" + std::to_string(part.pid) + "), " + title);
  report.titled = true;
  report.samples_dropped = report.stacks_dropped = 0;  // told once, at the end
  fputs(table(report, View::live, top, kColumns).c_str(), stderr);
  return total;
}

std::string amount_text(const Amount& amount) {
  return fmt::format("{} in {:.0f} block{}", size_text(amount.bytes), amount.blocks,
                     amount.blocks == 1 ? "" : "s");
}

// True: there are leaks.
bool tell(const LeaksOptions& options, const Suppressions& known, const RawProfile& profile,
          const std::vector<Reach>& reach) {
  const Found found = sort_out(profile, reach);
  Amount suppressed, unused;
  const Amount lost = print_kind("lost", profile, found.lost, known, &suppressed, options.top);
  const Amount indirect =
      print_kind("lost behind other blocks", profile, found.indirect, known, &suppressed, options.top);
  Amount reachable;
  for (const auto& [stack, amount] : found.reachable) reachable += amount;
  if (options.reachable)
    print_kind("still reachable", profile, found.reachable, Suppressions(), &unused, options.top);
  fprintf(stderr, "hummock leaks: lost: %s; behind them: %s; suppressed: %s; still reachable: %s\n",
          amount_text(lost).c_str(), amount_text(indirect).c_str(), amount_text(suppressed).c_str(),
          amount_text(reachable).c_str());
  return lost.blocks + indirect.blocks > 0;
}

// The program's own profile, not that of what it forked; of several, as exec makes them, the last.
std::optional<RawProfile> profile_of(int memory, uint32_t number) {
  std::string why;
  std::optional<RawProfile> latest;
  for (RawProfile& each : read_profiles(memory, &why))
    if (each.pid == number && (!latest || each.started >= latest->started)) latest = std::move(each);
  return latest;
}

// The heap's address space comes in smaller pieces then than the scan takes it to, and blocks in use would be
// called lost.
bool is_limited(pid_t process) {
  rlimit limit;
  return prlimit(process, RLIMIT_AS, nullptr, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

int leaks_of_program(const LeaksOptions& options, const Suppressions& known) {
  const int memory = make_profile_memory();
  if (memory < 0) throw std::runtime_error(std::string("no memory for the profile: ") + strerror(errno));
  std::optional<RawProfile> profile;
  std::vector<Reach> reach;
  std::string why;
  const int status = run_until_end(options, memory, [&](const StoppedProcess& process) {
    profile = profile_of(memory, static_cast<uint32_t>(process.pid));
    if (is_limited(process.pid)) {
      why = "the program's address space is limited (ulimit -v): blocks in use cannot be told from lost ones";
      return;
    }
    try {
      if (profile && profile->samples_dropped == 0) reach = scan(process, &*profile);
    } catch (const std::exception& error) {
      why = error.what();
    }
  });
  close(memory);
  if (status >= 125 && status <= 127 && !profile) return status;
  if (!profile) why = "the program allocated no memory, or ran on another allocator";
  if (profile && profile->samples_dropped != 0)
    why =
        fmt::format("there was no room for {} blocks: with so many live at a time, lost ones cannot be found",
                    profile->samples_dropped);
  if (!why.empty()) {
    fprintf(stderr, "hummock leaks: %s\n", why.c_str());
    return status_without_result(status);
  }
  return tell(options, known, *profile, reach) && options.fail ? kLeaksFound : status;
}

int growth_of_process(const LeaksOptions& options) {
  ProfileOptions watch;
  watch.command_name = "hummock leaks";
  watch.process = options.command.front();
  watch.growth = true;
  watch.enter = options.after <= 0;
  watch.seconds = watch.enter ? 1e9 : options.after;
  watch.bytes = options.bytes;
  watch.wait_ms = options.wait_ms;
  const auto report = watch_processes(watch);
  if (!report) return 1;
  fputs(table(*report, View::live, options.top, kColumns).c_str(), stdout);
  return options.fail && report->total(View::live).bytes > 0 ? kLeaksFound : 0;
}

int dispatch(int count, char** arguments) {
  LeaksOptions options;
  if (const auto status = read_leaks_options(count, arguments, &options)) return *status;
  Suppressions known;
  try {
    for (const std::string& file : options.suppressions) known.add_file(file);
  } catch (const std::exception& error) {
    fprintf(stderr, "hummock leaks: %s\n", error.what());
    return 2;
  }
  return options.program ? leaks_of_program(options, known) : growth_of_process(options);
}

}  // namespace

int main(int count, char** arguments) {
  guard_standard_streams();
  try {
    return dispatch(count, arguments);
  } catch (const std::exception& error) {
    fprintf(stderr, "hummock leaks: %s\n", error.what());
  }
  return names_program(count, arguments) ? kCannotOverride : 1;
}
