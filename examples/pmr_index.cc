// Which lines of some files a word stands on: an index of standard containers that stand in a heap each, and
// are replaced whole, as a server would its tables.
//
//   c++ -std=c++20 pmr_index.cc $(pkg-config --cflags --libs hummock) && ./a.out FILE...
#include <cctype>
#include <fstream>
#include <hummock/hummock.hpp>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

// The containers stand in the heap themselves, so its end is the end of all: no destructor runs.
class Index {
 public:
  Index() : resource_(heap_), words_(*std::pmr::polymorphic_allocator<>(&resource_).new_object<Words>()) {}

  void add(const std::string& line, int number) {
    std::pmr::string word(&resource_);
    for (const char c : line + ' ') {
      if (std::isalpha(static_cast<unsigned char>(c))) {
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      } else if (!word.empty()) {
        words_[word].push_back(number);
        word.clear();
      }
    }
  }

  const auto& words() const { return words_; }
  hummock_heap_stats_t stats() const { return heap_.stats(); }

 private:
  using Words = std::pmr::map<std::pmr::string, std::pmr::vector<int>>;
  hummock::heap heap_;
  hummock::memory_resource resource_;
  Words& words_;
};

}  // namespace

int main(int argc, char** argv) {
  size_t found = 0;
  hummock::unique_ptr<Index> index;
  for (int i = 1; i < argc; ++i) {
    index = hummock::make_unique<Index>();  // the one before ends here
    std::ifstream file(argv[i]);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) index->add(line, number);

    const auto slab = index->words().find("slab");
    std::cout << argv[i] << ": " << index->words().size() << " words in " << index->stats().live_blocks
              << " blocks; \"slab\" on";
    if (slab != index->words().end()) {
      found += slab->second.size();
      for (const int number : slab->second) std::cout << ' ' << number;
    }
    std::cout << '\n';
  }
  return found != 0 ? 0 : 1;
}
