#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "child.h"
#include "processes.h"
#include "run.h"
#include "session.h"
#include "start.h"

namespace hummock::tool {

std::optional<Report> run_program(const ProfileOptions& options, int* status) {
  *status = kCannotOverride;
  const int memory = make_profile_memory();
  if (memory < 0) {
    fprintf(stderr, "hummock profile: no memory for the profile: %s\n", strerror(errno));
    return std::nullopt;
  }
  // What the program does to its parent's output shall come after ours.
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) become_profiled(memory, options.bytes, options.library, options.command);
  if (child < 0) {
    fprintf(stderr, "hummock profile: %s\n", strerror(errno));
    close(memory);
    return std::nullopt;
  }
  pass_signals_to(child);
  *status = exit_status("hummock profile", wait_for(child));
  std::string why = "it has taken no sample: it allocated too little memory, or --bytes is too large";
  Report report;
  for (const RawProfile& profile : read_profiles(memory, &why)) {
    if (profile.samples == 0) continue;
    add_profile(&report, profile, "", printable(profile.program) + " (" + std::to_string(profile.pid) + ")");
  }
  close(memory);
  if (!report.processes.empty()) return report;
  if (*status >= 125 && *status <= 127) return std::nullopt;  // `hummock run` has said why it did not run
  fprintf(stderr,
          "hummock profile: no process has taken a sample: they allocated too little memory for --bytes\n");
  return std::nullopt;
}

}  // namespace hummock::tool
