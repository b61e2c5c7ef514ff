/* The interface of a client (benchmark program) to its heap: one source can be built for each heap compared.
 *
 * A client describes its objects at file scope, makes them with NEW, and ends with a checksum of its results:
 *
 *     typedef struct cons { intptr_t head; struct cons *tail; } cons;
 *     HEAP_TYPE(cons, HEAP_POINTER(1));            word 1 is a pointer, word 0 is none
 *
 *     int main(int argc, char **argv) {
 *         heap_begin(argc, argv);
 *         cons *list = NEW(cons);                  contents undefined: fill in every word
 *         ...
 *         return heap_end(checksum);               one line of JSON figures on standard output
 *     }
 *
 * The compiler's options choose the heap:
 *
 *     -DHEAP_MALLOC     malloc without free: for checks, and as the least possible cost
 *     -DHEAP_BDW        libgc; -lgc
 *     -DHEAP_VELLUM     Vellum's collector; -lvellum
 *
 * More options change the objects or count them:
 *
 *     -DHEAP_HEADER     every object has an additional word (Smith and Morrisett 1998, Figure 2)
 *     -DHEAP_UNTYPED    no object has a type or is atomic (free of pointers): shows the value of types
 *     -DHEAP_PROFILE    counts objects by size, and live ones after each collection; times are then void
 *
 * A client that stores pointers only by SET (other than into new objects) defines, before the include:
 *
 *     #define HEAP_TELLS_WRITES
 *
 * Arguments of the command line, all optional:
 *
 *     scale=PERCENT     of the paper's amount of work; live data stay the same (default 100)
 *     heap=MIB          the heap begins at this size and never grows beyond it (default: no maximum)
 *     plan=NAME         mark_sweep, mostly_copying or appel; only Vellum has a choice
 *     after=WHAT        under appel, the use of a region that a major collection has vacated:
 *                       stay, reuse, drift or copy_back
 *     live=KIB          only with -DHEAP_PROFILE: collects after every KIB KiB of allocation, and prints
 *                       allocated and live bytes (Cooper, Nettles and Subramanian 1992, Figures 1, 5, 9)
 *     slice=US          collect in slices of US microseconds, or with 0 in one pause. If given, the CPU
 *                       time of every pause is measured, which itself costs time
 *     markers=N         threads that mark at once (default 1: collectors are compared with one thread)
 *
 * Objects may move: clients keep addresses only in pointers, and do not compute with them. Each heap has its
 * best settings: both collectors inline the usual path of an allocation, and objects without pointers are
 * atomic in both. Types would cost libgc a word an object, so libgc gets none, as in the paper.
 */
#ifndef CLIENTS_HEAP_H
#define CLIENTS_HEAP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Words of this machine. The source counted objects in words too: of four bytes there. */
#define HEAP_WORD sizeof(uintptr_t)
#define HEAP_POINTER(word) ((uintptr_t)1 << (word))
#define HEAP_NO_POINTERS ((uintptr_t)0)

/* The work asked for, in percent of the source's. */
static unsigned heap_scale = 100;
/* The size of the heap in MiB; 0 lets it grow. */
static unsigned heap_mib;
static const char *heap_plan = "", *heap_after = "";
/* Threads that mark. */
static unsigned heap_markers = 1;
/* The length of a slice in microseconds, and whether pauses are looked at. */
static unsigned heap_slice_us;
static int heap_watches;

/* Says what is wrong and ends the program: a client that goes on after that proves nothing. */
static inline void heap_fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static inline void heap_demand(int holds, const char *what) {
    if (!holds)
        heap_fail(what);
}

static inline uint64_t heap_now(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* One call in HEAP_SAMPLED behind the inlined path of an allocation is timed: a clock costs as much as some calls do.
 * Collections are timed each for itself, and calls in which there was one are no samples. */
enum { HEAP_SAMPLED = 16 };
static uint64_t heap_calls, heap_sampled_ns;

static inline int heap_is_sample(void) {
    return ++heap_calls % HEAP_SAMPLED == 0;
}

/* Bytes of this process's memory by the kernel's account: `VmRSS` now, `VmHWM` at most. 0 where it does not say. */
static inline uint64_t heap_resident(const char *which) {
    char line[256];
    unsigned long long kib = 0;
    size_t length = strlen(which);
    FILE *status = fopen("/proc/self/status", "r");
    if (!status)
        return 0;
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, which, length) && sscanf(line + length, ": %llu", &kib) == 1)
            break;
    fclose(status);
    return kib << 10;
}

/* The most CPU time, user and system, that the program's thread spent behind the inlined path of one allocation; how often
 * it was more than two milliseconds. */
static uint64_t heap_pause_cpu_max, heap_pauses_long;
enum { HEAP_PAUSE_LONG_NS = 2000000 };

/* When what is behind the inlined path of an allocation begins, and ends. */
static inline uint64_t heap_pause_begin(void) {
    return heap_watches ? heap_now(CLOCK_THREAD_CPUTIME_ID) : 0;
}

static inline void heap_pause_end(uint64_t begun) {
    if (!heap_watches)
        return;
    uint64_t took = heap_now(CLOCK_THREAD_CPUTIME_ID) - begun;
    heap_pause_cpu_max = took > heap_pause_cpu_max ? took : heap_pause_cpu_max;
    heap_pauses_long += took > HEAP_PAUSE_LONG_NS;
}

/* What a heap tells of itself. */
typedef struct heap_figures {
    uint64_t collections;
    uint64_t collections_ns; /* wall time */
    uint64_t pause_max_ns;
    uint64_t heap_bytes;
    /* In a profile, or where the stack is looked at: most, sums over, and number of collections. */
    uint64_t live_bytes_max, live_bytes, live_objects, live_samples;
} heap_figures;

#ifdef HEAP_PROFILE
/* Objects of one, two, three, and more words; those without pointers; bytes. */
static uint64_t heap_sized[4], heap_atomic, heap_allocated;
/* How often what lives is looked at, in bytes allocated (0: never), and when next. */
static uint64_t heap_live_every, heap_live_next;
static inline void heap_collect(void);
/* Bytes of objects that the last collection found alive; 0 where nobody knows. */
static inline uint64_t heap_live(void);

static __attribute__((noinline, cold)) void heap_look_live(void) {
    heap_collect();
    printf("live %llu %llu\n", (unsigned long long)heap_allocated, (unsigned long long)heap_live());
    heap_live_next = heap_allocated + heap_live_every;
}
#endif

/* Called before every allocation: a collection here sees what one in the allocation would. */
static inline void heap_count(size_t bytes, int atomic) {
#ifdef HEAP_PROFILE
    if (heap_live_every && heap_allocated >= heap_live_next)
        heap_look_live();
    size_t words = (bytes + HEAP_WORD - 1) / HEAP_WORD;
    heap_sized[words < 1 ? 0 : words > 4 ? 3 : words - 1]++;
    heap_atomic += atomic != 0;
    heap_allocated += bytes;
#else
    (void)bytes, (void)atomic;
#endif
}

#ifdef HEAP_HEADER
enum { HEAP_EXTRA = sizeof(uintptr_t) };
#else
enum { HEAP_EXTRA = 0 };
#endif

#if defined(HEAP_VELLUM)
#include "heap_vellum.h"
#elif defined(HEAP_BDW)
#include "heap_bdw.h"
#elif defined(HEAP_MALLOC)
#include "heap_malloc.h"
#else
#error "which heap: -DHEAP_VELLUM, -DHEAP_BDW or -DHEAP_MALLOC"
#endif

/* Describes `type`: `pointers` has the bit of each word that holds a pointer or null. */
#define HEAP_TYPE(type, pointers)                  \
    enum { type##_has_pointers = (pointers) != 0 }; \
    HEAP_DESCRIBE(type, pointers)                  \
    struct type##_is_described

/* An object of a described type. */
#define NEW(type) ((type *)(heap_count(sizeof(type), !type##_has_pointers), HEAP_MAKE(type)))
/* The same by a compiler that does not know the type's pointers. */
#define NEW_UNTYPED(type) ((type *)(heap_count(sizeof(type), 0), heap_untyped(sizeof(type) + HEAP_EXTRA)))
/* `count` values without pointers, undefined. */
#define NEW_ATOMIC(type, count) \
    ((type *)(heap_count((count) * sizeof(type), 1), heap_atomic_array((count) * sizeof(type) + HEAP_EXTRA)))
/* `count` pointers, all null. */
#define NEW_POINTERS(type, count) \
    ((type **)(heap_count((count) * sizeof(type *), 0), heap_pointers((count) * sizeof(type *) + HEAP_EXTRA)))
/* Stores a pointer into an object of the heap that may be older than the last allocation: `SET(cell->next, value)`. */
#define SET(field, value) ((void)sizeof((field) = (value)), heap_store(&(field), (value)))

static uint64_t heap_begun_cpu, heap_begun_wall;

/* Figures of the client's own. */
enum { HEAP_TOLD_MAX = 4 };
static struct {
    const char *name;
    double value;
} heap_told[HEAP_TOLD_MAX];
static int heap_told_count;

static inline void heap_tell(const char *name, double value) {
    heap_demand(heap_told_count < HEAP_TOLD_MAX, "heap.h: too many figures");
    heap_told[heap_told_count].name = name;
    heap_told[heap_told_count++].value = value;
}

/* Reads the command line and makes the heap. Words a client takes for itself it reads with heap_word. */
static inline void heap_begin(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "scale=%u", &heap_scale) == 1 || sscanf(argv[i], "heap=%u", &heap_mib) == 1)
            continue;
        if (!strncmp(argv[i], "plan=", 5))
            heap_plan = argv[i] + 5;
        else if (!strncmp(argv[i], "after=", 6))
            heap_after = argv[i] + 6;
        else if (sscanf(argv[i], "markers=%u", &heap_markers) == 1)
            heap_demand(heap_markers > 0, "markers=N is at least one");
        else if (sscanf(argv[i], "slice=%u", &heap_slice_us) == 1)
            heap_watches = 1;
#ifdef HEAP_PROFILE
        else if (!strncmp(argv[i], "live=", 5))
            heap_live_every = strtoull(argv[i] + 5, NULL, 10) << 10;
#endif
        else if (!strchr(argv[i], '='))
            heap_fail("words are scale=PERCENT heap=MIB plan=NAME after=WHAT slice=US markers=N");
    }
    heap_open();
    heap_begun_cpu = heap_now(CLOCK_PROCESS_CPUTIME_ID);
    heap_begun_wall = heap_now(CLOCK_MONOTONIC);
}

/* The number behind `name=`, or `otherwise`. */
static inline unsigned long heap_word(int argc, char **argv, const char *name, unsigned long otherwise) {
    size_t length = strlen(name);
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], name, length) && argv[i][length] == '=')
            return strtoul(argv[i] + length + 1, NULL, 10);
    return otherwise;
}

/* `whole` units of work at scale 100, and at least one. */
static inline unsigned long heap_scaled(unsigned long whole) {
    unsigned long some = whole * heap_scale / 100;
    return some ? some : 1;
}

/* Prints the figures. `checksum` is the same under every heap; returns the status for main. */
static inline int heap_end(uint64_t checksum) {
    uint64_t cpu = heap_now(CLOCK_PROCESS_CPUTIME_ID) - heap_begun_cpu;
    uint64_t wall = heap_now(CLOCK_MONOTONIC) - heap_begun_wall;
    heap_figures is = {0};
    heap_close(&is);
    /* Collections, and everything else behind the inlined path of an allocation. The clock runs on while others have the processor: that
     * share is taken off. */
    double collector_ns = (double)(is.collections_ns + heap_sampled_ns * HEAP_SAMPLED) * (wall > cpu ? (double)cpu / (double)wall : 1.0);
    /* 48 bits are whole numbers to every reader of JSON. */
    printf("{\"checksum\": %llu, \"cpu_ns\": %llu, \"wall_ns\": %llu, \"collections\": %llu, \"collector_ns\": %llu, "
           "\"pause_max_ns\": %llu, \"heap_bytes\": %llu, \"peak_bytes\": %llu",
           (unsigned long long)(checksum & 0xffffffffffffu), (unsigned long long)cpu, (unsigned long long)wall,
           (unsigned long long)is.collections, (unsigned long long)collector_ns,
           (unsigned long long)is.pause_max_ns, (unsigned long long)is.heap_bytes,
           (unsigned long long)heap_resident("VmHWM"));
#ifdef HEAP_PROFILE
    printf(", \"objects_1\": %llu, \"objects_2\": %llu, \"objects_3\": %llu, \"objects_4\": %llu, \"atomic\": %llu, "
           "\"allocated_bytes\": %llu, \"live_bytes_max\": %llu, \"live_objects\": %.1f",
           (unsigned long long)heap_sized[0], (unsigned long long)heap_sized[1], (unsigned long long)heap_sized[2],
           (unsigned long long)heap_sized[3], (unsigned long long)heap_atomic, (unsigned long long)heap_allocated,
           (unsigned long long)is.live_bytes_max,
           is.live_samples ? (double)is.live_objects / (double)is.live_samples : 0.0);
#endif
    if (heap_watches)
        printf(", \"pause_cpu_max_ns\": %llu, \"pauses_long\": %llu", (unsigned long long)heap_pause_cpu_max,
               (unsigned long long)heap_pauses_long);
    for (int i = 0; i < heap_told_count; i++)
        printf(", \"%s\": %.4f", heap_told[i].name, heap_told[i].value);
    heap_print_more();
    printf("}\n");
    return 0;
}

#endif
