# SPDX-License-Identifier: MIT
#
# find_package(kxfer) makes two targets:
#
#   kxfer::kxfer   libkxfer and kxfer/kxfer.h, for C and C++
#   kxfer::cxx     kxfer/kxfer.hpp over it: C++20 and tl::expected (Debian: libexpected-dev),
#                  so only where that is installed
include(${CMAKE_CURRENT_LIST_DIR}/kxferTargets.cmake)

find_package(tl-expected QUIET)
if(tl-expected_FOUND AND NOT TARGET kxfer::cxx)
  add_library(kxfer::cxx INTERFACE IMPORTED)
  set_target_properties(kxfer::cxx PROPERTIES
    INTERFACE_LINK_LIBRARIES "kxfer::kxfer;tl::expected"
    INTERFACE_COMPILE_FEATURES cxx_std_20)
endif()
