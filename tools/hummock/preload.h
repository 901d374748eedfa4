// Names of libraries as the loader takes them in LD_PRELOAD.
#pragma once

#include <string>
#include <vector>

namespace hummock::tool {

// LD_PRELOAD is cut at blanks and colons, and $ORIGIN and its like are replaced. The library's path, or where
// it has one of those, that of a link in a folder of this user's that leads to it:
// /tmp/hummock-<user>/<hash of the path>/<file>. The link stays, for processes that outlive us start others;
// the next call finds it there. Throws std::runtime_error when there is no place for one.
std::string preloadable(const std::string& library);

// Loads the library before a process of our own. Empty, or why the loader does not take it.
std::string trial(const std::string& name);

// What a program prints, on both descriptors, with no LD_PRELOAD in its environment. Empty when it cannot
// run.
std::string said_by(const std::vector<std::string>& command);

}  // namespace hummock::tool
