// The table of a stored result inside a document, between two marker lines; the first names the result.
#pragma once

#include <string>

namespace hummock::tool {

struct TableOptions {
  std::string result;
  std::string by = "group";
  std::string into;   // rewrite this document's table
  std::string check;  // exit status 1 when this document's table is another
};

int make_table(const TableOptions& options);

}  // namespace hummock::tool
