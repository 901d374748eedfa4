# Windows by Debian's cross compilers (the win32 thread model: the core has no std::thread); programs run
# under Wine. What includes this sets `target`.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_C_COMPILER ${target}-gcc-win32)
set(CMAKE_CXX_COMPILER ${target}-g++-win32)
set(CMAKE_RC_COMPILER ${target}-windres)
set(CMAKE_FIND_ROOT_PATH /usr/${target})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
