#include "program.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "preload.h"

namespace hummock::tool {
namespace {

// What kind of file it is, as in st_mode; 0: there is none.
mode_t kind_of(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 ? status.st_mode & S_IFMT : 0;
}

// As execvp finds it; with a slash in the name it may be a folder or a device. Empty: not found.
std::string find(const std::string& name) {
  if (name.find('/') != std::string::npos) return kind_of(name) != 0 ? name : "";
  const char* path = getenv("PATH");
  std::stringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  std::string found, folder;
  while (std::getline(folders, folder, ':')) {
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (kind_of(candidate) != S_IFREG) continue;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    if (found.empty()) found = candidate;
  }
  return found;
}

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The interpreter of a script's first line; for "env", the program it will look for.
std::string interpreter(const std::string& content) {
  std::stringstream line(content.substr(2, content.find('\n') - 2));
  std::string program, argument;
  line >> program;
  if (program.size() >= 4 && program.compare(program.size() - 4, 4, "/env") == 0) {
    while (line >> argument) {
      if (argument[0] != '-' && argument.find('=') == std::string::npos) return argument;
    }
  }
  return program;
}

constexpr std::pair<const char*, const char*> kSanitizers[] = {{"__asan_init", "AddressSanitizer"},
                                                               {"__hwasan_init", "HWAddressSanitizer"},
                                                               {"__tsan_init", "ThreadSanitizer"},
                                                               {"__msan_init", "MemorySanitizer"},
                                                               {"__lsan_init", "LeakSanitizer"}};

// A table of `count` entries at `offset`, if it lies in the file.
template <class T>
const T* table(const std::string& content, uint64_t offset, uint64_t count) {
  if (offset > content.size() || count > (content.size() - offset) / sizeof(T)) return nullptr;
  return reinterpret_cast<const T*>(content.data() + offset);
}

void read_sections(const std::string& content, const Elf64_Ehdr& header, Program& program) {
  const auto* sections = table<Elf64_Shdr>(content, header.e_shoff, header.e_shnum);
  for (unsigned i = 0; sections != nullptr && i < header.e_shnum; ++i) {
    const Elf64_Shdr& section = sections[i];
    if (section.sh_link >= header.e_shnum) continue;
    const Elf64_Shdr& strings = sections[section.sh_link];
    const auto text = [&](uint64_t at) {
      return at < strings.sh_size && table<char>(content, strings.sh_offset, strings.sh_size) != nullptr
                 ? std::string(content.c_str() + strings.sh_offset + at)
                 : std::string();
    };
    const auto defines = [&](const Elf64_Sym& symbol, const char* name) {
      return symbol.st_shndx != SHN_UNDEF && text(symbol.st_name) == name;
    };
    if (section.sh_type == SHT_DYNSYM) {
      const uint64_t count = section.sh_size / sizeof(Elf64_Sym);
      const auto* symbols = table<Elf64_Sym>(content, section.sh_offset, count);
      for (uint64_t k = 0; symbols != nullptr && k < count; ++k) {
        if (defines(symbols[k], "malloc"))
          program.own_malloc = "defines its own malloc, which takes precedence over a preloaded one";
        for (const auto& [symbol, name] : kSanitizers)
          if (text(symbols[k].st_name) == symbol) program.sanitizer = name;
      }
    } else if (section.sh_type == SHT_DYNAMIC) {
      const uint64_t count = section.sh_size / sizeof(Elf64_Dyn);
      const auto* entries = table<Elf64_Dyn>(content, section.sh_offset, count);
      for (uint64_t k = 0; entries != nullptr && k < count; ++k) {
        if (entries[k].d_tag != DT_NEEDED) continue;
        const std::string needed = text(entries[k].d_un.d_val);
        for (const char* known :
             {"jemalloc", "tcmalloc", "mimalloc", "snmalloc", "rpmalloc", "tbbmalloc_proxy"}) {
          if (needed.find(known) != std::string::npos) program.allocators.push_back(needed);
        }
      }
    }
  }
}

void read_elf(const std::string& content, Program& program) {
  Elf64_Ehdr own;
  const std::string self = read_all("/proc/self/exe");
  if (content.size() < sizeof own || self.size() < sizeof own) return;
  Elf64_Ehdr header;
  memcpy(&header, content.data(), sizeof header);
  memcpy(&own, self.data(), sizeof own);
  program.elf = true;
  program.foreign = header.e_ident[EI_CLASS] != own.e_ident[EI_CLASS] || header.e_machine != own.e_machine;
  if (program.foreign) return;
  const auto* segments = table<Elf64_Phdr>(content, header.e_phoff, header.e_phnum);
  for (unsigned i = 0; segments != nullptr && i < header.e_phnum; ++i) {
    if (segments[i].p_type != PT_INTERP) continue;
    if (table<char>(content, segments[i].p_offset, segments[i].p_filesz) != nullptr)
      program.loader = content.c_str() + segments[i].p_offset;
  }
  program.is_static = program.loader.empty();
  program.musl = program.loader.find("ld-musl") != std::string::npos;
  // A text of the library's that no stripping removes.
  program.holds_hummock = content.find("HUMMOCK_RUN_NOTIFY=") != std::string::npos;
  if (program.holds_hummock) return;
  read_sections(content, header, program);
}

void read_rights(Program& program) {
  struct stat status;
  if (stat(program.path.c_str(), &status) != 0) return;
  const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != getuid();
  const bool other_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getgid();
  const bool capable = getuid() != 0 && getxattr(program.path.c_str(), "security.capability", nullptr, 0) > 0;
  program.privileged = other_user || other_group || capable;
}

}  // namespace

Program inspect(const std::string& name) {
  Program program;
  std::string next = name;
  for (int depth = 0; depth < 5; ++depth) {  // a script's interpreter may be a script
    program.path = find(next);
    if (program.path.empty()) {
      program.path = next;
      program.error = 127;
      return program;
    }
    const mode_t kind = kind_of(program.path);
    program.folder = kind == S_IFDIR;
    if (kind != S_IFREG || access(program.path.c_str(), X_OK) != 0) {
      program.error = 126;
      return program;
    }
    const std::string content = read_all(program.path);
    if (content.compare(0, 2, "#!") == 0) {
      program.script = true;
      next = interpreter(content);
      continue;
    }
    if (content.compare(0, SELFMAG, ELFMAG) == 0) read_elf(content, program);
    break;
  }
  read_rights(program);
  return program;
}

std::string subject_of(const std::string& name, const Program& program) {
  return program.script ? name + " is a script of " + program.path : name;
}

std::string obstacle(const Program& program) {
  if (program.error == 127) return "not found";
  if (program.folder) return "is a folder";
  if (program.error == 126) return "not executable";
  if (program.foreign) return "built for another architecture than this Hummock";
  if (program.holds_hummock) return "";
  if (program.elf && program.is_static) return "statically linked: nothing can be preloaded into it";
  if (program.musl) return "uses musl, and this Hummock glibc";
  if (!program.sanitizer.empty()) return "built with " + program.sanitizer + ", which brings its own malloc";
  if (program.privileged)
    return "runs with more rights than yours (set-uid, set-gid or capabilities): the loader ignores preloads";
  return "";
}

std::string advice(const Program& program) {
  if (program.error == 127)
    return program.script ? "install it, or name another one in the script's first line"
                          : "name its path, or put its folder into PATH";
  if (program.foreign) return "use a Hummock that is built for the program's architecture";
  if (program.is_static)
    return "link Hummock into it: pkg-config --static --libs hummock, or hummock::static in CMake";
  if (program.musl) return "run the glibc build of the program, if there is one";
  if (!program.sanitizer.empty())
    return "build it without the sanitizer; hummock run --checked finds misuse of memory too";
  if (program.privileged)
    return "root can name the library in /etc/ld.so.preload, which serves such programs as well";
  if (!program.own_malloc.empty())
    return "build it without its allocator (redis: make MALLOC=libc), or with libhummock.a";
  return "";
}

std::string listed(const Program& program, const std::string& preload) {
  // Only glibc's loader lists; another might start the program.
  const std::string loader = program.loader.substr(program.loader.rfind('/') + 1);
  if (loader.compare(0, 8, "ld-linux") != 0) return "";
  const std::string said = said_by({program.loader, "--preload", preload, "--list", program.path});
  if (said.find(preload) != std::string::npos) return "";
  return said.empty() ? "" : said.substr(0, said.find('\n'));
}

std::string doubt(const Program& program) {
  if (!program.own_malloc.empty()) return program.own_malloc;
  if (!program.allocators.empty())
    return "is linked to " + program.allocators.front() + "; a preloaded malloc takes precedence over it";
  return "";
}

}  // namespace hummock::tool
