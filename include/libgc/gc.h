/* The interface of the Boehm-Demers-Weiser collector, as Vellum's libgc.so.1 serves it.
 *
 * For programs that were written for libgc and are compiled again: put this folder first on the include path, and
 * link with -l:libgc.so.1 from target/release/libgc. Compiled programs need no header: they run with that folder first on the library
 * path. docs/libgc.md says what each function does where that differs, and what is not served. New programs are
 * better off with vellum_gc.h.
 */
#ifndef VELLUM_LIBGC_GC_H
#define VELLUM_LIBGC_GC_H
#define GC_H

#include <stddef.h>

#define GC_VERSION_MAJOR 8
#define GC_VERSION_MINOR 2
#define GC_VERSION_MICRO 2
#define GC_TMP_VERSION_MAJOR GC_VERSION_MAJOR
#define GC_TMP_VERSION_MINOR GC_VERSION_MINOR

#ifdef __cplusplus
extern "C" {
#endif

#define GC_API extern
#define GC_CALL
#define GC_CALLBACK
typedef unsigned long GC_word;
typedef long GC_signed_word;

/* ---- Objects ----------------------------------------------------------------------------------------------------- */
GC_API void *GC_malloc(size_t bytes);
GC_API void *GC_malloc_atomic(size_t bytes);
GC_API void *GC_malloc_uncollectable(size_t bytes);
GC_API void *GC_malloc_atomic_uncollectable(size_t bytes);
GC_API void *GC_malloc_stubborn(size_t bytes);
GC_API void *GC_malloc_ignore_off_page(size_t bytes);
GC_API void *GC_malloc_atomic_ignore_off_page(size_t bytes);
GC_API void *GC_memalign(size_t align, size_t bytes);
GC_API int GC_posix_memalign(void **result, size_t align, size_t bytes);
GC_API void *GC_realloc(void *object, size_t bytes);
GC_API void GC_free(void *object);
GC_API char *GC_strdup(const char *text);
GC_API char *GC_strndup(const char *text, size_t bytes);
GC_API void *GC_malloc_many(size_t bytes);
GC_API void *GC_base(void *address);
GC_API size_t GC_size(const void *object);
GC_API int GC_is_heap_ptr(const void *address);
GC_API void *GC_is_visible(void *address);
GC_API void *GC_is_valid_displacement(void *address);
GC_API void *GC_same_obj(void *p, void *q);
GC_API void *GC_pre_incr(void **place, ptrdiff_t bytes);
GC_API void *GC_post_incr(void **place, ptrdiff_t bytes);
GC_API void GC_register_displacement(size_t bytes);
GC_API void GC_change_stubborn(const void *object);
GC_API void GC_end_stubborn_change(const void *object);
GC_API void GC_ptr_store_and_dirty(void *place, const void *value);
/* The next word of a list made by GC_malloc_many(). */
#define GC_NEXT(object) (*(void **)(object))

GC_API void *GC_debug_malloc(size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_atomic(size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_uncollectable(size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_atomic_uncollectable(size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_ignore_off_page(size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_atomic_ignore_off_page(size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_stubborn(size_t bytes, const char *file, int line);
GC_API void *GC_debug_realloc(void *object, size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_replacement(size_t bytes);
GC_API void *GC_debug_realloc_replacement(void *object, size_t bytes);
GC_API void GC_debug_free(void *object);
GC_API char *GC_debug_strdup(const char *text, const char *file, int line);
GC_API char *GC_debug_strndup(const char *text, size_t bytes, const char *file, int line);
GC_API void GC_debug_register_displacement(size_t bytes);

/* ---- Collections and figures ------------------------------------------------------------------------------------- */
typedef int (*GC_stop_func)(void);
GC_API void GC_init(void);
GC_API int GC_is_init_called(void);
GC_API void GC_deinit(void);
GC_API void GC_gcollect(void);
GC_API void GC_gcollect_and_unmap(void);
GC_API int GC_try_to_collect(GC_stop_func stop);
GC_API int GC_collect_a_little(void);
GC_API void GC_disable(void);
GC_API void GC_enable(void);
GC_API int GC_is_disabled(void);
GC_API void GC_enable_incremental(void);
GC_API int GC_is_incremental_mode(void);
GC_API int GC_incremental_protection_needs(void);
GC_API int GC_expand_hp(size_t bytes);
GC_API void GC_set_max_heap_size(GC_word bytes);
GC_API GC_word GC_get_gc_no(void);
GC_API size_t GC_get_heap_size(void);
GC_API size_t GC_get_free_bytes(void);
GC_API size_t GC_get_unmapped_bytes(void);
GC_API size_t GC_get_bytes_since_gc(void);
GC_API size_t GC_get_total_bytes(void);
GC_API size_t GC_get_memory_use(void);
GC_API size_t GC_get_obtained_from_os_bytes(void);
GC_API void GC_get_heap_usage_safe(GC_word *heap, GC_word *free, GC_word *unmapped, GC_word *since, GC_word *total);
GC_API unsigned long GC_get_full_gc_total_time(void);
GC_API void GC_start_performance_measurement(void);
GC_API void GC_dump(void);
GC_API void GC_dump_named(const char *name);

/* ---- Settings ---------------------------------------------------------------------------------------------------- */
typedef void *(*GC_oom_func)(size_t bytes);
typedef void (*GC_warn_proc)(char *message, GC_word argument);
GC_API int GC_all_interior_pointers;
GC_API int GC_finalize_on_demand;
GC_API int GC_java_finalization;
GC_API int GC_print_stats;
GC_API unsigned GC_get_version(void);
GC_API void GC_set_oom_fn(GC_oom_func function);
GC_API GC_oom_func GC_get_oom_fn(void);
GC_API void GC_abort_on_oom(void);
GC_API void GC_set_warn_proc(GC_warn_proc procedure);
GC_API GC_warn_proc GC_get_warn_proc(void);
GC_API void GC_ignore_warn_proc(char *message, GC_word argument);
GC_API void GC_set_all_interior_pointers(int on);
GC_API int GC_get_all_interior_pointers(void);
GC_API void GC_set_dont_expand(int on);
GC_API int GC_get_dont_expand(void);
GC_API void GC_set_dont_precollect(int on);
GC_API int GC_get_dont_precollect(void);
GC_API void GC_set_full_freq(int collections);
GC_API int GC_get_full_freq(void);
GC_API void GC_set_free_space_divisor(GC_word divisor);
GC_API GC_word GC_get_free_space_divisor(void);
GC_API void GC_set_max_retries(GC_word count);
GC_API GC_word GC_get_max_retries(void);
GC_API void GC_set_time_limit(unsigned long milliseconds);
GC_API unsigned long GC_get_time_limit(void);
GC_API void GC_set_non_gc_bytes(GC_word bytes);
GC_API GC_word GC_get_non_gc_bytes(void);
GC_API void GC_set_rate(int rate);
GC_API int GC_get_rate(void);
GC_API void GC_set_max_prior_attempts(int count);
GC_API int GC_get_max_prior_attempts(void);
GC_API void GC_set_handle_fork(int on);
GC_API int GC_get_handle_fork(void);
GC_API void GC_set_force_unmap_on_gcollect(int on);
GC_API int GC_get_force_unmap_on_gcollect(void);
GC_API void GC_set_min_bytes_allocd(size_t bytes);
GC_API size_t GC_get_min_bytes_allocd(void);
GC_API int GC_get_parallel(void);
GC_API void GC_set_markers_count(unsigned count);

/* ---- Roots and threads ------------------------------------------------------------------------------------------- */
struct GC_stack_base {
    void *mem_base;
};
typedef void *(*GC_fn_type)(void *argument);
typedef void *(*GC_stack_base_func)(struct GC_stack_base *base, void *argument);
GC_API void GC_add_roots(void *start, void *end);
GC_API int GC_no_dls;
GC_API void GC_set_no_dls(int on);
GC_API int GC_get_no_dls(void);
GC_API void GC_clear_roots(void);
GC_API void GC_exclude_static_roots(void *start, void *end);
GC_API void GC_remove_roots(void *start, void *end);
GC_API void GC_allow_register_threads(void);
GC_API void GC_use_threads_discovery(void);
GC_API void GC_start_mark_threads(void);
GC_API int GC_register_my_thread(const struct GC_stack_base *base);
GC_API int GC_unregister_my_thread(void);
GC_API int GC_thread_is_registered(void);
GC_API int GC_get_stack_base(struct GC_stack_base *base);
GC_API void *GC_get_my_stackbottom(struct GC_stack_base *base);
GC_API void *GC_call_with_stack_base(GC_stack_base_func function, void *argument);
GC_API void *GC_do_blocking(GC_fn_type function, void *argument);
GC_API void *GC_call_with_gc_active(GC_fn_type function, void *argument);
GC_API void *GC_call_with_alloc_lock(GC_fn_type function, void *argument);
GC_API int GC_get_suspend_signal(void);
GC_API int GC_get_thr_restart_signal(void);
#define GC_SUCCESS 0
#define GC_DUPLICATE 1
#define GC_NO_MEMORY 2
#define GC_NO_THREADS 2
#define GC_UNIMPLEMENTED 3
#define GC_NOT_FOUND 4

/* ---- Finalizers and disappearing links --------------------------------------------------------------------------- */
typedef void (*GC_finalization_proc)(void *object, void *data);
GC_API void GC_register_finalizer(void *object, GC_finalization_proc procedure, void *data, GC_finalization_proc *old, void **old_data);
GC_API void GC_register_finalizer_ignore_self(void *object, GC_finalization_proc procedure, void *data, GC_finalization_proc *old, void **old_data);
GC_API void GC_register_finalizer_no_order(void *object, GC_finalization_proc procedure, void *data, GC_finalization_proc *old, void **old_data);
GC_API void GC_debug_register_finalizer(void *object, GC_finalization_proc procedure, void *data, GC_finalization_proc *old, void **old_data);
GC_API void GC_debug_register_finalizer_ignore_self(void *object, GC_finalization_proc procedure, void *data, GC_finalization_proc *old, void **old_data);
GC_API void GC_debug_register_finalizer_no_order(void *object, GC_finalization_proc procedure, void *data, GC_finalization_proc *old, void **old_data);
GC_API int GC_invoke_finalizers(void);
GC_API void GC_set_finalize_on_demand(int on);
GC_API int GC_get_finalize_on_demand(void);
GC_API void GC_set_java_finalization(int on);
GC_API int GC_get_java_finalization(void);
GC_API int GC_register_disappearing_link(void **link);
GC_API int GC_general_register_disappearing_link(void **link, const void *object);
GC_API int GC_register_long_link(void **link, const void *object);
GC_API int GC_unregister_disappearing_link(void **link);
GC_API int GC_unregister_long_link(void **link);
GC_API int GC_move_disappearing_link(void **from, void **to);
GC_API int GC_move_long_link(void **from, void **to);
typedef GC_word GC_hidden_pointer;
#define GC_HIDE_POINTER(pointer) (~(GC_hidden_pointer)(pointer))
#define GC_REVEAL_POINTER(hidden) ((void *)GC_HIDE_POINTER(hidden))

/* ---- The names programs use -------------------------------------------------------------------------------------- */
#define GC_INIT() GC_init()
#ifdef GC_DEBUG
#define GC_EXTRAS __FILE__, __LINE__
#define GC_MALLOC(bytes) GC_debug_malloc(bytes, GC_EXTRAS)
#define GC_MALLOC_ATOMIC(bytes) GC_debug_malloc_atomic(bytes, GC_EXTRAS)
#define GC_MALLOC_UNCOLLECTABLE(bytes) GC_debug_malloc_uncollectable(bytes, GC_EXTRAS)
#define GC_MALLOC_ATOMIC_UNCOLLECTABLE(bytes) GC_debug_malloc_atomic_uncollectable(bytes, GC_EXTRAS)
#define GC_MALLOC_IGNORE_OFF_PAGE(bytes) GC_debug_malloc_ignore_off_page(bytes, GC_EXTRAS)
#define GC_MALLOC_ATOMIC_IGNORE_OFF_PAGE(bytes) GC_debug_malloc_atomic_ignore_off_page(bytes, GC_EXTRAS)
#define GC_REALLOC(object, bytes) GC_debug_realloc(object, bytes, GC_EXTRAS)
#define GC_FREE(object) GC_debug_free(object)
#define GC_STRDUP(text) GC_debug_strdup(text, GC_EXTRAS)
#define GC_STRNDUP(text, bytes) GC_debug_strndup(text, bytes, GC_EXTRAS)
#define GC_REGISTER_FINALIZER(o, p, d, op, od) GC_debug_register_finalizer(o, p, d, op, od)
#define GC_REGISTER_FINALIZER_IGNORE_SELF(o, p, d, op, od) GC_debug_register_finalizer_ignore_self(o, p, d, op, od)
#define GC_REGISTER_FINALIZER_NO_ORDER(o, p, d, op, od) GC_debug_register_finalizer_no_order(o, p, d, op, od)
#define GC_REGISTER_DISPLACEMENT(bytes) GC_debug_register_displacement(bytes)
#else
#define GC_MALLOC(bytes) GC_malloc(bytes)
#define GC_MALLOC_ATOMIC(bytes) GC_malloc_atomic(bytes)
#define GC_MALLOC_UNCOLLECTABLE(bytes) GC_malloc_uncollectable(bytes)
#define GC_MALLOC_ATOMIC_UNCOLLECTABLE(bytes) GC_malloc_atomic_uncollectable(bytes)
#define GC_MALLOC_IGNORE_OFF_PAGE(bytes) GC_malloc_ignore_off_page(bytes)
#define GC_MALLOC_ATOMIC_IGNORE_OFF_PAGE(bytes) GC_malloc_atomic_ignore_off_page(bytes)
#define GC_REALLOC(object, bytes) GC_realloc(object, bytes)
#define GC_FREE(object) GC_free(object)
#define GC_STRDUP(text) GC_strdup(text)
#define GC_STRNDUP(text, bytes) GC_strndup(text, bytes)
#define GC_REGISTER_FINALIZER(o, p, d, op, od) GC_register_finalizer(o, p, d, op, od)
#define GC_REGISTER_FINALIZER_IGNORE_SELF(o, p, d, op, od) GC_register_finalizer_ignore_self(o, p, d, op, od)
#define GC_REGISTER_FINALIZER_NO_ORDER(o, p, d, op, od) GC_register_finalizer_no_order(o, p, d, op, od)
#define GC_REGISTER_DISPLACEMENT(bytes) GC_register_displacement(bytes)
#endif
#define GC_MALLOC_STUBBORN(bytes) GC_MALLOC(bytes)
#define GC_NEW(type) ((type *)GC_MALLOC(sizeof(type)))
#define GC_NEW_ATOMIC(type) ((type *)GC_MALLOC_ATOMIC(sizeof(type)))
#define GC_NEW_UNCOLLECTABLE(type) ((type *)GC_MALLOC_UNCOLLECTABLE(sizeof(type)))
#define GC_GENERAL_REGISTER_DISAPPEARING_LINK(link, object) GC_general_register_disappearing_link(link, object)
#define GC_REGISTER_LONG_LINK(link, object) GC_register_long_link(link, object)
#define GC_PTR_STORE(place, value) (*(void **)(place) = (void *)(value))
#define GC_PTR_STORE_AND_DIRTY(place, value) GC_ptr_store_and_dirty(place, value)

#ifdef __cplusplus
}
#endif

#if defined(GC_THREADS) || defined(GC_PTHREADS)
#include "gc_pthread_redirects.h"
#endif

#endif
