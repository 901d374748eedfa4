// The C++ run time library of the process (libstdc++ or libc++), if it has one. Hummock needs none: these
// symbols are looked for only when an operator new fails.
#ifndef HUMMOCK_FACES_CXX_RUNTIME_H
#define HUMMOCK_FACES_CXX_RUNTIME_H

#include <stddef.h>

namespace hummock::faces {

enum class CxxSymbol : size_t {
  get_new_handler,
  allocate_exception,
  throw_exception,
  bad_alloc_type,
  bad_alloc_table,
  bad_alloc_end,
};

// Its address, or null. Takes the dynamic linker's lock in a program that is not linked to a C++ run
// time itself but loaded one later.
void* find_cxx(CxxSymbol symbol);

template <class Function>
Function* find_cxx(CxxSymbol symbol) {
  return reinterpret_cast<Function*>(find_cxx(symbol));
}

}  // namespace hummock::faces

#endif  // HUMMOCK_FACES_CXX_RUNTIME_H
