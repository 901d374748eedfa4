# 32-bit x86: its programs run on x86-64 as they are.
set(CMAKE_SYSTEM_PROCESSOR i686)
set(triple i686-linux-gnu)
set(emulator )
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
