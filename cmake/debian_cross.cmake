# Debian's cross compiler for the machine `triple`, whose programs run by `emulator`, if it has one; included by
# the toolchain files.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${triple}-gcc)
set(CMAKE_CXX_COMPILER ${triple}-g++)
if(NOT emulator)
  # This machine runs them, with their own loader and libraries: one of the host's and one of these do not go together. An old RPATH, which their own libraries heed, too.
  set(CMAKE_EXE_LINKER_FLAGS_INIT
      "-Wl,-rpath,/usr/${triple}/lib,--disable-new-dtags -Wl,--dynamic-linker=/usr/${triple}/lib/ld-linux.so.2")
else()
  set(CMAKE_CROSSCOMPILING_EMULATOR ${emulator} -L /usr/${triple})
endif()
# Notes on what other compilers and versions do; errors in a test build.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(i686|armv7l)$")
  set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)
endif()
# Header-only packages (CLI11, doctest) are the host's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
