# Helpers that keep each folder's CMakeLists.txt to a screen.

add_library(fathom_build_options INTERFACE)
target_compile_options(fathom_build_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(FATHOM_WERROR)
  target_compile_options(fathom_build_options INTERFACE -Werror)
endif()
if(FATHOM_SANITIZE)
  # -fno-sanitize=vptr: LibTorch ships without the type information that check needs.
  # -Wno-maybe-uninitialized: under sanitizers GCC sees branches that cannot be taken, in headers of others.
  set(_fathom_sanitize -fsanitize=${FATHOM_SANITIZE} $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(fathom_build_options INTERFACE ${_fathom_sanitize})
  target_link_options(fathom_build_options INTERFACE ${_fathom_sanitize})
endif()
if(FATHOM_COVERAGE)
  target_compile_options(fathom_build_options INTERFACE --coverage)
  target_link_options(fathom_build_options INTERFACE --coverage)
endif()

# fathom_add_library(NAME module SOURCES ... PUBLIC libs... PRIVATE libs...)
# The link graph is the layer diagram (harness/docs/architecture.md).
function(fathom_add_library)
  cmake_parse_arguments(arg "" "NAME" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${arg_NAME} STATIC ${arg_SOURCES})
  target_include_directories(${arg_NAME} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${arg_NAME} PUBLIC ${arg_PUBLIC} PRIVATE fathom_build_options ${arg_PRIVATE})
endfunction()

# fathom_add_test(NAME core_test [TORCH] [PER_CASE] SOURCES ... LIBS ...)
# One binary per library. Torch-free binaries are discovered case by case; a binary that links LibTorch takes most of a
# second to start, so it runs as one CTest test. Cases tagged [slow] are hidden and run under the CTest label "slow".
function(fathom_add_test)
  cmake_parse_arguments(arg "TORCH" "NAME" "SOURCES;LIBS" ${ARGN})
  add_executable(${arg_NAME} ${arg_SOURCES})
  set_target_properties(${arg_NAME} PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(${arg_NAME} PRIVATE fathom_build_options fathom_test_support ${arg_LIBS})
  add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} "~[slow]" --order rand --rng-seed 1 WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set(_has_slow OFF)
  foreach(_source IN LISTS arg_SOURCES)
    file(STRINGS "${CMAKE_CURRENT_SOURCE_DIR}/${_source}" _slow_lines REGEX "\\[slow\\]")
    if(_slow_lines)
      set(_has_slow ON)
    endif()
  endforeach()
  if(_has_slow)
    add_test(NAME ${arg_NAME}.slow COMMAND ${arg_NAME} "[slow]" WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(${arg_NAME}.slow PROPERTIES LABELS slow)
  endif()
endfunction()

# Bytes of text files as a C++ table, so that the binary needs no data folder at run time. The generated file defines
# NAMESPACE::embedded_table(), declared in HEADER.
# fathom_embed(OUT_CPP path ROOT dir [HEADER path] [NAMESPACE name] FILES relative paths...)
function(fathom_embed)
  cmake_parse_arguments(arg "" "OUT_CPP;ROOT;HEADER;NAMESPACE" "FILES" ${ARGN})
  if(NOT arg_HEADER)
    set(arg_HEADER "harness/text/embedded.h")
  endif()
  if(NOT arg_NAMESPACE)
    set(arg_NAMESPACE "fathom::text")
  endif()
  set(_inputs "")
  foreach(_file IN LISTS arg_FILES)
    list(APPEND _inputs "${arg_ROOT}/${_file}")
  endforeach()
  string(REPLACE ";" "," _joined "${arg_FILES}")
  add_custom_command(
    OUTPUT "${arg_OUT_CPP}"
    COMMAND ${CMAKE_COMMAND} -DOUT=${arg_OUT_CPP} -DROOT=${arg_ROOT} -DHEADER=${arg_HEADER} -DNAMESPACE=${arg_NAMESPACE}
            "-DFILES=${_joined}" -P "${PROJECT_SOURCE_DIR}/cmake/Embed.cmake"
    DEPENDS ${_inputs} "${PROJECT_SOURCE_DIR}/cmake/Embed.cmake"
    VERBATIM)
endfunction()

# Every header compiles on its own and may be included twice.
function(fathom_add_header_check)
  file(GLOB_RECURSE _headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
       "${PROJECT_SOURCE_DIR}/harness/*.h" "${PROJECT_SOURCE_DIR}/tasks/*.h" "${PROJECT_SOURCE_DIR}/reports/*.h")
  set(_plain "")
  set(_torch "")
  foreach(_header IN LISTS _headers)
    string(MAKE_C_IDENTIFIER "${_header}" _id)
    set(_source "${CMAKE_BINARY_DIR}/header_check/${_id}.cpp")
    file(CONFIGURE OUTPUT "${_source}" CONTENT "#include \"${_header}\"\n#include \"${_header}\"\n")
    if(_header MATCHES "^harness/(position|model|engine|train)/")
      list(APPEND _torch "${_source}")
    else()
      list(APPEND _plain "${_source}")
    endif()
  endforeach()
  add_library(header_check OBJECT ${_plain})
  set_target_properties(header_check PROPERTIES UNITY_BUILD OFF)
  target_include_directories(header_check PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(header_check PRIVATE fathom_build_options)
  if(FATHOM_WITH_TORCH AND _torch)
    # Torch headers cost seconds each, so these share one translation unit; the plain ones do not.
    add_library(header_check_torch OBJECT ${_torch})
    set_target_properties(header_check_torch PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 64)
    target_include_directories(header_check_torch PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(header_check_torch PRIVATE fathom_build_options fathom::torch)
  endif()
endfunction()
