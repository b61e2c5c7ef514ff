/* Tests of threads that allocate, wait in blocking regions and end, while others collect. */
#define GC_THREADS
#include "check.h"
#include <gc.h>
#include <stdint.h>
#include <string.h>

enum { THREADS = 6, ROUNDS = 60, LENGTH = 300 };
#include "lists.h"

static void *wait_a_little(void *argument)
{
    for (volatile int i = 0; i < 20000; i++)
        ;
    return argument;
}

static void *make_a_list(void *argument)
{
    return list_of((long)argument);
}

/* In a blocking region, which may use the heap only by GC_call_with_gc_active(). */
static void *turn_around(void *argument)
{
    struct cell *list = GC_call_with_gc_active(make_a_list, argument);
    return GC_call_with_gc_active(make_a_list, argument) ? list : NULL;
}

static void *body(void *argument)
{
    long seed = (long)argument;
    for (int round = 0; round < many(ROUNDS); round++) {
        struct cell *list = list_of(seed);
        CHECK(GC_do_blocking(wait_a_little, list) == list);
        if (round % 9 == 0)
            CHECK(GC_do_blocking(turn_around, argument));
        if (round % 7 == 0)
            GC_gcollect();
        check(list, seed);
    }
    return list_of(seed);
}

static void *with_base(struct GC_stack_base *base, void *argument)
{
    CHECK((char *)base->mem_base > (char *)&base);
    return argument;
}

/* Lists are cleared except for their links, and kept parts are intact, however often other threads collect. */
static void *takes_lists(void *seed)
{
    enum { LISTS = 2000, LISTS_EAGER = 20, KEPT = 64, SIZES = 300 };
    uintptr_t taken = 0;
    uintptr_t **kept = GC_MALLOC(KEPT * sizeof *kept);
    int lists = getenv("VELLUM_GC_EAGER") ? LISTS_EAGER : LISTS;
    for (int round = 0; round < lists; round++) {
        size_t bytes = 16 + (size_t)(round * 7 + (long)seed * 13) % SIZES;
        uintptr_t *next;
        for (uintptr_t *object = GC_malloc_many(bytes); object; object = next, taken++) {
            next = GC_NEXT(object);
            CHECK(!object[1]);
            object[0] = taken;
            object[1] = ~taken;
            uintptr_t *old = kept[(size_t)round * 31 % KEPT];
            CHECK(!old || old[1] == ~old[0]);
            kept[taken % KEPT] = object;
        }
        if (round % 100 == 0)
            GC_gcollect();
    }
    return NULL;
}

int main(void)
{
    GC_INIT();
    GC_allow_register_threads();
    struct GC_stack_base base;
    CHECK(GC_get_stack_base(&base) == GC_SUCCESS && (char *)base.mem_base > (char *)&base);
    /* The thread that starts the heap is already registered. */
    CHECK(GC_thread_is_registered() && GC_register_my_thread(&base) == GC_DUPLICATE);
    CHECK(GC_call_with_stack_base(with_base, &base) == &base);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, body, (void *)(i * 1000)) == 0);
    body((void *)77);
    for (long i = 0; i < THREADS; i++) {
        void *list;
        CHECK(pthread_join(threads[i], &list) == 0);
        check(list, i * 1000);
    }
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, takes_lists, (void *)i) == 0);
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    sigset_t all;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    sigset_t now;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0);
    CHECK(sigismember(&now, SIGUSR1) && !sigismember(&now, GC_get_suspend_signal()));
    puts("threads: as promised");
    return 0;
}
