/* Declarations of a workload that uses all features of libgc at once, at random, and checks its objects.
 *
 *   main.c     a run: settings, rounds of threads, and the check that nothing grows from round to round
 *   steps.c    the random operations of a thread
 *   things.c   "things": objects of every kind that libgc can allocate, which can be checked
 *   deaths.c   finalizers, links, toggle references
 *   threads.c  threads started in every way, and signals at any moment
 *   forks.c    forked children
 *   figures.c  the figures that must not grow, such as resident memory
 *   library.c  a library that is opened and closed, with roots in its data
 *
 * The seed determines a run, except for the timing of threads. A failed check prints a line and aborts. */
#ifndef STRESS_H
#define STRESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS
#include <gc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern uint64_t seed;

_Noreturn void not_so(const char *file, int line, const char *what, long value);
#define CHECK_OF(condition, value)                                                                                                       \
    do {                                                                                                                                 \
        if (!(condition))                                                                                                                \
            not_so(__FILE__, __LINE__, #condition, (long)(value));                                                                       \
    } while (0)
#define CHECK(condition) CHECK_OF(condition, 0)

/* ---- Things ---- */
enum { REFS = 3, DEPTH = 30 };

enum sort {
    PLAIN, ATOMIC, UNCOLLECTABLE, OFF_PAGE, ALIGNED, TYPED, TYPED_ARRAY, KIND, BY_CLASS, DEBUG, FROM_A_LIST, DISCLAIMED, SORTS
};

struct thing {
    void *class; /* of BY_CLASS: for the collector */
    uint64_t number, check;
    uint32_t bytes; /* of text */
    uint16_t sort, depth;
    atomic_uint finalized; /* 0: nobody asked; 1: to be; 2: was */
    uint32_t unused;
    _Atomic(struct thing *) ref[REFS]; /* of KIND: in disguise */
    unsigned char text[];
};

/* What a thread has. Its slots are where the thread's sort says: on its stack, in static data, in an object. */
enum { SLOTS = 40, CELLS = 24 };
struct local {
    uint64_t chance;
    _Atomic(struct thing *) *slot;
    void **cell; /* links, in memory of malloc's */
    unsigned char *buffer; /* grows and shrinks; an object */
    size_t buffer_bytes;
    int is_child, may_fork, may_be_cancelled, is_slot_mine;
};

uint64_t mixed(uint64_t number);
uint64_t chance(struct local *local);
unsigned below(struct local *local, unsigned end);

void prepare_things(void);
struct thing *make(struct local *local);
/* Makes an object that nobody refers to, and frees it by hand. */
void make_and_free(struct local *local);
/* Whether the thing is as it was made, and so are some that it leads to. */
void look(struct local *local, struct thing *thing);
void look_at_one(struct thing *thing);
/* Whether the object begins where the thing does, with libgc, too. */
int is_whole(const struct thing *thing);
struct thing *get_ref(struct thing *thing, int index);
/* Has `thing` refer to `to`, unless chains would become too long. */
void set_ref(struct thing *thing, int index, struct thing *to);
void resize_buffer(struct local *local);

/* ---- Deaths ---- */
void prepare_deaths(struct local *local);
/* Has something done when the thing dies. */
void ask_to_finalize(struct local *local, struct thing *thing);
void use_a_link(struct local *local);
void forget_links(struct local *local);
void toggle(struct thing *thing);
/* From now on, or not, toggle references are let go of. */
void drop_toggled(int on);
/* Finalizers that were asked for and have not run. */
long not_finalized(void);
extern _Atomic(struct thing *) resurrected[8];

/* ---- Steps ---- */
enum { SHARED = 64 };
extern _Atomic(struct thing *) shared[SHARED];
extern const char *library_path;
void step(struct local *local);
void steps(struct local *local, unsigned count);
/* In a forked child: locks that others may have held are free. */
void forget_locks(void);
/* In a forked child, before that: whether no thread opened or closed a library as it was forked. */
int is_loader_free(void);

/* ---- Threads ---- */
enum { THREADS_MAX = 16 };
extern int may_discover;
void prepare_signals(void);
/* Runs a round of so many threads that make so many steps each, and joins them. */
void run_threads(struct local *local, unsigned threads, unsigned count);
/* Calls `where`, where the thread may end if it is one that is cancelled. Elsewhere it may not: it would leave files open and children behind. */
void let_be_cancelled(struct local *local, void (*where)(void));
/* Stops another thread for a moment. */
void suspend_another(struct local *local);
void forget_threads(void);
void with_own_slots(struct local *local, void (*body)(struct local *), int place);

/* ---- Forks ---- */
void fork_a_child(struct local *local);

/* ---- Figures ---- */
struct figures {
    long live_bytes, objects, resident_bytes, mappings, descriptors, threads, not_finalized;
};
struct figures figures(void);
/* Ends the process if `now` is beyond what `most` was by more than chance explains. */
void check_growth(const struct figures *most, const struct figures *now);
void most_of(struct figures *most, const struct figures *now);
#endif
