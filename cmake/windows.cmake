# Windows: hummock.dll with the C interface, and hummock_bi.dll, which Arma's engine takes as its allocator.

list(FILTER core_sources EXCLUDE REGEX "/src/(proxy/[a-z_]*|space/[a-z_]*|modes/served|(os|trace)/linux/[a-z_]*|observe/notify|faces/[a-z_]*)\\.cc$")
set(faces ${PROJECT_SOURCE_DIR}/src/faces)

# Windows 7 and later; calls of newer systems are looked for when the library starts.
target_compile_definitions(hummock_core_flags INTERFACE
  _WIN32_WINNT=0x0601 PSAPI_VERSION=2 WIN32_LEAN_AND_MEAN NOMINMAX)

# Callers' stacks may be aligned to 4 only, and their use of x87 and MMX must not meet ours.
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  target_compile_options(hummock_core_flags INTERFACE -mstackrealign -msse2 -mfpmath=sse)
else()
  target_compile_options(hummock_core_flags INTERFACE -mcmodel=small)  # no detours to our own variables
endif()

add_library(hummock_core OBJECT ${core_sources})
target_link_libraries(hummock_core PRIVATE hummock_core_flags)

add_library(hummock_prefixed STATIC $<TARGET_OBJECTS:hummock_core> ${faces}/hummock_c.cc)
target_link_libraries(hummock_prefixed PRIVATE hummock_core_flags)
target_include_directories(hummock_prefixed PUBLIC include)

enable_language(RC)

# Only the system's own DLLs are needed at run time. What a debugger wants stands in a file of its own.
function(hummock_dll target name what)
  configure_file(${faces}/windows.rc.in ${name}.rc @ONLY)
  add_library(${target} SHARED $<TARGET_OBJECTS:hummock_core> ${ARGN} ${PROJECT_BINARY_DIR}/${name}.rc)
  target_link_libraries(${target} PRIVATE hummock_core_flags)
  target_link_options(${target} PRIVATE -static-libgcc -static-libstdc++ -Wl,--exclude-all-symbols)
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_OBJCOPY} --only-keep-debug $<TARGET_FILE:${target}> $<TARGET_FILE:${target}>.debug
    COMMAND ${CMAKE_STRIP} $<TARGET_FILE:${target}>
    COMMAND ${CMAKE_OBJCOPY} --add-gnu-debuglink=$<TARGET_FILE:${target}>.debug $<TARGET_FILE:${target}>)
endfunction()

hummock_dll(hummock_shared hummock "memory allocator, C interface" ${faces}/hummock_c.cc ${faces}/windows_start.cc ${faces}/windows_crt.cc
  ${faces}/windows_divert.cc)
target_compile_definitions(hummock_shared PRIVATE HUMMOCK_SERVES_RUNTIMES "HUMMOCK_EXPORT=__declspec(dllexport)" [[HUMMOCK_DEFAULT_CONF=""]]
                           [[HUMMOCK_ACTIVE="by its own names, beside the malloc of the process"]])
target_include_directories(hummock_shared INTERFACE include)

set(bohemia_definitions [[HUMMOCK_DEFAULT_CONF="log:region"]]
    [[HUMMOCK_ACTIVE="yes, the program has loaded it as its allocator: what it takes follows"]])
# hummock.exe: starts a program with hummock.dll in it.
add_executable(hummock_run ${PROJECT_SOURCE_DIR}/tools/windows/run.cc)
target_include_directories(hummock_run PRIVATE src include)
target_compile_options(hummock_run PRIVATE -municode -fno-exceptions -fno-rtti)
target_compile_definitions(hummock_run PRIVATE _WIN32_WINNT=0x0601 WIN32_LEAN_AND_MEAN NOMINMAX)
target_link_options(hummock_run PRIVATE -municode -static -s)
set_target_properties(hummock_run PROPERTIES OUTPUT_NAME hummock RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

math(EXPR bits "8 * ${CMAKE_SIZEOF_VOID_P}")
hummock_dll(hummock_bi hummock_bi "memory allocator for Arma" ${faces}/bohemia.cc ${faces}/windows_start.cc ${faces}/bohemia${bits}.def)
target_compile_definitions(hummock_bi PRIVATE ${bohemia_definitions})

if(HUMMOCK_TESTS AND EXISTS ${PROJECT_SOURCE_DIR}/tests/windows/CMakeLists.txt)
  enable_testing()
  add_subdirectory(tests/windows)
endif()
