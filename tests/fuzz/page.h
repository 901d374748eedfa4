// Is a page that the tool wrote well formed? It has no script, so nothing that looks like one may have come
// in.
#ifndef HUMMOCK_TESTS_FUZZ_PAGE_H
#define HUMMOCK_TESTS_FUZZ_PAGE_H

#include <set>
#include <vector>

#include "fuzz.h"

namespace fuzz {

// Every element is one of those we write, and is closed in its turn; numbers in drawings are numbers.
inline void check_page(const std::string& page) {
  static const std::set<std::string> known = {
      "!doctype", "html", "head",  "meta", "title", "style", "body",   "h1",   "h2",
      "h3",       "p",    "svg",   "line", "text",  "path",  "circle", "span", "details",
      "summary",  "div",  "table", "tr",   "th",    "td",    "code"};
  static const std::set<std::string> single = {"!doctype", "meta"};
  std::vector<std::string> open;
  for (size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    const size_t end = page.find('>', at);
    expect(end != std::string::npos, "every tag ends");
    const std::string tag = page.substr(at + 1, end - at - 1);
    const bool closes = tag[0] == '/';
    const std::string name = tag.substr(closes, tag.find_first_of(" \n/", 1) - closes);
    expect(known.count(name) == 1, "an element of our own alone");
    expect(std::count(tag.begin(), tag.end(), '"') % 2 == 0 && tag.find('<') == std::string::npos,
           "whole attributes");
    if (closes) {
      expect(!open.empty() && open.back() == name, "elements are closed in their turn");
      open.pop_back();
    } else if (single.count(name) == 0 && tag.back() != '/') {
      open.push_back(name);
    }
    if (name == "path" || name == "circle" || name == "line") {
      expect(tag.find("nan") == std::string::npos && tag.find("inf") == std::string::npos,
             "numbers in drawings");
    }
    at = end;
  }
  expect(open.empty(), "every element is closed");
}

}  // namespace fuzz

#endif  // HUMMOCK_TESTS_FUZZ_PAGE_H
