/* The interface of heap.h for Vellum's collector.
 *
 * Types are made when the heap is opened. Allocation is inlined by vellum_gc.h. The inline functions call
 * the slow ones through the names below, so that the work in them (collecting, sweeping, finding free
 * memory) counts as the collector's time.
 */
#define vel_gc_slow heap_timed_slow
#define vel_gc_slow_atomic heap_timed_slow_atomic
#define vel_gc_slow_type heap_timed_slow_type
#include <vellum_gc.h>
#undef vel_gc_slow
#undef vel_gc_slow_atomic
#undef vel_gc_slow_type
void *vel_gc_slow(size_t bytes);
void *vel_gc_slow_atomic(size_t bytes);
void *vel_gc_slow_type(vel_gc_type type);

static struct vel_gc_stats heap_stats;

/* Wall time of all pauses so far. */
static uint64_t heap_paused(void) {
    vel_gc_get_stats(&heap_stats, sizeof heap_stats);
    return heap_stats.pause_ns_total;
}

/* After each collection, what it found alive. Looked at as a new object is made: collections run in the middle of that. */
static heap_figures heap_is;
static uint64_t heap_collections_seen;

static inline void heap_look(void) {
    struct vel_gc_stats stats;
    vel_gc_get_stats(&stats, sizeof stats);
    if (stats.collections == heap_collections_seen)
        return;
    heap_collections_seen = stats.collections;
    heap_is.live_samples++;
    heap_is.live_objects += stats.marked_objects_last;
    heap_is.live_bytes += stats.live_bytes;
    if (stats.live_bytes > heap_is.live_bytes_max)
        heap_is.live_bytes_max = stats.live_bytes;
}

#define HEAP_TIMED(call)                                                    \
    uint64_t cpu = heap_pause_begin();                                      \
    void *object;                                                           \
    if (heap_is_sample()) {                                                 \
        uint64_t paused = heap_paused(), begun = heap_now(CLOCK_MONOTONIC); \
        object = (call);                                                    \
        uint64_t took = heap_now(CLOCK_MONOTONIC) - begun;                  \
        if (heap_paused() == paused)                                        \
            heap_sampled_ns += took;                                        \
    } else {                                                                \
        object = (call);                                                    \
    }                                                                       \
    heap_pause_end(cpu);                                                    \
    return object

__attribute__((noinline, cold)) void *heap_timed_slow(size_t bytes) {
    HEAP_TIMED(vel_gc_slow(bytes));
}

__attribute__((noinline, cold)) void *heap_timed_slow_atomic(size_t bytes) {
    HEAP_TIMED(vel_gc_slow_atomic(bytes));
}

__attribute__((noinline, cold)) void *heap_timed_slow_type(vel_gc_type type) {
    HEAP_TIMED(vel_gc_slow_type(type));
}

#ifdef HEAP_PROFILE
/* Collections are at least a thousand objects apart. */
enum { HEAP_LOOK_EVERY = 1000 };
static inline void heap_sometimes_look(void) {
    static unsigned since;
    if (++since % HEAP_LOOK_EVERY == 0)
        heap_look();
}
#else
static inline void heap_sometimes_look(void) {}
#endif

static __attribute__((noinline, cold)) void *heap_exhausted(size_t bytes) {
    (void)bytes;
    heap_fail("vellum: out of memory: the heap is too small for this client");
    return NULL;
}

/* The types of the program, linked before main() and made in heap_open(). */
typedef struct heap_type {
    vel_gc_type *made;
    size_t bytes;
    uint64_t pointers;
    struct heap_type *next;
} heap_type;
static heap_type *heap_types;

#define HEAP_DESCRIBE(type, pointers)                                                                             \
    static vel_gc_type type##_made;                                                                               \
    static __attribute__((constructor)) void type##_link(void) {                                                  \
        static heap_type is = {&type##_made, sizeof(type) + HEAP_EXTRA, (pointers), NULL};                        \
        is.next = heap_types;                                                                                     \
        heap_types = &is;                                                                                         \
    }

#ifdef HEAP_UNTYPED
#define HEAP_MAKE(type) ((void)type##_made, heap_untyped(sizeof(type) + HEAP_EXTRA))
#else
#define HEAP_MAKE(type)                                                                                           \
    (heap_sometimes_look(),                                                                                       \
     type##_has_pointers ? vel_gc_new(type##_made) : vel_gc_alloc_atomic(sizeof(type) + HEAP_EXTRA))
#endif

static inline void *heap_untyped(size_t bytes) {
    heap_sometimes_look();
    return vel_gc_alloc(bytes);
}

static inline void *heap_atomic_array(size_t bytes) {
#ifdef HEAP_UNTYPED
    return vel_gc_alloc(bytes);
#else
    return vel_gc_alloc_atomic(bytes);
#endif
}

static inline void *heap_pointers(size_t bytes) {
    return vel_gc_alloc(bytes);
}

static inline void heap_store(void *place, const void *value) {
    vel_gc_write(place, value);
}

#ifdef HEAP_PROFILE
static inline uint64_t heap_live(void) {
    vel_gc_get_stats(&heap_stats, sizeof heap_stats);
    return heap_stats.live_bytes;
}
#endif

static inline void heap_open(void) {
    struct vel_gc_config config = {.config_bytes = sizeof config, .only_starts = 1};
#ifdef HEAP_TELLS_WRITES
    config.tells_writes = 1;
#endif
    if (!strcmp(heap_plan, "mostly_copying"))
        config.plan = VEL_GC_MOSTLY_COPYING;
    else if (!strcmp(heap_plan, "appel"))
        config.plan = VEL_GC_APPEL;
    else
        heap_demand(!*heap_plan || !strcmp(heap_plan, "mark_sweep"), "plan: mark_sweep, mostly_copying or appel");
    if (!strcmp(heap_after, "drift"))
        config.after_major = VEL_GC_DRIFT;
    else if (!strcmp(heap_after, "copy_back"))
        config.after_major = VEL_GC_COPY_BACK;
    else if (!strcmp(heap_after, "reuse"))
        config.after_major = VEL_GC_REUSE;
    else
        heap_demand(!*heap_after || !strcmp(heap_after, "stay"), "after: stay, reuse, drift or copy_back");
    config.slice_us = heap_slice_us;
    config.markers = heap_markers;
    config.limit_bytes = config.fixed_bytes = (size_t)heap_mib << 20;
    heap_demand(vel_gc_init(&config) == 0, "vellum: the heap cannot be made: has this library the plan?");
    vel_gc_on_full(heap_exhausted);
    for (heap_type *type = heap_types; type; type = type->next) {
        *type->made = vel_gc_type_of(type->bytes, &type->pointers);
        heap_demand(*type->made != NULL, "vellum: a type cannot be made");
    }
}

static inline void heap_close(heap_figures *is) {
    heap_look();
    *is = heap_is;
    vel_gc_get_stats(&heap_stats, sizeof heap_stats);
    is->collections = heap_stats.collections;
    is->collections_ns = heap_stats.pause_ns_total;
    is->pause_max_ns = heap_stats.pause_ns_longest;
    is->heap_bytes = heap_stats.heap_peak_bytes;
}

/* The phases and the roots, of which only Vellum keeps account. */
static inline void heap_print_more(void) {
    printf(", \"pause_ns\": %llu, \"root_ns\": %llu, \"mark_ns\": %llu, \"sweep_ns\": %llu, \"metadata_bytes\": %llu",
           (unsigned long long)heap_stats.pause_ns_total, (unsigned long long)heap_stats.root_ns_total, (unsigned long long)heap_stats.mark_ns_total,
           (unsigned long long)heap_stats.sweep_ns_total, (unsigned long long)heap_stats.metadata_bytes);
    printf(", \"roots_found\": %llu, \"rooted_blocks\": %llu, \"promoted_blocks\": %llu, \"promoted_free_bytes\": %llu",
           (unsigned long long)heap_stats.roots_found, (unsigned long long)heap_stats.rooted_blocks,
           (unsigned long long)heap_stats.promoted_blocks, (unsigned long long)heap_stats.promoted_free_bytes);
}

static inline void heap_collect(void) {
    vel_gc_collect();
}
