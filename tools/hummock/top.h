// hummock top: the processes on Hummock, or one of them, on a terminal, again and again.
#pragma once

#include <string>

namespace hummock::tool {

// `which` empty: all processes. Until q is pressed; 1 with a line that says why there is nothing to show.
int top(const std::string& which, double every);

}  // namespace hummock::tool
