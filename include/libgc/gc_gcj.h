/* Objects whose first word leads to a structure (a class's) whose second word is their mark descriptor, as libgc declares them. */
#ifndef GC_GCJ_H
#define GC_GCJ_H

#include "gc.h"

struct GC_ms_entry;

#ifdef __cplusplus
extern "C" {
#endif

/* `procedure`, a GC_mark_proc, is what descriptors name by the number `number`, below GC_RESERVED_MARK_PROCS; it is also called for objects of
 * GC_debug_gcj_malloc(), by their bases, with an environment of 1. To be called first; a second call changes nothing. */
GC_API void GC_init_gcj_malloc(int number, void *procedure);
/* The same; the descriptor lies `offset` bytes into the structure, which must be GC_GCJ_MARK_DESCR_OFFSET. */
#define GC_GCJ_MARK_DESCR_OFFSET sizeof(void *)
GC_API void GC_init_gcj_malloc_mp(unsigned number, struct GC_ms_entry *(*procedure)(GC_word *, struct GC_ms_entry *, struct GC_ms_entry *, GC_word),
                                  size_t offset);
GC_API void *GC_gcj_malloc(size_t bytes, void *structure);
GC_API void *GC_gcj_malloc_ignore_off_page(size_t bytes, void *structure);
GC_API void *GC_debug_gcj_malloc(size_t bytes, void *structure, GC_EXTRA_PARAMS);
GC_API int GC_gcj_kind;
GC_API int GC_gcj_debug_kind;
#ifdef GC_DEBUG
#define GC_GCJ_MALLOC(bytes, structure) GC_debug_gcj_malloc(bytes, structure, GC_EXTRAS)
#define GC_GCJ_MALLOC_IGNORE_OFF_PAGE(bytes, structure) GC_debug_gcj_malloc(bytes, structure, GC_EXTRAS)
#else
#define GC_GCJ_MALLOC(bytes, structure) GC_gcj_malloc(bytes, structure)
#define GC_GCJ_MALLOC_IGNORE_OFF_PAGE(bytes, structure) GC_gcj_malloc_ignore_off_page(bytes, structure)
#endif

#ifdef __cplusplus
}
#endif

#endif
