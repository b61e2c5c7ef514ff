/* Collecting where the stack is shallow. See heap.h.
 *
 * What a stack leads to is kept, and stays where it is: a deep one costs a collection more, and keeps more that nobody needs. A program whose stack swings
 * is better collected while it is low, if that does not come too late. So the stack is looked at wherever the inlined path of an allocation
 * ends, and a collection is asked for if it is shallow and the last one is long enough ago. Where it is not shallow in time, the collector
 * collects by itself, wherever that is.
 *
 * Smith and Morrisett 1998, section 3.3 (Pia), say that MCC "implements a heuristic to try collecting when the stack is shallow", and not which one: this
 * one is ours.
 */

/* Shallow: at most 1/HEAP_SHALLOW_PART of the deepest since the collection before the last one. */
enum { HEAP_SHALLOW_PART = 4 };
/* Long enough ago: all of the room but 1/HEAP_LEEWAY_PART was allocated since. More leeway finds the stack shallow
 * more often, and collects more often. */
enum { HEAP_LEEWAY_PART = 8 };

static uintptr_t heap_stack_base, heap_deepest, heap_deepest_before;
/* Collections that have begun, the sum of the stack's depths then, and how many of them were asked for here. */
static uint64_t heap_begun, heap_depths, heap_asked;

static inline uintptr_t heap_depth(void) {
    return heap_stack_base - (uintptr_t)__builtin_frame_address(0);
}

/* Called as a collection begins, on the thread that collects; nothing of the collector's may be called here. */
static void heap_collection_begins(void) {
    heap_begun++;
    heap_depths += heap_depth();
    heap_deepest_before = heap_deepest;
    heap_deepest = 0;
}

/* To be called by a function that main() waits for. */
static inline void heap_begin_at_stack(void) {
    if (!heap_watches_stack)
        return;
    heap_demand(!heap_shallow || heap_mib, "shallow=1 needs heap=MIB");
    heap_stack_base = (uintptr_t)__builtin_frame_address(0);
    vel_gc_on_begin(heap_collection_begins);
}

static int heap_is_worth_collecting(void) {
    vel_gc_get_stats(&heap_stats, sizeof heap_stats);
    size_t whole = (size_t)heap_mib << 20;
    size_t room = whole > heap_stats.live_bytes ? whole - heap_stats.live_bytes : 0;
    return heap_stats.allocated_bytes - heap_allocated_before >= room - room / HEAP_LEEWAY_PART;
}

static __attribute__((noinline, cold)) void heap_looks_at_stack(void) {
    if (heap_begun != heap_collections_seen)
        heap_look();
    uintptr_t depth = heap_depth();
    if (depth > heap_deepest)
        heap_deepest = depth;
    uintptr_t deepest = heap_deepest > heap_deepest_before ? heap_deepest : heap_deepest_before;
    if (heap_shallow && depth <= deepest / HEAP_SHALLOW_PART && heap_is_worth_collecting()) {
        heap_asked++;
        vel_gc_collect();
    }
}

static inline void heap_look_at_stack(void) {
    if (heap_watches_stack)
        heap_looks_at_stack();
}

/* Averages over the collections, and how many were asked for. */
static inline void heap_print_stack(const heap_figures *is) {
    printf(", \"depth_bytes\": %.1f, \"live_bytes_mean\": %.1f, \"asked\": %llu",
           heap_begun ? (double)heap_depths / (double)heap_begun : 0.0,
           is->live_samples ? (double)is->live_bytes / (double)is->live_samples : 0.0, (unsigned long long)heap_asked);
}
