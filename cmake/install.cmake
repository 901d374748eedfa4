# `cmake --install`: libraries, headers, pkg-config file and CMake package.

include(CMakePackageConfigHelpers)

install(TARGETS hummock_shared hummock_static EXPORT hummockTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/hummock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
# Where programs written for smmalloc look for it: in a folder of its own, so that it hides no other smmalloc.h.
install(FILES include/hummock/smmalloc.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hummock-smmalloc)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hummock)
install(EXPORT hummockTargets NAMESPACE hummock:: DESTINATION ${package_dir})
configure_package_config_file(cmake/hummockConfig.cmake.in hummockConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(hummockConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hummockConfig.cmake ${PROJECT_BINARY_DIR}/hummockConfigVersion.cmake
        DESTINATION ${package_dir})

# Relative to the file's own place, so that an installed tree may be moved.
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
  set(pc_prefix "\${pcfiledir}/${pc_to_prefix}")
endif()
foreach(package hummock hummock-smmalloc)
  configure_file(cmake/${package}.pc.in ${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

foreach(page hummock.1 hummock.3 hummock.7)
  string(REGEX MATCH "[0-9]$" section ${page})
  if(EXISTS ${PROJECT_SOURCE_DIR}/man/${page})
    install(FILES man/${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endif()
endforeach()
# Where gdb looks for commands that go with a library; for other prefixes than /usr: source it. The prefix may be
# another one by the time of installing.
set(gdb_folder ${CMAKE_INSTALL_FULL_LIBDIR})
if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(gdb_folder "\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}")
endif()
install(FILES tools/gdb/hummock-gdb.py
        DESTINATION "${CMAKE_INSTALL_DATADIR}/gdb/auto-load${gdb_folder}"
        RENAME libhummock.so.${PROJECT_VERSION}-gdb.py)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

option(HUMMOCK_STRIP "Strip what is installed; the library's debug file is installed beside it" ON)
if(HUMMOCK_STRIP AND HUMMOCK_IS_TOP AND CMAKE_STRIP AND CMAKE_OBJCOPY)
  configure_file(cmake/strip.cmake.in strip.cmake @ONLY)
  # The last to run: the scripts of subfolders come after those of this one.
  file(WRITE ${PROJECT_BINARY_DIR}/strip/CMakeLists.txt "install(SCRIPT ${PROJECT_BINARY_DIR}/strip.cmake)\n")
  set(HUMMOCK_STRIP_LAST ${PROJECT_BINARY_DIR}/strip)
endif()
