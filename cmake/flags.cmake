# Compiler flags; the core's own flags stand in hummock_core_flags.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)
set(CMAKE_C_STANDARD 11)
if(HUMMOCK_IS_TOP)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

add_compile_options(-Wall -Wextra $<$<BOOL:${HUMMOCK_WERROR}>:-Werror>)

if(HUMMOCK_SANITIZE)
  add_compile_options(-fsanitize=${HUMMOCK_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HUMMOCK_SANITIZE})
endif()

# Programs that are about malloc: the compiler must neither remove nor assume anything of a call.
set(HUMMOCK_NO_BUILTINS
    -fno-builtin-malloc -fno-builtin-free -fno-builtin-calloc -fno-builtin-realloc
    -fno-builtin-aligned_alloc -fno-builtin-memalign -fno-builtin-posix_memalign -fno-builtin-valloc
    -fno-builtin-pvalloc -fno-builtin-reallocarray)

# Before version 13, GCC calls libatomic for bytes on RISC-V: its few functions come into our libraries.
set(HUMMOCK_ATOMICS)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^riscv" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
   AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(HUMMOCK_ATOMICS -l:libatomic.a)
endif()

add_library(hummock_core_flags INTERFACE)
target_include_directories(hummock_core_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_options(hummock_core_flags INTERFACE
  -fno-exceptions -fno-rtti -fno-threadsafe-statics
  ${HUMMOCK_NO_BUILTINS})
if(NOT WIN32)
  target_compile_options(hummock_core_flags INTERFACE
    -fno-plt -fvisibility=hidden -fvisibility-inlines-hidden -ftls-model=initial-exec)
  # bad_alloc goes through operator new; not every machine's compiler has tables for that by itself.
  target_compile_options(hummock_core_flags INTERFACE -fasynchronous-unwind-tables)
endif()
