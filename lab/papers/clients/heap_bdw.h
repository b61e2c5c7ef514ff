/* The interface of heap.h for libgc, used as its documentation advises compilers to use it.
 *
 * Allocation is inlined, with the program's own free lists (gc_inline.h). Interior pointers do not count
 * within the heap (on the stack they always count). One thread marks unless more are requested: the
 * clients have one thread, and CPU times are compared. The work behind an empty free list (collecting,
 * sweeping and threading the next block) counts as the collector's time.
 */
#include <gc/gc.h>
/* Unless told otherwise the inlined path asks the library the size of every object that it makes, and holds it against the one asked for: no program
 * that is compiled to be fast does. */
#define GC_ASSERT(condition) ((void)0)
#include <gc/gc_inline.h>
/* Declared by its headers for programs of several threads only; these have one, but several may mark. */
void GC_start_mark_threads(void);
#ifdef HEAP_PROFILE
#include <gc/gc_mark.h>
#endif

/* Free lists by granules, pointer-free and other. As static data they are roots, as libgc demands; but nothing is traced
 * through a pointer-free object, so that a collection would take the rest of its list for garbage and hand it out again: those
 * lists are dropped as it begins. */
static void *heap_free_atomic[GC_TINY_FREELISTS], *heap_free_normal[GC_TINY_FREELISTS];
static heap_figures heap_is;
static uint64_t heap_pause_begun;

static __attribute__((noinline, cold)) void heap_refill(size_t bytes, int kind, void **list) {
    uint64_t cpu = heap_pause_begin();
    if (heap_is_sample()) {
        uint64_t collections = heap_is.collections, begun = heap_now(CLOCK_MONOTONIC);
        GC_generic_malloc_many(bytes, kind, list);
        uint64_t took = heap_now(CLOCK_MONOTONIC) - begun;
        if (heap_is.collections == collections)
            heap_sampled_ns += took;
    } else {
        GC_generic_malloc_many(bytes, kind, list);
    }
    heap_pause_end(cpu);
}
/* gc_inline.h is macros: from here on they fill their lists through the function that looks at the clock now and then. */
#define GC_generic_malloc_many heap_refill

static __attribute__((noinline, cold)) void *heap_exhausted(void) {
    heap_fail("libgc: out of memory: the heap is too small for this client");
    return NULL;
}

static inline __attribute__((always_inline)) void *heap_small(size_t bytes, int atomic) {
    void *object;
    size_t words = (bytes + HEAP_WORD - 1) / HEAP_WORD;
    if (atomic)
        GC_MALLOC_ATOMIC_WORDS(object, words, heap_free_atomic);
    else
        GC_MALLOC_WORDS(object, words, heap_free_normal);
    return object;
}

#ifdef HEAP_UNTYPED
#define HEAP_IS_ATOMIC(pointers) 0
#else
#define HEAP_IS_ATOMIC(pointers) ((pointers) == 0)
#endif
#define HEAP_DESCRIBE(type, pointers) enum { type##_is_atomic = HEAP_IS_ATOMIC(pointers) };
#define HEAP_MAKE(type) heap_small(sizeof(type) + HEAP_EXTRA, type##_is_atomic)

static inline __attribute__((always_inline)) void *heap_untyped(size_t bytes) {
    return heap_small(bytes, 0);
}

static inline void *heap_atomic_array(size_t bytes) {
    void *array = HEAP_IS_ATOMIC(HEAP_NO_POINTERS) ? GC_MALLOC_ATOMIC(bytes) : GC_MALLOC(bytes);
    return array ? array : heap_exhausted();
}

static inline void *heap_pointers(size_t bytes) {
    void *array = GC_MALLOC(bytes);
    return array ? array : heap_exhausted();
}

/* Its own account of writes is page protection; nobody has to tell. The pointer is read again only through memory that it sees. */
static inline void heap_store(void *place, const void *value) {
    *(const void *volatile *)place = value;
}

static void *GC_CALLBACK heap_out_of_memory(size_t bytes) {
    (void)bytes;
    return heap_exhausted();
}

#ifdef HEAP_PROFILE
static uint64_t heap_live_bytes;

static inline uint64_t heap_live(void) {
    return heap_live_bytes;
}

static void GC_CALLBACK heap_is_live(void *object, size_t bytes, void *unused) {
    (void)object, (void)unused;
    heap_is.live_objects++;
    heap_live_bytes += bytes;
}
#endif

/* Called with libgc's lock held, so nothing here allocates. */
static void GC_CALLBACK heap_event(GC_EventType event) {
    if (event == GC_EVENT_START) {
        memset(heap_free_atomic, 0, sizeof heap_free_atomic);
        heap_pause_begun = heap_now(CLOCK_MONOTONIC);
    } else if (event == GC_EVENT_END) {
        uint64_t pause = heap_now(CLOCK_MONOTONIC) - heap_pause_begun;
        heap_is.collections_ns += pause;
        heap_is.pause_max_ns = pause > heap_is.pause_max_ns ? pause : heap_is.pause_max_ns;
        heap_is.collections++;
    }
#ifdef HEAP_PROFILE
    if (event == GC_EVENT_MARK_END) {
        heap_live_bytes = 0;
        GC_enumerate_reachable_objects_inner(heap_is_live, NULL);
        heap_is.live_samples++;
        if (heap_live_bytes > heap_is.live_bytes_max)
            heap_is.live_bytes_max = heap_live_bytes;
    }
#endif
}

static inline void heap_open(void) {
    heap_demand(!*heap_plan, "plan: libgc has none");
    char markers[16];
    snprintf(markers, sizeof markers, "%u", heap_markers);
    setenv("GC_MARKERS", markers, 1);
    GC_set_all_interior_pointers(0);
    GC_INIT();
    if (heap_markers > 1)
        GC_start_mark_threads();
    if (heap_slice_us) {
        GC_enable_incremental();
        /* Its unit is the millisecond. */
        GC_set_time_limit(heap_slice_us < 1000 ? 1 : heap_slice_us / 1000);
    }
    GC_set_oom_fn(heap_out_of_memory);
    GC_set_warn_proc(GC_ignore_warn_proc);
    GC_set_on_collection_event(heap_event);
    if (heap_mib) {
        size_t whole = (size_t)heap_mib << 20, is = GC_get_heap_size();
        GC_set_max_heap_size(whole);
        if (whole > is)
            heap_demand(GC_expand_hp(whole - is), "libgc: the heap of this size cannot be had");
        /* The heap has its size: when room runs out, collect, and collect again rather than give up. */
        GC_set_dont_expand(1);
        GC_set_max_retries(2);
    }
}

static inline void heap_close(heap_figures *is) {
    *is = heap_is;
    is->heap_bytes = GC_get_heap_size();
}

static inline void heap_print_more(void) {}

static inline void heap_collect(void) {
    GC_gcollect();
}
