/* The interface of heap.h for malloc. Nothing is ever freed. */
#define HEAP_DESCRIBE(type, pointers)
#define HEAP_MAKE(type) heap_untyped(sizeof(type) + HEAP_EXTRA)

static inline void *heap_untyped(size_t bytes) {
    void *object = malloc(bytes);
    heap_demand(object != NULL, "malloc: out of memory: ask for a smaller scale");
    return object;
}

static inline void *heap_atomic_array(size_t bytes) {
    return heap_untyped(bytes);
}

static inline void *heap_pointers(size_t bytes) {
    return memset(heap_untyped(bytes), 0, bytes);
}

static inline void heap_store(void *place, const void *value) {
    *(const void **)place = value;
}

#ifdef HEAP_PROFILE
static inline uint64_t heap_live(void) {
    return 0;
}
#endif

static inline void heap_open(void) {
    heap_demand(!*heap_plan, "plan: malloc has none");
}

static inline void heap_close(heap_figures *is) {
    (void)is;
}

static inline void heap_print_more(void) {}

static inline void heap_collect(void) {
    (void)0;
}
