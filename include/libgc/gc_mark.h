/* Kinds of objects whose references a procedure of the program's names, and further roots, as libgc declares them. */
#ifndef VELLUM_LIBGC_GC_MARK_H
#define VELLUM_LIBGC_GC_MARK_H
#define GC_MARK_H

#include "gc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An entry of the stack that a mark procedure is given: where to look, and how. */
struct GC_ms_entry {
    void *start;
    GC_word descr;
};
typedef struct GC_ms_entry *(*GC_mark_proc)(GC_word *object, struct GC_ms_entry *top, struct GC_ms_entry *limit, GC_word environment);
typedef void (*GC_push_other_roots_proc)(void);
typedef void (*GC_start_callback_proc)(void);
typedef void (*GC_finalizer_notifier_proc)(void);

#define GC_LOG_MAX_MARK_PROCS 6
#define GC_MAX_MARK_PROCS (1 << GC_LOG_MAX_MARK_PROCS)
#define GC_DS_TAG_BITS 2
#define GC_DS_TAGS ((1 << GC_DS_TAG_BITS) - 1)
#define GC_DS_LENGTH 0     /* the whole descriptor is a length in bytes; 0 for a kind: the object's */
#define GC_DS_BITMAP 1     /* the highest bit is the first word's */
#define GC_DS_PROC 2       /* a procedure's number, and the environment it is given */
#define GC_DS_PER_OBJECT 3 /* the offset of the descriptor in the object; negative: in what its first word leads to */
#define GC_MAKE_PROC(number, environment) \
    (((((GC_word)(environment)) << GC_LOG_MAX_MARK_PROCS | (unsigned)(number)) << GC_DS_TAG_BITS) | GC_DS_PROC)

extern void *GC_least_plausible_heap_addr;
extern void *GC_greatest_plausible_heap_addr;
extern void **GC_new_free_list(void);
extern unsigned GC_new_kind(void **free_list, GC_word descriptor, int adjust, int clear);
extern unsigned GC_new_proc(GC_mark_proc procedure);
extern void *GC_generic_malloc(size_t bytes, int kind);
extern void GC_generic_malloc_many(size_t bytes, int kind, void **result);
extern struct GC_ms_entry *GC_mark_and_push(void *object, struct GC_ms_entry *top, struct GC_ms_entry *limit, void **source);
extern struct GC_ms_entry *GC_debug_mark_and_push(void *object, struct GC_ms_entry *top, struct GC_ms_entry *limit, void **source);
#define GC_MARK_AND_PUSH(object, top, limit, source) GC_mark_and_push(object, top, limit, source)

extern void GC_push_all(void *start, void *end);
extern void GC_push_all_eager(void *start, void *end);
extern void GC_push_conditional(void *start, void *end, int all);
extern GC_push_other_roots_proc GC_push_other_roots;
extern void GC_set_mark_bit(const void *object);
extern void GC_set_push_other_roots(GC_push_other_roots_proc procedure);
extern GC_push_other_roots_proc GC_get_push_other_roots(void);
extern void GC_set_start_callback(GC_start_callback_proc callback);
extern GC_start_callback_proc GC_get_start_callback(void);
extern void GC_set_finalizer_notifier(GC_finalizer_notifier_proc notifier);
extern GC_finalizer_notifier_proc GC_get_finalizer_notifier(void);

#ifdef __cplusplus
}
#endif

#endif
