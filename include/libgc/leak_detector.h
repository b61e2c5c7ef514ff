/* For programs that free what they allocate: included first, it has the collector tell of what was forgotten. The program calls
 * GC_set_find_leak(1) at its start, or is run with GC_FIND_LEAK=1, and CHECK_LEAKS() wherever it wants to know. */
#ifndef GC_LEAK_DETECTOR_H
#define GC_LEAK_DETECTOR_H

#ifndef GC_DEBUG
#define GC_DEBUG
#endif
#include "gc.h"
#ifndef GC_DONT_INCLUDE_STDLIB
#include <stdlib.h>
#include <string.h>
#endif

#undef malloc
#define malloc(bytes) GC_MALLOC(bytes)
#undef calloc
#define calloc(count, bytes) GC_MALLOC((count) * (bytes))
#undef free
#define free(object) GC_FREE(object)
#undef realloc
#define realloc(object, bytes) GC_REALLOC(object, bytes)
#undef strdup
#define strdup(text) GC_STRDUP(text)
#undef strndup
#define strndup(text, bytes) GC_STRNDUP(text, bytes)
#ifdef GC_REQUIRE_WCSDUP
#include <wchar.h>
#undef wcsdup
#define wcsdup(text) GC_WCSDUP(text)
#endif
#undef memalign
#define memalign(align, bytes) GC_memalign(align, bytes)
#undef posix_memalign
#define posix_memalign(result, align, bytes) GC_posix_memalign(result, align, bytes)

#ifndef CHECK_LEAKS
#define CHECK_LEAKS() GC_gcollect()
#endif

#endif
