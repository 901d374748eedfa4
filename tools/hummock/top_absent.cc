// Where the tool is built without ncurses.
#include <stdio.h>

#include "top.h"

namespace hummock::tool {

int top(const std::string& which, double every) {
  (void)which, (void)every;
  fprintf(stderr, "hummock top: built without ncurses; hummock ps and hummock stats --every 2 print\n");
  return 1;
}

}  // namespace hummock::tool
