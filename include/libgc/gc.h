/* The interface of the Boehm-Demers-Weiser collector, as Vellum's libgc.so.1 serves it.
 *
 * For programs that were written for libgc and are compiled again: put this folder first on the include path, and
 * link with -l:libgc.so.1 from target/debug/libgc. Compiled programs need no header: they run with that folder first on the library
 * path. docs/libgc.md says what each function does where that differs, and what is not served. New programs are
 * better off with vellum_gc.h.
 */
#ifndef VELLUM_LIBGC_GC_H
#define VELLUM_LIBGC_GC_H
#define GC_H

#include "gc_config_macros.h"
#include "gc_version.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *GC_PTR;
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
GC_API void *GC_reallocf(void *object, size_t bytes);
GC_API void *GC_valloc(size_t bytes);
GC_API void *GC_pvalloc(size_t bytes);
GC_API void GC_free(void *object);
GC_API void GC_freezero(void *object, size_t bytes);
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
GC_API void GC_noop1(GC_word word);
GC_API void GC_noop1_ptr(volatile void *pointer);
/* What the checks above call when they fail; each ends the process at first. */
typedef void (GC_CALLBACK *GC_same_obj_proc)(void *p, void *q);
typedef void (GC_CALLBACK *GC_place_proc)(void *place);
GC_API GC_same_obj_proc GC_same_obj_print_proc;
GC_API GC_place_proc GC_is_valid_displacement_print_proc;
GC_API GC_place_proc GC_is_visible_print_proc;
GC_API void GC_set_same_obj_print_proc(GC_same_obj_proc procedure);
GC_API GC_same_obj_proc GC_get_same_obj_print_proc(void);
GC_API void GC_set_is_valid_displacement_print_proc(GC_place_proc procedure);
GC_API GC_place_proc GC_get_is_valid_displacement_print_proc(void);
GC_API void GC_set_is_visible_print_proc(GC_place_proc procedure);
GC_API GC_place_proc GC_get_is_visible_print_proc(void);
#ifdef GC_REQUIRE_WCSDUP
GC_API wchar_t *GC_wcsdup(const wchar_t *text);
GC_API wchar_t *GC_debug_wcsdup(const wchar_t *text, const char *file, int line);
#endif
/* `pointer` stays in use up to here. */
#if defined(__GNUC__)
#define GC_reachable_here(pointer) __asm__ __volatile__(" " : : "X"(pointer) : "memory")
#else
#define GC_reachable_here(pointer) GC_noop1((GC_word)(pointer))
#endif
/* The next word of a list made by GC_malloc_many(). */
#define GC_NEXT(object) (*(void **)(object))

/* Objects that know where they were made and notice what is written just before or behind them: GC_DEBUG uses these. */
#define GC_EXTRAS __FILE__, __LINE__
#define GC_EXTRA_PARAMS const char *file, int line
GC_API void *GC_debug_malloc(size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_atomic(size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_uncollectable(size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_atomic_uncollectable(size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_ignore_off_page(size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_atomic_ignore_off_page(size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_stubborn(size_t bytes, const char *file, int line);
GC_API void *GC_debug_realloc(void *object, size_t bytes, const char *file, int line);
GC_API void *GC_debug_malloc_replacement(size_t bytes);
GC_API void *GC_debug_malloc_uncollectable_replacement(size_t bytes);
GC_API void *GC_debug_realloc_replacement(void *object, size_t bytes);
GC_API void *GC_debug_reallocf(void *object, size_t bytes, const char *file, int line);
GC_API void *GC_debug_reallocf_replacement(void *object, size_t bytes);
GC_API void GC_debug_free(void *object);
GC_API void GC_debug_freezero(void *object, size_t bytes);
GC_API char *GC_debug_strdup(const char *text, const char *file, int line);
GC_API char *GC_debug_strndup(const char *text, size_t bytes, const char *file, int line);
GC_API void GC_debug_register_displacement(size_t bytes);
GC_API void GC_debug_change_stubborn(const void *object);
GC_API void GC_debug_end_stubborn_change(const void *object);
GC_API void GC_debug_ptr_store_and_dirty(void *place, const void *value);

/* ---- Collections and figures ------------------------------------------------------------------------------------- */
typedef int (*GC_stop_func)(void);
GC_API void GC_init(void);
GC_API int GC_is_init_called(void);
GC_API void GC_deinit(void);
GC_API void GC_gcollect(void);
GC_API void GC_gcollect_and_unmap(void);
GC_API int GC_try_to_collect(GC_stop_func stop);
/* Asked before each collection: anything but 0 puts it off. */
GC_API void GC_set_stop_func(GC_stop_func stop);
GC_API GC_stop_func GC_get_stop_func(void);
GC_API int GC_collect_a_little(void);
GC_API void GC_start_incremental_collection(void);
GC_API void GC_disable(void);
GC_API void GC_finish_and_disable(void);
GC_API void GC_enable(void);
/* How often collection is held off; GC_disable() counts it up. */
GC_API int GC_dont_gc;
GC_API void GC_set_disable_automatic_collection(int on);
GC_API int GC_get_disable_automatic_collection(void);
GC_API int GC_is_disabled(void);
GC_API void GC_enable_incremental(void);
GC_API int GC_is_incremental_mode(void);
#define GC_PROTECTS_POINTER_HEAP 1
#define GC_PROTECTS_PTRFREE_HEAP 2
#define GC_PROTECTS_STATIC_DATA 4
#define GC_PROTECTS_STACK 8
#define GC_PROTECTS_NONE 0
GC_API int GC_incremental_protection_needs(void);
GC_API void GC_set_manual_vdb_allowed(int on);
GC_API int GC_get_manual_vdb_allowed(void);
GC_API void GC_set_mprotect_vdb_allowed(int on);
GC_API int GC_get_mprotect_vdb_allowed(void);
#define GC_VDB_NONE 0
#define GC_VDB_MPROTECT 0x1
#define GC_VDB_MANUAL 0x2
#define GC_VDB_DEFAULT 0x4
#define GC_VDB_GWW 0x8
#define GC_VDB_PROC 0x20
#define GC_VDB_SOFT 0x40
#define GC_VDB_UFFDWP 0x80
GC_API unsigned GC_get_supported_vdbs(void);
GC_API unsigned GC_get_actual_vdb(void);
GC_API int GC_expand_hp(size_t bytes);
GC_API void GC_set_max_heap_size(GC_word bytes);
GC_API GC_word GC_gc_no;
GC_API GC_word GC_get_gc_no(void);
GC_API size_t GC_get_heap_size(void);
GC_API size_t GC_get_free_bytes(void);
GC_API size_t GC_get_unmapped_bytes(void);
GC_API size_t GC_get_bytes_since_gc(void);
GC_API size_t GC_get_expl_freed_bytes_since_gc(void);
GC_API size_t GC_get_total_bytes(void);
GC_API size_t GC_get_size_map_at(int bytes);
GC_API size_t GC_get_memory_use(void);
GC_API size_t GC_get_obtained_from_os_bytes(void);
GC_API void GC_get_heap_usage_safe(GC_word *heap, GC_word *free, GC_word *unmapped, GC_word *since, GC_word *total);
GC_API unsigned long GC_get_full_gc_total_time(void);
GC_API unsigned long GC_get_full_gc_total_ns_frac(void);
GC_API unsigned long GC_get_stopped_mark_total_time(void);
GC_API unsigned long GC_get_avg_stopped_mark_time_ns(void);
GC_API void GC_start_performance_measurement(void);
GC_API void GC_dump(void);
GC_API void GC_dump_named(const char *name);
GC_API void GC_dump_regions(void);
GC_API void GC_dump_finalization(void);
struct GC_prof_stats_s {
    GC_word heapsize_full;
    GC_word free_bytes_full;
    GC_word unmapped_bytes;
    GC_word bytes_allocd_since_gc;
    GC_word allocd_bytes_before_gc;
    GC_word non_gc_bytes;
    GC_word gc_no;
    GC_word markers_m1;
    GC_word bytes_reclaimed_since_gc;
    GC_word reclaimed_bytes_before_gc;
    GC_word expl_freed_bytes_since_gc;
    GC_word obtained_from_os_bytes;
};
GC_API size_t GC_get_prof_stats(struct GC_prof_stats_s *stats, size_t bytes);
GC_API size_t GC_get_prof_stats_unsafe(struct GC_prof_stats_s *stats, size_t bytes);

/* What happens in a collection. Callbacks run with the collector's lock held, and between GC_EVENT_POST_STOP_WORLD and
 * GC_EVENT_PRE_START_WORLD with all threads stopped: they call nothing of the collector, allocate nothing and take no lock. */
typedef enum {
    GC_EVENT_START,
    GC_EVENT_MARK_START,
    GC_EVENT_MARK_END,
    GC_EVENT_RECLAIM_START,
    GC_EVENT_RECLAIM_END,
    GC_EVENT_END,
    GC_EVENT_PRE_STOP_WORLD,
    GC_EVENT_POST_STOP_WORLD,
    GC_EVENT_PRE_START_WORLD,
    GC_EVENT_POST_START_WORLD,
    GC_EVENT_THREAD_SUSPENDED,
    GC_EVENT_THREAD_UNSUSPENDED
} GC_EventType;
typedef void (GC_CALLBACK *GC_on_collection_event_proc)(GC_EventType event);
typedef void (GC_CALLBACK *GC_on_thread_event_proc)(GC_EventType event, void *thread);
typedef void (GC_CALLBACK *GC_on_heap_resize_proc)(GC_word bytes);
GC_API void GC_set_on_collection_event(GC_on_collection_event_proc callback);
GC_API GC_on_collection_event_proc GC_get_on_collection_event(void);
GC_API void GC_set_on_thread_event(GC_on_thread_event_proc callback);
GC_API GC_on_thread_event_proc GC_get_on_thread_event(void);
GC_API GC_on_heap_resize_proc GC_on_heap_resize;
GC_API void GC_set_on_heap_resize(GC_on_heap_resize_proc callback);
GC_API GC_on_heap_resize_proc GC_get_on_heap_resize(void);

/* Leaks: objects are the program's to free, and a collection tells of those that nothing refers to. */
GC_API int GC_find_leak;
GC_API void GC_set_find_leak(int on);
GC_API int GC_get_find_leak(void);

/* Printing without the program's stdio being ready. */
#if defined(__GNUC__)
#define VELLUM_LIBGC_FORMAT __attribute__((__format__(__printf__, 1, 2)))
#else
#define VELLUM_LIBGC_FORMAT
#endif
GC_API void GC_printf(const char *format, ...) VELLUM_LIBGC_FORMAT;
GC_API void GC_err_printf(const char *format, ...) VELLUM_LIBGC_FORMAT;
GC_API void GC_log_printf(const char *format, ...) VELLUM_LIBGC_FORMAT;
GC_API void GC_set_log_fd(int descriptor);

/* ---- Settings ---------------------------------------------------------------------------------------------------- */
typedef void *(*GC_oom_func)(size_t bytes);
typedef void (*GC_warn_proc)(char *message, GC_word argument);
GC_API int GC_all_interior_pointers;
GC_API int GC_finalize_on_demand;
GC_API int GC_java_finalization;
GC_API int GC_print_stats;
GC_API int GC_parallel;
GC_API int GC_dont_expand;
GC_API int GC_use_entire_heap;
GC_API int GC_full_freq;
GC_API int GC_dont_precollect;
GC_API GC_word GC_non_gc_bytes;
GC_API GC_word GC_free_space_divisor;
GC_API GC_word GC_max_retries;
GC_API unsigned long GC_time_limit;
#define GC_TIME_UNLIMITED 999999
GC_API GC_oom_func GC_oom_fn;
typedef void (GC_CALLBACK *GC_abort_func)(const char *message);
GC_API GC_abort_func GC_on_abort;
GC_API void GC_set_abort_func(GC_abort_func function);
GC_API GC_abort_func GC_get_abort_func(void);
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
struct GC_timeval_s {
    unsigned long tv_ms;
    unsigned long tv_nsec;
};
GC_API void GC_set_time_limit_tv(struct GC_timeval_s limit);
GC_API struct GC_timeval_s GC_get_time_limit_tv(void);
GC_API void GC_set_allocd_bytes_per_finalizer(GC_word bytes);
GC_API GC_word GC_get_allocd_bytes_per_finalizer(void);
GC_API void GC_set_pages_executable(int on);
GC_API int GC_get_pages_executable(void);
GC_API void GC_incr_bytes_allocd(size_t bytes);
GC_API void GC_incr_bytes_freed(size_t bytes);
GC_API void GC_atfork_prepare(void);
GC_API void GC_atfork_parent(void);
GC_API void GC_atfork_child(void);
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
GC_API int GC_get_dont_add_byte_at_end(void);
GC_API size_t GC_get_hblk_size(void);
typedef void (GC_CALLBACK *GC_on_os_get_mem_proc)(void *start, size_t bytes);
GC_API void GC_set_on_os_get_mem(GC_on_os_get_mem_proc procedure);
GC_API GC_on_os_get_mem_proc GC_get_on_os_get_mem(void);
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
GC_API void GC_clear_exclusion_table(void);
typedef int (GC_CALLBACK *GC_has_static_roots_func)(const char *library, void *start, size_t bytes);
GC_API void GC_register_has_static_roots_callback(GC_has_static_roots_func filter);
GC_API void GC_remove_roots(void *start, void *end);
GC_API void GC_allow_register_threads(void);
GC_API void GC_use_threads_discovery(void);
GC_API void GC_start_mark_threads(void);
GC_API int GC_register_my_thread(const struct GC_stack_base *base);
GC_API int GC_unregister_my_thread(void);
GC_API int GC_thread_is_registered(void);
GC_API int GC_get_stack_base(struct GC_stack_base *base);
GC_API void *GC_get_my_stackbottom(struct GC_stack_base *base);
GC_API void GC_set_stackbottom(void *thread, const struct GC_stack_base *base);
GC_API char *GC_stackbottom;
GC_API void GC_register_altstack(void *stack, GC_word bytes, void *altstack, GC_word altstack_bytes);
GC_API void GC_stop_world_external(void);
GC_API void GC_start_world_external(void);
GC_API void *GC_call_with_stack_base(GC_stack_base_func function, void *argument);
GC_API void *GC_do_blocking(GC_fn_type function, void *argument);
GC_API void *GC_call_with_gc_active(GC_fn_type function, void *argument);
GC_API void *GC_call_with_alloc_lock(GC_fn_type function, void *argument);
GC_API void *GC_call_with_reader_lock(GC_fn_type function, void *argument, int release);
typedef void (GC_CALLBACK *GC_sp_corrector_proc)(void **place, void *thread);
GC_API void GC_set_sp_corrector(GC_sp_corrector_proc corrector);
GC_API GC_sp_corrector_proc GC_get_sp_corrector(void);
GC_API void GC_alloc_lock(void);
GC_API void GC_alloc_unlock(void);
GC_API void GC_set_suspend_signal(int signal);
GC_API void GC_set_thr_restart_signal(int signal);
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
GC_API void GC_register_finalizer_unreachable(void *object, GC_finalization_proc procedure, void *data, GC_finalization_proc *old, void **old_data);
GC_API void GC_debug_register_finalizer_unreachable(void *object, GC_finalization_proc procedure, void *data, GC_finalization_proc *old, void **old_data);
GC_API int GC_invoke_finalizers(void);
GC_API int GC_should_invoke_finalizers(void);
typedef void (GC_CALLBACK *GC_finalizer_notifier_proc)(void);
GC_API GC_finalizer_notifier_proc GC_finalizer_notifier;
GC_API void GC_set_finalizer_notifier(GC_finalizer_notifier_proc notifier);
GC_API GC_finalizer_notifier_proc GC_get_finalizer_notifier(void);
typedef void (GC_CALLBACK *GC_await_finalize_proc)(void *object);
GC_API void GC_set_await_finalize_proc(GC_await_finalize_proc procedure);
GC_API GC_await_finalize_proc GC_get_await_finalize_proc(void);
GC_API void GC_set_interrupt_finalizers(unsigned most);
GC_API unsigned GC_get_interrupt_finalizers(void);
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
/* References from outside that are strong or weak as the callback says at each collection. */
typedef enum {
    GC_TOGGLE_REF_DROP,
    GC_TOGGLE_REF_STRONG,
    GC_TOGGLE_REF_WEAK
} GC_ToggleRefStatus;
typedef GC_ToggleRefStatus (GC_CALLBACK *GC_toggleref_func)(void *object);
GC_API void GC_set_toggleref_func(GC_toggleref_func callback);
GC_API GC_toggleref_func GC_get_toggleref_func(void);
GC_API int GC_toggleref_add(void *object, int is_strong);
GC_API int GC_debug_toggleref_add(void *object, int is_strong);
typedef GC_word GC_hidden_pointer;
#define GC_HIDE_POINTER(pointer) (~(GC_hidden_pointer)(pointer))
#define GC_REVEAL_POINTER(hidden) ((void *)GC_HIDE_POINTER(hidden))

/* ---- The names programs use -------------------------------------------------------------------------------------- */
#ifdef GC_INITIAL_HEAP_SIZE
#define VELLUM_LIBGC_INITIAL_HEAP_SIZE (void)GC_expand_hp(GC_INITIAL_HEAP_SIZE)
#else
#define VELLUM_LIBGC_INITIAL_HEAP_SIZE (void)0
#endif
#ifdef GC_MAXIMUM_HEAP_SIZE
#define VELLUM_LIBGC_MAXIMUM_HEAP_SIZE GC_set_max_heap_size(GC_MAXIMUM_HEAP_SIZE)
#else
#define VELLUM_LIBGC_MAXIMUM_HEAP_SIZE (void)0
#endif
#ifdef GC_FREE_SPACE_DIVISOR
#define VELLUM_LIBGC_FREE_SPACE_DIVISOR GC_set_free_space_divisor(GC_FREE_SPACE_DIVISOR)
#else
#define VELLUM_LIBGC_FREE_SPACE_DIVISOR (void)0
#endif
#ifdef GC_DONT_GC
#define VELLUM_LIBGC_DONT_GC (void)(GC_dont_gc = 1)
#else
#define VELLUM_LIBGC_DONT_GC (void)0
#endif
#ifdef GC_SIG_SUSPEND
#define VELLUM_LIBGC_SIG_SUSPEND GC_set_suspend_signal(GC_SIG_SUSPEND)
#else
#define VELLUM_LIBGC_SIG_SUSPEND (void)0
#endif
#ifdef GC_IGNORE_WARN
#define VELLUM_LIBGC_IGNORE_WARN GC_set_warn_proc(GC_ignore_warn_proc)
#else
#define VELLUM_LIBGC_IGNORE_WARN (void)0
#endif
#define GC_INIT()                           \
    do {                                    \
        VELLUM_LIBGC_DONT_GC;               \
        VELLUM_LIBGC_FREE_SPACE_DIVISOR;    \
        VELLUM_LIBGC_SIG_SUSPEND;           \
        VELLUM_LIBGC_MAXIMUM_HEAP_SIZE;     \
        GC_init();                          \
        VELLUM_LIBGC_IGNORE_WARN;           \
        VELLUM_LIBGC_INITIAL_HEAP_SIZE;     \
    } while (0)
#ifdef GC_DEBUG
#define GC_MALLOC(bytes) GC_debug_malloc(bytes, GC_EXTRAS)
#define GC_MALLOC_ATOMIC(bytes) GC_debug_malloc_atomic(bytes, GC_EXTRAS)
#define GC_MALLOC_UNCOLLECTABLE(bytes) GC_debug_malloc_uncollectable(bytes, GC_EXTRAS)
#define GC_MALLOC_ATOMIC_UNCOLLECTABLE(bytes) GC_debug_malloc_atomic_uncollectable(bytes, GC_EXTRAS)
#define GC_MALLOC_IGNORE_OFF_PAGE(bytes) GC_debug_malloc_ignore_off_page(bytes, GC_EXTRAS)
#define GC_MALLOC_ATOMIC_IGNORE_OFF_PAGE(bytes) GC_debug_malloc_atomic_ignore_off_page(bytes, GC_EXTRAS)
#define GC_REALLOC(object, bytes) GC_debug_realloc(object, bytes, GC_EXTRAS)
#define GC_REALLOCF(object, bytes) GC_debug_reallocf(object, bytes, GC_EXTRAS)
#define GC_FREE(object) GC_debug_free(object)
#define GC_FREEZERO(object, bytes) GC_debug_freezero(object, bytes)
#define GC_FREEZEROALL(object) GC_debug_freezero(object, ~(size_t)0)
#define GC_STRDUP(text) GC_debug_strdup(text, GC_EXTRAS)
#define GC_STRNDUP(text, bytes) GC_debug_strndup(text, bytes, GC_EXTRAS)
#define GC_REGISTER_FINALIZER(o, p, d, op, od) GC_debug_register_finalizer(o, p, d, op, od)
#define GC_REGISTER_FINALIZER_IGNORE_SELF(o, p, d, op, od) GC_debug_register_finalizer_ignore_self(o, p, d, op, od)
#define GC_REGISTER_FINALIZER_NO_ORDER(o, p, d, op, od) GC_debug_register_finalizer_no_order(o, p, d, op, od)
#define GC_REGISTER_FINALIZER_UNREACHABLE(o, p, d, op, od) GC_debug_register_finalizer_unreachable(o, p, d, op, od)
#define GC_REGISTER_DISPLACEMENT(bytes) GC_debug_register_displacement(bytes)
#define GC_END_STUBBORN_CHANGE(object) GC_debug_end_stubborn_change(object)
#define GC_PTR_STORE_AND_DIRTY(place, value) GC_debug_ptr_store_and_dirty(place, value)
#define GC_GENERAL_REGISTER_DISAPPEARING_LINK(link, object) GC_general_register_disappearing_link(link, GC_base((void *)(object)))
#define GC_REGISTER_LONG_LINK(link, object) GC_register_long_link(link, GC_base((void *)(object)))
#ifdef GC_REQUIRE_WCSDUP
#define GC_WCSDUP(text) GC_debug_wcsdup(text, GC_EXTRAS)
#endif
#else
#define GC_REGISTER_FINALIZER_UNREACHABLE(o, p, d, op, od) GC_register_finalizer_unreachable(o, p, d, op, od)
#define GC_END_STUBBORN_CHANGE(object) GC_end_stubborn_change(object)
#define GC_PTR_STORE_AND_DIRTY(place, value) GC_ptr_store_and_dirty(place, value)
#define GC_GENERAL_REGISTER_DISAPPEARING_LINK(link, object) GC_general_register_disappearing_link(link, object)
#define GC_REGISTER_LONG_LINK(link, object) GC_register_long_link(link, object)
#ifdef GC_REQUIRE_WCSDUP
#define GC_WCSDUP(text) GC_wcsdup(text)
#endif
#define GC_MALLOC(bytes) GC_malloc(bytes)
#define GC_MALLOC_ATOMIC(bytes) GC_malloc_atomic(bytes)
#define GC_MALLOC_UNCOLLECTABLE(bytes) GC_malloc_uncollectable(bytes)
#define GC_MALLOC_ATOMIC_UNCOLLECTABLE(bytes) GC_malloc_atomic_uncollectable(bytes)
#define GC_MALLOC_IGNORE_OFF_PAGE(bytes) GC_malloc_ignore_off_page(bytes)
#define GC_MALLOC_ATOMIC_IGNORE_OFF_PAGE(bytes) GC_malloc_atomic_ignore_off_page(bytes)
#define GC_REALLOC(object, bytes) GC_realloc(object, bytes)
#define GC_REALLOCF(object, bytes) GC_reallocf(object, bytes)
#define GC_FREE(object) GC_free(object)
#define GC_FREEZERO(object, bytes) GC_freezero(object, bytes)
#define GC_FREEZEROALL(object) GC_freezero(object, ~(size_t)0)
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
#define GC_NEW_STUBBORN(type) GC_NEW(type)
#define GC_CHANGE_STUBBORN(object) GC_change_stubborn(object)
#define GC_PTR_ADD(pointer, count) ((pointer) + (count))
#define GC_PRE_INCR(pointer, count) ((pointer) += (count))
#define GC_POST_INCR(pointer) ((pointer)++)
#define GC_POST_DECR(pointer) ((pointer)--)
#define GC_PTR_STORE(place, value) (*(void **)(place) = (void *)(value))
#if defined(I_HIDE_POINTERS) || defined(GC_I_HIDE_POINTERS)
#define HIDE_POINTER(pointer) GC_HIDE_POINTER(pointer)
#define REVEAL_POINTER(hidden) GC_REVEAL_POINTER(hidden)
#endif

#ifdef __cplusplus
}
#endif

#if defined(GC_THREADS) || defined(GC_PTHREADS)
#include "gc_pthread_redirects.h"
#endif

#endif
