// What /proc says of processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hummock::tool {

// Descriptors, opened for reading here, to what the process has open under that name; as root also what it
// has mapped only. The caller closes them. None: *why, where somebody wants to know, says why.
std::vector<int> open_links_to(int pid, const std::string& name, std::string* why);

// Is something of that name mapped there?
bool has_mapped(int pid, const std::string& name);

// As the process itself sees it.
uint32_t number_in_its_namespace(int pid);

// May a child of fork be asked to make a memfd? Not if it has filtered its system calls since it was forked:
// the call could end it.
bool may_make_page(int pid, std::string* why);

// Those that /proc lists, in their order.
std::vector<int> all_processes();
// The processes that are meant: by a number, a program's name, or a path below /sys/fs/cgroup. Empty: none.
std::vector<int> find_processes(const std::string& which);

std::string program_of(int pid);
// Without characters that a terminal would obey: for names that come from other people.
std::string printable(std::string text);
std::string cgroup_of(int pid);  // its path below /sys/fs/cgroup
uint64_t resident_of(int pid);   // bytes

}  // namespace hummock::tool
