#include "trace/linux/modules.h"

#include <dlfcn.h>
#include <link.h>

namespace hummock::trace {

// glibc from 2.35 on answers without a lock, and so also inside a signal handler, and in the child of a fork
// whose parent was loading an object.
#if defined(DLFO_STRUCT_HAS_EH_DBASE)

bool find_module(uintptr_t address, Module* out) {
  dl_find_object found;
  if (_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return false;
  out->start = reinterpret_cast<uintptr_t>(found.dlfo_map_start);
  out->end = reinterpret_cast<uintptr_t>(found.dlfo_map_end);
  const link_map* map = found.dlfo_link_map;
  out->base = map != nullptr ? map->l_addr : 0;
  out->name = map != nullptr && map->l_name != nullptr ? map->l_name : "";
  out->unwinds = static_cast<const unsigned char*>(found.dlfo_eh_frame);
  return true;
}

#else

namespace {

struct Search {
  uintptr_t address;
  Module* out;
};

// All of the first segment's start to the last one's end, and the unwind data, if the address is inside.
int look_at(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  Module found = {UINTPTR_MAX, 0, info->dlpi_addr, info->dlpi_name != nullptr ? info->dlpi_name : "",
                  nullptr};
  bool inside = false;
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) found.unwinds = reinterpret_cast<const unsigned char*>(start);
    if (part.p_type != PT_LOAD) continue;
    if (start < found.start) found.start = start;
    if (start + part.p_memsz > found.end) found.end = start + part.p_memsz;
    inside = inside || (search->address >= start && search->address - start < part.p_memsz);
  }
  if (inside) *search->out = found;
  return inside;
}

}  // namespace

bool find_module(uintptr_t address, Module* out) {
  Search search = {address, out};
  return dl_iterate_phdr(look_at, &search) != 0;
}

#endif

}  // namespace hummock::trace
