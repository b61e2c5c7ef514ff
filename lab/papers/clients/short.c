/* Short-lived objects: each is dropped when the next is made. `bytes=` is 16 or 64. Objects are untyped,
 * as in most programs for libgc.
 *
 * With -DHEAP_CALL, libgc allocates by GC_MALLOC, which most of its users call, instead of inline.
 */
#include "heap.h"

enum { OBJECTS = 30000000, KEPT = 64 };

typedef struct small {
    intptr_t words[2];
} small;
typedef struct large {
    intptr_t words[8];
} large;
HEAP_TYPE(small, HEAP_POINTER(0) | HEAP_POINTER(1));
HEAP_TYPE(large, 255);

#if defined(HEAP_BDW) && defined(HEAP_CALL)
#define MAKE(type) ((type *)GC_MALLOC(sizeof(type)))
#else
#define MAKE(type) NEW_UNTYPED(type)
#endif

/* Static, so that no compiler can prove an object unused. */
static void *volatile kept[KEPT];

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    unsigned long bytes = heap_word(argc, argv, "bytes", sizeof(small)), objects = heap_scaled(OBJECTS);
    heap_demand(bytes == sizeof(small) || bytes == sizeof(large), "short: bytes= is 16 or 64");
    uint64_t begun = heap_now(CLOCK_PROCESS_CPUTIME_ID), sum = 0;
    if (bytes == sizeof(small)) {
        for (unsigned long i = 0; i < objects; i++) {
            small *fresh = MAKE(small);
            heap_demand(fresh != NULL, "short: out of memory");
            fresh->words[1] = (intptr_t)i;
            kept[i % KEPT] = fresh;
        }
    } else {
        for (unsigned long i = 0; i < objects; i++) {
            large *fresh = MAKE(large);
            heap_demand(fresh != NULL, "short: out of memory");
            fresh->words[1] = (intptr_t)i;
            kept[i % KEPT] = fresh;
        }
    }
    heap_tell("object_ns", (double)(heap_now(CLOCK_PROCESS_CPUTIME_ID) - begun) / (double)objects);
    for (unsigned long i = 0; i < KEPT; i++)
        sum = sum * 31 + (uint64_t)(kept[i] ? ((small *)kept[i])->words[1] : 0);
    return heap_end(sum);
}
