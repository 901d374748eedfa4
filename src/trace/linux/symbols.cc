// Names of functions, read from the files of the program and its shared objects without malloc.
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <initializer_list>

#include "base/keep_errno.h"
#include "trace/backtrace.h"
#include "trace/linux/modules.h"

namespace hummock::trace {
namespace {

using Header = ElfW(Ehdr);
using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);

constexpr size_t kMostPath = 4096;

// A file's bytes; none when it cannot be mapped.
class File {
 public:
  explicit File(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat about;
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
      void* bytes = mmap(nullptr, static_cast<size_t>(about.st_size), PROT_READ, MAP_PRIVATE, file, 0);
      if (bytes != MAP_FAILED) {
        bytes_ = static_cast<const unsigned char*>(bytes);
        size_ = static_cast<size_t>(about.st_size);
      }
    }
    close(file);
  }
  ~File() {
    if (bytes_ != nullptr) munmap(const_cast<unsigned char*>(bytes_), size_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // `count` things at `offset`; null when they are not all inside the file.
  template <class T>
  const T* at(uint64_t offset, uint64_t count) const {
    if (offset % alignof(T) != 0 || offset > size_ || count > (size_ - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(bytes_ + offset);
  }

 private:
  const unsigned char* bytes_ = nullptr;
  size_t size_ = 0;
};

struct Found {
  const char* name = nullptr;
  size_t length = 0;
  uintptr_t offset = 0;
};

// The function of the table that begins last at or before `address`, and does not end before it.
void search(const File& file, const Section& table, const Section& strings, uintptr_t address, Found* out) {
  const uint64_t count = table.sh_size / sizeof(Symbol);
  const Symbol* symbols = file.at<Symbol>(table.sh_offset, count);
  const char* names = file.at<char>(strings.sh_offset, strings.sh_size);
  if (symbols == nullptr || names == nullptr) return;
  const Symbol* best = nullptr;
  for (const Symbol* each = symbols; each != symbols + count; ++each) {
    const unsigned type = each->st_info & 0xf;
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || each->st_shndx == SHN_UNDEF) continue;
    if (each->st_value > address || address - each->st_value >= (each->st_size != 0 ? each->st_size : 1))
      continue;
    if (best == nullptr || each->st_value > best->st_value) best = each;
  }
  if (best == nullptr || best->st_name >= strings.sh_size) return;
  out->name = names + best->st_name;
  out->length = strnlen(out->name, strings.sh_size - best->st_name);
  out->offset = address - best->st_value;
}

// All functions where the file still names them, else those that it exports.
Found find_function(const File& file, uintptr_t address) {
  Found found;
  const Header* header = file.at<Header>(0, 1);
  if (header == nullptr || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return found;
  if (header->e_shentsize != sizeof(Section)) return found;
  const Section* sections = file.at<Section>(header->e_shoff, header->e_shnum);
  if (sections == nullptr) return found;
  for (const unsigned kind : {SHT_SYMTAB, SHT_DYNSYM}) {
    for (unsigned i = 0; i < header->e_shnum && found.name == nullptr; ++i) {
      if (sections[i].sh_type != kind || sections[i].sh_link >= header->e_shnum) continue;
      search(file, sections[i], sections[sections[i].sh_link], address, &found);
    }
  }
  return found;
}

// The program's own path is not in the list of objects. Whoever writes it here writes the same. Not on the
// stack, which may be a signal handler's, of 8 KiB.
const char* path_of(const Module& module) {
  static char room[kMostPath];
  if (*module.name != '\0') return module.name;
  const ssize_t length = readlink("/proc/self/exe", room, kMostPath - 1);
  room[length > 0 ? length : 0] = '\0';
  return room;
}

// The call, not what comes after it: the last of a function may be a call that does not return.
void print_frame(unsigned number, uintptr_t code) {
  const uintptr_t call = code - 1;
  base::Line line = report_line();
  line.text("    #").dec(number).text(" ");
  Module module;
  if (!find_module(call, &module)) {
    base::say(line.text("[").hex(call).text("]"));
    return;
  }
  const char* path = path_of(module);
  line.text(*path != '\0' ? path : "?").text("+").hex(call - module.base).text(" [").hex(call).text("]");
  const File file(path);
  const Found found = find_function(file, call - module.base);
  if (found.name != nullptr) line.text(" ").text(found.name, found.length).text("+").hex(found.offset);
  base::say(line);
}

}  // namespace

void print_frames(void* const* frames, unsigned count) {
  const base::KeepErrno keep;
  for (unsigned i = 0; i < count; ++i) print_frame(i, reinterpret_cast<uintptr_t>(frames[i]));
}

}  // namespace hummock::trace
