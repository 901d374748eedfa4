# For a tests' CMakeLists.txt whose tests a Python script runs on programs as they are shipped: ends it in a
# sanitizer's or a cross build. A macro, so that return() ends the file that calls it.
macro(hummock_shipped_tests)
  if(HUMMOCK_SANITIZE OR CMAKE_CROSSCOMPILING)
    return()
  endif()
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
endmacro()
