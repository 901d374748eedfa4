# Debian's cross compiler for the machine `triple`, whose programs run by `emulator`, if it has one; included by
# the toolchain files.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${triple}-gcc)
set(CMAKE_CXX_COMPILER ${triple}-g++)
if(NOT emulator)
  set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,-rpath,/usr/${triple}/lib)  # this machine runs them, with their own libraries
else()
  set(CMAKE_CROSSCOMPILING_EMULATOR ${emulator} -L /usr/${triple})
endif()
# Header-only packages (CLI11, doctest) are the host's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
