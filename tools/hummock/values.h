// Values of the command line by kind: what every option of a kind takes, what the help calls it, and what is
// said of a value that is wrong.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace hummock::tool {

// What a number without a unit is, and what the variable holds.
enum class TimeUnit { kMilliseconds, kSeconds, kMinutes };

// Seconds.
inline constexpr double kDay = 86400;
inline constexpr double kLongest = 100 * kDay;  // of what somebody may well leave alone for weeks

// A number, or one with ms, s, m or h behind it; `least` and `most` are in seconds. Milliseconds are rounded
// up to whole ones.
CLI::Option* takes_time(CLI::Option* option, TimeUnit unit, double least = 0, double most = kDay);
// --wait, of the commands that ask a process; its default is what the variable holds.
void add_wait(CLI::App* command, unsigned* wait_ms);
// Bytes, or as 64K, 2M, 1GiB: powers of 1024.
// `most`: all, or some T.
CLI::Option* takes_size(CLI::Option* option, uint64_t most = UINT64_MAX);
inline constexpr uint64_t kMostSampleBytes = uint64_t{1} << 40;
// A file to be written, and no program.
CLI::Option* takes_output(CLI::Option* option);
CLI::Option* takes_count(CLI::Option* option, uint64_t least = 0, uint64_t most = UINT32_MAX);
CLI::Option* takes_number(CLI::Option* option, double least, double most);
// The help calls it by its words, with | between.
CLI::Option* takes_one_of(CLI::Option* option, const std::vector<std::string>& words);

// What the library that reads the command line says of it, in plain words.
std::string plain_words(const CLI::ParseError& error);

}  // namespace hummock::tool
