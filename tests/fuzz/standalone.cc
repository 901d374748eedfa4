// Runs a fuzz target where there is no libFuzzer, with libFuzzer's own options:
//   fuzz_… [-runs=N] [-seed=N] [-max_len=N] [-max_total_time=S] [-artifact_prefix=P] [FILE or FOLDER]…
// All files are replayed; then N runs follow, each a file that was changed here and there, or bytes drawn at
// random. A seed makes the same runs again. Bytes that break a promise are left in the file P…crash-SEED-RUN.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz.h"
#include "support/support.h"

namespace {

using Bytes = std::vector<uint8_t>;

struct Options {
  size_t runs = 0;
  uint64_t seed = 0;
  size_t max_len = 4096;
  unsigned seconds = 0;
  std::string prefix;
  std::vector<Bytes> files;
};

// What the handler of a signal needs, ready before it comes.
const Bytes* current;
char artifact[4096];

void leave_artifact(int signal_number) {
  const int fd = open(artifact, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const bool written = fd >= 0 && write(fd, current->data(), current->size()) >= 0;
  constexpr char kSaid[] = "fuzz: the bytes that did it are in ";
  [[maybe_unused]] ssize_t said = write(2, kSaid, sizeof kSaid - 1);
  said = write(2, written ? artifact : "no file", written ? strlen(artifact) : 7);
  said = write(2, "\n", 1);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void run(const Bytes& bytes, const Options& options, const std::string& name) {
  snprintf(artifact, sizeof artifact, "%scrash-%s", options.prefix.c_str(), name.c_str());
  current = &bytes;
  alarm(HUMMOCK_TEST_EMULATED ? 400 : 100);  // one run takes milliseconds
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  alarm(0);
}

Bytes random_bytes(support::Random& random, size_t most) {
  Bytes bytes(random.size_up_to(most));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  return bytes;
}

void change(Bytes* bytes, const Options& options, support::Random& random) {
  const size_t at = bytes->empty() ? 0 : random.below(bytes->size());
  const auto from = bytes->begin() + static_cast<ptrdiff_t>(at);
  const size_t length = std::min(bytes->size() - at, random.size_up_to(64));
  const auto to = from + static_cast<ptrdiff_t>(length);
  switch (random.below(6)) {
    case 0:
      if (!bytes->empty()) (*bytes)[at] = static_cast<uint8_t>(random.next());
      break;
    case 1:
      if (!bytes->empty()) (*bytes)[at] ^= static_cast<uint8_t>(1u << random.below(8));
      break;
    case 2:
      bytes->erase(from, to);
      break;
    case 3: {
      const Bytes piece(from, to);
      bytes->insert(bytes->begin() + static_cast<ptrdiff_t>(random.below(bytes->size() + 1)), piece.begin(),
                    piece.end());
      break;
    }
    case 4: {
      const Bytes piece = random_bytes(random, 16);
      bytes->insert(from, piece.begin(), piece.end());
      break;
    }
    default: {  // the end of another file
      const Bytes& other = options.files[random.below(options.files.size())];
      const size_t cut = random.below(other.size() + 1);
      bytes->erase(from, bytes->end());
      bytes->insert(bytes->end(), other.begin() + static_cast<ptrdiff_t>(cut), other.end());
    }
  }
  if (bytes->size() > options.max_len) bytes->resize(options.max_len);
}

Bytes draw(const Options& options, support::Random& random) {
  if (options.files.empty() || random.one_in(3)) return random_bytes(random, options.max_len);
  Bytes bytes = options.files[random.below(options.files.size())];
  for (size_t times = random.between(1, 8); times != 0; --times) change(&bytes, options, random);
  return bytes;
}

void read_files(const std::filesystem::path& path, Options* options) {
  std::vector<std::filesystem::path> found;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) found.push_back(entry.path());
    std::sort(found.begin(), found.end());  // so that a seed means the same everywhere
  } else {
    found.push_back(path);
  }
  for (const auto& file : found) {
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      fprintf(stderr, "fuzz: %s cannot be read\n", file.c_str());
      exit(2);
    }
    options->files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
}

Options read_options(int count, char** arguments) {
  Options options;
  options.seed = support::run_seed();
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const size_t equals = word.find('=');
    if (word[0] != '-' || equals == std::string::npos) {
      read_files(word, &options);
      continue;
    }
    const std::string name = word.substr(1, equals - 1), value = word.substr(equals + 1);
    const unsigned long long number = strtoull(value.c_str(), nullptr, 0);
    if (name == "runs") options.runs = support::scaled(number, std::min<size_t>(number, 20));
    if (name == "seed") options.seed = number;
    if (name == "max_len") options.max_len = std::max<size_t>(1, number);
    if (name == "max_total_time") options.seconds = static_cast<unsigned>(number);
    if (name == "artifact_prefix") options.prefix = value;
  }
  if (options.seconds != 0 && options.runs == 0) options.runs = SIZE_MAX;
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = read_options(count, arguments);
  for (int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) signal(number, leave_artifact);
  for (size_t i = 0; i < options.files.size(); ++i)
    run(options.files[i], options, "file-" + std::to_string(i));
  const time_t end = time(nullptr) + options.seconds;
  size_t done = 0;
  for (; done < options.runs && (options.seconds == 0 || time(nullptr) < end); ++done) {
    support::Random random(options.seed * 0x9E3779B97F4A7C15u + done);
    run(draw(options, random), options, std::to_string(options.seed) + "-" + std::to_string(done));
  }
  printf("%zu files and %zu drawn runs from seed %llu: no promise broken\n", options.files.size(), done,
         static_cast<unsigned long long>(options.seed));
}
