# find_package(Vellum): the libraries as targets, wherever the folder with this file lies.
#
#   Vellum::vellum           malloc, vellum.h and vellum_gc.h
#   Vellum::vellum-static    malloc and vellum.h, for programs that are linked statically
#   Vellum::measure          vellum_measure.h
#   Vellum::measure-static   the same, linked into the program
#   Vellum::libgc            gc.h, in place of libgc
if(TARGET Vellum::vellum)
    return()
endif()
get_filename_component(_vellum_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_package(Threads REQUIRED)

add_library(Vellum::vellum SHARED IMPORTED)
set_target_properties(Vellum::vellum PROPERTIES
    IMPORTED_LOCATION "${_vellum_prefix}/lib/libvellum.so.@VERSION@"
    IMPORTED_SONAME libvellum.so.0
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}"
    INTERFACE_INCLUDE_DIRECTORIES "${_vellum_prefix}/include")

add_library(Vellum::vellum-static STATIC IMPORTED)
set_target_properties(Vellum::vellum-static PROPERTIES
    IMPORTED_LOCATION "${_vellum_prefix}/lib/libvellum.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_vellum_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads")

add_library(Vellum::measure SHARED IMPORTED)
set_target_properties(Vellum::measure PROPERTIES
    IMPORTED_LOCATION "${_vellum_prefix}/lib/libvelmeasure.so.@VERSION@"
    IMPORTED_SONAME libvelmeasure.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${_vellum_prefix}/include")

add_library(Vellum::measure-static STATIC IMPORTED)
set_target_properties(Vellum::measure-static PROPERTIES
    IMPORTED_LOCATION "${_vellum_prefix}/lib/libvelmeasure.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_vellum_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")

add_library(Vellum::libgc SHARED IMPORTED)
set_target_properties(Vellum::libgc PROPERTIES
    IMPORTED_LOCATION "${_vellum_prefix}/lib/vellum/libgc/libgc.so.1"
    IMPORTED_SONAME libgc.so.1
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}"
    INTERFACE_INCLUDE_DIRECTORIES "${_vellum_prefix}/include/vellum-libgc;${_vellum_prefix}/include/vellum-libgc/gc")

unset(_vellum_prefix)
