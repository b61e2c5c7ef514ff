/* The random operations of a thread: allocate, link, check, drop, free, resize, wait, collect, open a
 * library, fork. */
#include "stress.h"
#include <dlfcn.h>
#include <errno.h>
#include <gc_mark.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

_Atomic(struct thing *) shared[SHARED];
const char *library_path;
static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;

int is_loader_free(void)
{
    return pthread_mutex_trylock(&library) == 0;
}

void forget_locks(void)
{
    pthread_mutex_init(&library, NULL);
    forget_threads();
}

/* ---- Blocking regions ---- */
static void *a_few_steps(void *argument)
{
    struct local *local = argument;
    steps(local, 1 + below(local, 30));
    return local->slot[0];
}

static void sleep_shortly(void)
{
    struct timespec time = { 0, 100000 };
    nanosleep(&time, NULL);
}

static void poll_nothing(void)
{
    poll(NULL, 0, 1);
}

static void *wait_somehow(void *argument)
{
    struct local *local = argument;
    switch (below(local, 4)) {
    case 0: let_be_cancelled(local, sleep_shortly); break;
    case 1: let_be_cancelled(local, poll_nothing); break;
    case 2: sched_yield(); break;
    default: {
        /* A read that is resumed, or says that it was interrupted. */
        int ends[2];
        char byte = 7;
        CHECK(pipe(ends) == 0 && write(ends[1], &byte, 1) == 1);
        ssize_t got;
        while ((got = read(ends[0], &byte, 1)) < 0)
            CHECK_OF(errno == EINTR, errno);
        CHECK(got == 1 && byte == 7 && close(ends[0]) == 0 && close(ends[1]) == 0);
    }
    }
    if (below(local, 2)) {
        /* What it returns is known here only, until it is looked at. */
        struct thing *thing = GC_call_with_gc_active(a_few_steps, local);
        if (thing)
            look_at_one(thing);
    }
    return local;
}

/* ---- Signals held off for a while. The plain function blocks the collector's as well. ---- */
static void hold_signals_off(struct local *local)
{
    sigset_t all, before;
    sigfillset(&all);
    int (*mask)(int, const sigset_t *, sigset_t *) = below(local, 2) ? GC_pthread_sigmask : pthread_sigmask;
    CHECK(mask(SIG_SETMASK, &all, &before) == 0);
    for (int i = 0; i < 50; i++)
        local->slot[below(local, SLOTS)] = make(local);
    CHECK(mask(SIG_SETMASK, &before, NULL) == 0);
}

/* ---- Roots in a library, and in memory of malloc's ---- */
static void open_a_library(struct local *local)
{
    if (pthread_mutex_trylock(&library))
        return;
    void *handle = below(local, 2) ? GC_dlopen(library_path, RTLD_NOW) : dlopen(library_path, RTLD_NOW);
    CHECK_OF(handle, below(local, 2));
    void **(*find)(size_t *) = (void **(*)(size_t *))dlsym(handle, "library_roots");
    CHECK(find);
    size_t count;
    struct thing **kept = (struct thing **)find(&count);
    for (size_t i = 0; i < count; i++)
        CHECK(!kept[i]);
    for (size_t i = 0; i < count; i++)
        kept[i] = make(local);
    if (below(local, 3) == 0)
        GC_gcollect();
    for (int i = 0; i < 200; i++)
        make_and_free(local);
    for (size_t i = 0; i < count; i++)
        look(local, kept[i]);
    CHECK(dlclose(handle) == 0);
    pthread_mutex_unlock(&library);
}

static void add_roots(struct local *local)
{
    enum { COUNT = 20 };
    struct thing **outside = malloc(COUNT * sizeof *outside);
    memset(outside, 0, COUNT * sizeof *outside);
    GC_add_roots(outside, outside + COUNT);
    for (int i = 0; i < COUNT; i++)
        outside[i] = make(local);
    for (int i = 0; i < 60; i++)
        make(local);
    for (int i = 0; i < COUNT; i++)
        look(local, outside[i]);
    GC_remove_roots(outside, outside + COUNT);
    free(outside);
}

/* ---- The collector in the program's hands ---- */
static int never(void)
{
    return 1;
}

static void collect_somehow(struct local *local)
{
    switch (below(local, 8)) {
    case 0: GC_gcollect_and_unmap(); break;
    case 1: GC_try_to_collect(never); break;
    case 2:
        for (int i = 0; i < 20 && GC_collect_a_little(); i++)
            ;
        break;
    case 3:
        GC_disable();
        for (int i = 0; i < 100; i++)
            local->slot[below(local, SLOTS)] = make(local);
        GC_enable();
        break;
    case 4:
        GC_stop_world_external();
        for (volatile int i = 0; i < 1000; i++)
            ;
        GC_start_world_external();
        break;
    case 5: suspend_another(local); break;
    case 6: GC_invoke_finalizers(); break;
    default: GC_gcollect(); break;
    }
}

/* ---- A deep stack, each frame of which holds a thing. ---- */
static __attribute__((noinline)) void go_deep(struct local *local, unsigned depth)
{
    struct thing *volatile mine = make(local);
    if (depth)
        go_deep(local, depth - 1);
    look_at_one(mine);
}

void step(struct local *local)
{
    unsigned slot = below(local, SLOTS);
    struct thing *thing = local->slot[slot], *other = local->slot[below(local, SLOTS)];
    switch (below(local, 1000)) {
    case 0 ... 449: local->slot[slot] = make(local); break;
    case 450 ... 649:
        if (thing)
            look(local, thing);
        break;
    case 650 ... 699:
        if (thing)
            set_ref(thing, (int)below(local, REFS), below(local, 4) ? other : NULL);
        break;
    case 700 ... 739: local->slot[slot] = NULL; break;
    case 740 ... 769: make_and_free(local); break;
    case 770 ... 809:
        if (thing)
            ask_to_finalize(local, thing);
        break;
    case 810 ... 849: use_a_link(local); break;
    case 850 ... 869:
        if (thing)
            toggle(thing);
        break;
    case 870 ... 899: resize_buffer(local); break;
    case 900 ... 939: atomic_store(&shared[below(local, SHARED)], thing); break;
    case 940 ... 964: local->slot[slot] = atomic_load(&shared[below(local, SHARED)]); break;
    case 965 ... 974: local->slot[slot] = atomic_exchange(&resurrected[below(local, 8)], NULL); break;
    case 975 ... 980: CHECK(GC_do_blocking(wait_somehow, local) == local); break;
    case 981 ... 984: hold_signals_off(local); break;
    case 985 ... 986: go_deep(local, below(local, 200)); break;
    case 987 ... 988: add_roots(local); break;
    case 989 ... 991: collect_somehow(local); break;
    case 992:
        if (!local->is_child)
            open_a_library(local);
        break;
    case 993:
        if (below(local, 4) == 0)
            fork_a_child(local);
        break;
    default: sched_yield(); break;
    }
}

void steps(struct local *local, unsigned count)
{
    while (count--)
        step(local);
}
