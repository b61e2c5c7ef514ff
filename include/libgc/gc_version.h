/* The version of libgc's interface that is served. Included by gc.h. */
#ifndef VELLUM_LIBGC_VERSION_H
#define VELLUM_LIBGC_VERSION_H
#define GC_VERSION_MAJOR 8
#define GC_VERSION_MINOR 2
#define GC_VERSION_MICRO 12
#define GC_TMP_VERSION_MAJOR GC_VERSION_MAJOR
#define GC_TMP_VERSION_MINOR GC_VERSION_MINOR
#define GC_TMP_VERSION_MICRO GC_VERSION_MICRO
#endif
