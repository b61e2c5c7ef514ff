/* Kinds of objects whose references a procedure of the program's names, and further roots, as libgc declares them. */
#ifndef VELLUM_LIBGC_GC_MARK_H
#define VELLUM_LIBGC_GC_MARK_H
#define GC_MARK_H

#include "gc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An entry of the stack that a mark procedure is given: where to look, and how. Programs that bring libgc's own declaration say so. */
#if defined(GC_BUILD) || defined(NOT_GCBUILD)
struct GC_ms_entry;
#else
struct GC_ms_entry {
    void *start;
    GC_word descr;
};
#endif
typedef struct GC_ms_entry *(*GC_mark_proc)(GC_word *object, struct GC_ms_entry *top, struct GC_ms_entry *limit, GC_word environment);
typedef void (*GC_push_other_roots_proc)(void);
typedef void (*GC_start_callback_proc)(void);

#define GC_LOG_MAX_MARK_PROCS 6
#define GC_MAX_MARK_PROCS (1 << GC_LOG_MAX_MARK_PROCS)
/* Procedures below this number are given theirs by who sets them: see gc_gcj.h. */
#define GC_RESERVED_MARK_PROCS 8
#define GC_GCJ_RESERVED_MARK_PROC_INDEX 0
/* Bytes that a procedure should scan at most; more only makes pauses longer. */
#define GC_PROC_BYTES 100
#define GC_DS_TAG_BITS 2
#define GC_DS_TAGS ((1 << GC_DS_TAG_BITS) - 1)
#define GC_DS_LENGTH 0     /* the whole descriptor is a length in bytes; 0 for a kind: the object's */
#define GC_DS_BITMAP 1     /* the highest bit is the first word's */
#define GC_DS_PROC 2       /* a procedure's number, and the environment it is given */
#define GC_DS_PER_OBJECT 3 /* the offset of the descriptor in the object; negative: in what its first word leads to */
/* What a negative offset is less by than where the descriptor lies there. */
#define GC_INDIR_PER_OBJ_BIAS 0x10
#define GC_MAKE_PROC(number, environment) \
    (((((GC_word)(environment)) << GC_LOG_MAX_MARK_PROCS | (unsigned)(number)) << GC_DS_TAG_BITS) | GC_DS_PROC)

extern void *GC_least_plausible_heap_addr;
extern void *GC_greatest_plausible_heap_addr;
extern void **GC_new_free_list(void);
extern unsigned GC_new_kind(void **free_list, GC_word descriptor, int adjust, int clear);
extern unsigned GC_new_proc(GC_mark_proc procedure);
extern void **GC_new_free_list_inner(void);
extern unsigned GC_new_kind_inner(void **free_list, GC_word descriptor, int adjust, int clear);
extern unsigned GC_new_proc_inner(GC_mark_proc procedure);
extern void *GC_generic_malloc(size_t bytes, int kind);
extern void *GC_generic_malloc_ignore_off_page(size_t bytes, int kind);
extern void *GC_generic_malloc_uncollectable(size_t bytes, int kind);
extern void *GC_generic_or_special_malloc(size_t bytes, int kind);
extern void *GC_debug_generic_or_special_malloc(size_t bytes, int kind, GC_EXTRA_PARAMS);
extern void *GC_debug_generic_malloc(size_t bytes, int kind, GC_EXTRA_PARAMS);
#ifdef GC_DEBUG
#define GC_GENERIC_OR_SPECIAL_MALLOC(bytes, kind) GC_debug_generic_or_special_malloc(bytes, kind, GC_EXTRAS)
#else
#define GC_GENERIC_OR_SPECIAL_MALLOC(bytes, kind) GC_generic_or_special_malloc(bytes, kind)
#endif
extern int GC_get_kind_and_size(const void *object, size_t *bytes);
/* Writes what an object is, of GC_TYPE_DESCR_LEN bytes at most, where it is reported as leaked. */
typedef void (*GC_describe_type_fn)(void *object, char *text);
#define GC_TYPE_DESCR_LEN 40
extern void GC_register_describe_type_fn(int kind, GC_describe_type_fn describe);
/* Bytes between what GC_base() says of an object of GC_DEBUG and what the program sees of it. */
extern size_t GC_get_debug_header_size(void);
extern size_t GC_debug_header_size;
#define GC_USR_PTR_FROM_BASE(base) ((void *)((char *)(base) + GC_get_debug_header_size()))
typedef void (*GC_reachable_object_proc)(void *object, size_t bytes, void *data);
extern void GC_enumerate_reachable_objects_inner(GC_reachable_object_proc visit, void *data);
extern void GC_generic_malloc_many(size_t bytes, int kind, void **result);
extern struct GC_ms_entry *GC_mark_and_push(void *object, struct GC_ms_entry *top, struct GC_ms_entry *limit, void **source);
extern struct GC_ms_entry *GC_debug_mark_and_push(void *object, struct GC_ms_entry *top, struct GC_ms_entry *limit, void **source);
#define GC_MARK_AND_PUSH(object, top, limit, source) GC_mark_and_push((void *)(object), top, limit, source)

extern void GC_push_all(void *start, void *end);
extern void GC_push_all_eager(void *start, void *end);
extern void GC_push_obj_descr(void *object, GC_word descriptor);
extern struct GC_ms_entry *GC_ms_push_obj_descr(void *object, GC_word descriptor, struct GC_ms_entry *top, struct GC_ms_entry *limit);
extern struct GC_ms_entry *GC_ms_push_all(void *start, void *end, struct GC_ms_entry *top, struct GC_ms_entry *limit);
/* Calls `push` with the registers and stack of the calling thread, up to `base`. */
typedef void (*GC_custom_push_proc)(void **start, void **end, void *data, unsigned hint);
#define GC_CUSTOM_PUSH_HINT_EAGER 1U
extern void GC_custom_push_regs_and_stack(GC_custom_push_proc push, void *data, const struct GC_stack_base *base, void *cold);
/* Not served: anything but null ends the process. */
typedef struct GC_ms_entry *(*GC_on_mark_stack_empty_proc)(struct GC_ms_entry *top, struct GC_ms_entry *limit);
extern void GC_set_on_mark_stack_empty(GC_on_mark_stack_empty_proc procedure);
extern GC_on_mark_stack_empty_proc GC_get_on_mark_stack_empty(void);
/* Not served: pointers are read as they are. Anything but all ones, and 0, ends the process. */
extern void GC_set_pointer_mask(GC_word mask);
extern GC_word GC_get_pointer_mask(void);
extern void GC_set_pointer_shift(unsigned shift);
extern unsigned GC_get_pointer_shift(void);
extern void GC_push_conditional(void *start, void *end, int all);
extern GC_push_other_roots_proc GC_push_other_roots;
extern void GC_set_mark_bit(const void *object);
extern void GC_set_push_other_roots(GC_push_other_roots_proc procedure);
extern GC_push_other_roots_proc GC_get_push_other_roots(void);
extern void GC_set_start_callback(GC_start_callback_proc callback);
extern GC_start_callback_proc GC_get_start_callback(void);
/* In a procedure for roots the mark is what keeps the object; elsewhere it is what its disclaim procedure asks for (gc_disclaim.h). */
extern int GC_is_marked(const void *object);
extern void GC_clear_mark_bit(const void *object);
extern void GC_push_finalizer_structures(void);
extern unsigned GC_count_set_marks_in_hblk(const void *address);
extern int GC_is_tmp_root(void *address);
extern void *GC_clear_stack(void *argument);

#ifdef __cplusplus
}
#endif

#endif
