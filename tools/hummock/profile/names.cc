#include "names.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "processes.h"

namespace hummock::tool {

namespace {

std::string demangled(const char* name) {
  int status = 0;
  char* text =
      name[0] == '_' && name[1] == 'Z' ? abi::__cxa_demangle(name, nullptr, nullptr, &status) : nullptr;
  std::string result = text != nullptr && status == 0 ? text : name;
  free(text);
  return result;
}

std::string hex(uint64_t number) {
  char text[32];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

// A file below a folder of which nothing leads out; -1 where the kernel cannot, or there is none.
int find_below(const std::string& root, const std::string& path) {
  const int folder = open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return -1;
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  const int fd = static_cast<int>(syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how));
  close(folder);
  return fd;
}

// The process names the path: what is no plain file is not even opened, as devices do things when they are.
int open_code(const std::string& root, const std::string& path) {
  if (path.empty() || path[0] != '/') return -1;
  int found = root.empty() ? -1 : find_below(root, path);
  if (found < 0) found = open(path.c_str(), O_PATH | O_CLOEXEC);
  struct stat about;
  int fd = -1;
  if (found >= 0 && fstat(found, &about) == 0 && S_ISREG(about.st_mode))
    fd = open(("/proc/self/fd/" + std::to_string(found)).c_str(), O_RDONLY | O_CLOEXEC);
  if (found >= 0) close(found);
  return fd;
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Where the function is declared: what is compiled, or inlined, says so by a reference.
Dwarf_Die declaration_of(Dwarf_Die die) {
  for (int steps = 8; steps != 0; --steps) {
    Dwarf_Attribute attribute;
    Dwarf_Die next;
    const bool refers = dwarf_attr(&die, DW_AT_abstract_origin, &attribute) != nullptr ||
                        dwarf_attr(&die, DW_AT_specification, &attribute) != nullptr;
    if (!refers || dwarf_formref_die(&attribute, &next) == nullptr) break;
    die = next;
  }
  return die;
}

// "app::Session::" of what stands in there.
std::string scope_of(const Dwarf_Die& declaration) {
  Dwarf_Die die = declaration;
  Dwarf_Die* around = nullptr;
  std::string names;
  const int count = dwarf_getscopes_die(&die, &around);
  for (int i = 1; i < count; ++i) {
    const int tag = dwarf_tag(&around[i]);
    if (tag != DW_TAG_namespace && tag != DW_TAG_class_type && tag != DW_TAG_structure_type) continue;
    const char* name = dwarf_diename(&around[i]);
    names.insert(0, std::string(name != nullptr ? name : "(anonymous namespace)") + "::");
  }
  free(around);
  return names;
}

// The function's name as the linker knows it, where that is said: with its namespaces and parameters.
std::string name_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned which : {unsigned{DW_AT_linkage_name}, unsigned{DW_AT_MIPS_linkage_name}}) {
    if (dwarf_attr_integrate(die, which, &attribute) == nullptr) continue;
    if (const char* name = dwarf_formstring(&attribute)) return demangled(name);
  }
  const char* name = dwarf_diename(die);
  return name != nullptr ? scope_of(declaration_of(*die)) + name : "";
}

bool is_function(Dwarf_Die* die) {
  const int tag = dwarf_tag(die);
  return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram;
}

struct Line {
  std::string file;
  unsigned line = 0;
};

// Where an inlined function was called.
Line call_of(Dwarf_Die* die, Dwarf_Die* unit) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0, line = 0;
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_attr(die, DW_AT_call_file, &attribute) == nullptr || dwarf_formudata(&attribute, &file) != 0)
    return {};
  if (dwarf_attr(die, DW_AT_call_line, &attribute) == nullptr || dwarf_formudata(&attribute, &line) != 0)
    return {};
  if (dwarf_getsrcfiles(unit, &files, &count) != 0 || file >= count) return {};
  const char* name = dwarf_filesrc(files, file, nullptr, nullptr);
  return {name != nullptr ? name : "", static_cast<unsigned>(line)};
}

}  // namespace

struct Names::State {
  Dwfl* dwfl = nullptr;
  Dwfl_Callbacks callbacks = {};
  std::vector<RawModule> modules;
  std::map<uint64_t, std::vector<Place>> known;

  const RawModule* module_of(uint64_t address) const {
    for (const RawModule& each : modules)
      if (address >= each.start && address < each.end) return &each;
    return nullptr;
  }

  std::vector<Place> look_up(uint64_t call) const;
  void add_by_dwarf(Dwfl_Module* module, uint64_t call, const Line& at, std::vector<Place>* out) const;
};

namespace {

int no_elf(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) {
  return -1;  // all files are given
}

}  // namespace

Names::Names(const RawProfile& profile, const std::string& root) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.modules = profile.modules;
  state.callbacks.find_elf = no_elf;
  state.callbacks.find_debuginfo = dwfl_standard_find_debuginfo;
  state.callbacks.section_address = dwfl_offline_section_address;
  state.dwfl = dwfl_begin(&state.callbacks);
  if (state.dwfl == nullptr) return;
  dwfl_report_begin(state.dwfl);
  for (const RawModule& module : state.modules) {
    const int fd = open_code(root, module.path);
    if (fd < 0) continue;
    const std::string name = base_name(module.path);
    if (dwfl_report_elf(state.dwfl, name.c_str(), module.path.c_str(), fd, module.base, true) == nullptr)
      close(fd);
  }
  dwfl_report_end(state.dwfl, nullptr, nullptr);
}

Names::~Names() {
  if (state_->dwfl != nullptr) dwfl_end(state_->dwfl);
}

// dwarf_getscopes() leaves an inlined function for where it is written, not for where it was inlined: so its
// innermost function alone is taken, and dwarf_getscopes_die() leads outwards from there.
void Names::State::add_by_dwarf(Dwfl_Module* module, uint64_t call, const Line& at,
                                std::vector<Place>* out) const {
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = dwfl_module_addrdie(module, call, &bias);
  if (unit == nullptr) return;
  Dwarf_Die* around = nullptr;
  const int count = dwarf_getscopes(unit, call - bias, &around);
  int first = 0;
  while (first < count && !is_function(&around[first])) ++first;
  Dwarf_Die* scopes = nullptr;
  const int depth = first < count ? dwarf_getscopes_die(&around[first], &scopes) : 0;
  Line line = at;
  for (int i = 0; i < depth; ++i) {
    if (!is_function(&scopes[i])) continue;
    const std::string name = name_of(&scopes[i]);
    if (!name.empty()) out->push_back({name, line.file, line.line, false});
    if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram) break;
    line = call_of(&scopes[i], unit);
  }
  free(scopes);
  free(around);
}

std::vector<Place> Names::State::look_up(uint64_t call) const {
  std::vector<Place> places;
  const RawModule* raw = module_of(call);
  if (raw == nullptr) return {{hex(call), "", 0, false}};
  const std::string file = base_name(raw->path);
  Dwfl_Module* module = dwfl != nullptr ? dwfl_addrmodule(dwfl, call) : nullptr;
  if (module != nullptr) {
    Line line;
    if (Dwfl_Line* found = dwfl_module_getsrc(module, call)) {
      int number = 0;
      const char* source = dwfl_lineinfo(found, nullptr, &number, nullptr, nullptr, nullptr);
      if (source != nullptr) line = {source, static_cast<unsigned>(std::max(number, 0))};
    }
    add_by_dwarf(module, call, line, &places);
    if (places.empty()) {
      GElf_Off offset = 0;
      GElf_Sym symbol;
      const char* name = dwfl_module_addrinfo(module, call, &offset, &symbol, nullptr, nullptr, nullptr);
      if (name != nullptr) places.push_back({demangled(name), line.file, line.line, false});
    }
  }
  if (places.empty()) places.push_back({file + "+" + hex(call - raw->base), "", 0, false});
  const bool ours = file.rfind("libhummock.so", 0) == 0;
  for (Place& place : places) {
    place.of_allocator = ours || place.function.rfind("hummock::", 0) == 0;
    place.function = printable(place.function);
    place.file = printable(place.file);
  }
  return places;
}

const std::vector<Place>& Names::find(uint64_t address) {
  auto [at, fresh] = state_->known.try_emplace(address);
  // The call, not what comes after it: the last of a function may be a call that does not return.
  if (fresh) at->second = state_->look_up(address - 1);
  return at->second;
}

}  // namespace hummock::tool
