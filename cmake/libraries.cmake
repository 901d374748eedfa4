# The two libraries that replace malloc: build/libhummock.so and build/libhummock.a.

set(override_objects)
if(override_sources)
  add_library(hummock_override OBJECT ${override_sources})
  target_link_libraries(hummock_override PRIVATE hummock_core_flags)
  set(override_objects $<TARGET_OBJECTS:hummock_override>)
endif()

# ---- Shared -------------------------------------------------------------------------------------

# Linked by the C driver: nothing of libstdc++ may be needed at run time.
set(CMAKE_CXX_IMPLICIT_LINK_LIBRARIES "")
set(version_script ${PROJECT_SOURCE_DIR}/src/faces/libhummock.map)

add_library(hummock_dlopen OBJECT src/faces/dlopen.cc)
target_link_libraries(hummock_dlopen PRIVATE hummock_core_flags)
target_compile_options(hummock_dlopen PRIVATE -foptimize-sibling-calls)

add_library(hummock_shared SHARED $<TARGET_OBJECTS:hummock_core> ${override_objects} $<TARGET_OBJECTS:hummock_dlopen>)
add_library(hummock::shared ALIAS hummock_shared)
set_target_properties(hummock_shared PROPERTIES
  OUTPUT_NAME hummock
  EXPORT_NAME shared
  LINKER_LANGUAGE C
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${version_script}
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_include_directories(hummock_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(hummock_shared PRIVATE ${HUMMOCK_ATOMICS})
# No -Bsymbolic: a program may replace single operators, and hummock_is_active asks for the process's malloc.
# now: lazy binding may itself allocate. nodelete: blocks outlive a dlclose.
target_link_options(hummock_shared PRIVATE
  -static-libgcc -Wl,--exclude-libs,libatomic.a
  -Wl,--version-script=${version_script}
  -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,-z,defs -Wl,--as-needed)

# ---- Static -------------------------------------------------------------------------------------

# One object, so that a program gets the whole override or none of it, with the internal names made
# local, so that they cannot meet the program's.
set(whole ${PROJECT_BINARY_DIR}/hummock_whole.o)
add_custom_command(
  OUTPUT ${whole}
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -Wl,--force-group-allocation -o ${whole}
          $<TARGET_OBJECTS:hummock_core> ${override_objects} ${HUMMOCK_ATOMICS}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${whole}
  DEPENDS hummock_core ${override_objects} $<TARGET_OBJECTS:hummock_core>
  COMMAND_EXPAND_LISTS VERBATIM
  COMMENT "Merging libhummock.a into one object")

add_library(hummock_static STATIC ${whole})
add_library(hummock::static ALIAS hummock_static)
set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
set_target_properties(hummock_static PROPERTIES
  OUTPUT_NAME hummock
  EXPORT_NAME static
  LINKER_LANGUAGE C
  ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_include_directories(hummock_static INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# -u: taken into the program even when only libc itself calls malloc.
target_link_options(hummock_static INTERFACE -Wl,-u,hummock_malloc)
target_link_libraries(hummock_static INTERFACE Threads::Threads)
