# x86-64 with musl, by Debian's musl-tools: the libraries alone. musl-tools has no C++; of the compiler's own the
# core needs headers only, which ask for a macro of glibc's.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_CXX_COMPILER g++)
execute_process(COMMAND g++ -dumpversion OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
set(specs /usr/lib/x86_64-linux-musl/musl-gcc.specs)
set(CMAKE_CXX_FLAGS_INIT "-specs=${specs} -isystem /usr/include/c++/${version} \
-isystem /usr/include/x86_64-linux-gnu/c++/${version} '-D__GLIBC_PREREQ(major,minor)=0'")
# The kernel's headers are the host's; musl's own come first.
foreach(language C CXX)
  string(APPEND CMAKE_${language}_FLAGS_INIT " -idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu")
endforeach()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
