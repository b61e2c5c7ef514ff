/* A run of the workload: stress SEED LIBRARY [ROUNDS [THREADS [STEPS [DISCOVER]]]]. After each round of
 * the same work all objects are dropped. The figures of the later half of the rounds may not exceed those
 * of the first half by more than chance. The last line of output is "done". */
#include "stress.h"
#include <string.h>

uint64_t seed;

void not_so(const char *file, int line, const char *what, long value)
{
    fprintf(stderr, "seed %llu: %s:%d: not so: %s (%ld)\n", (unsigned long long)seed, file, line, what, value);
    abort();
}

static unsigned threads, count;

static __attribute__((noinline)) void clear_stack(void)
{
    volatile char stack[64 << 10];
    memset((char *)stack, 0, sizeof stack);
}

static void round_of(struct local *local)
{
    run_threads(local, threads, count);
    memset(local->slot, 0, SLOTS * sizeof *local->slot);
}

/* Lets go of everything, until collections find no more to finalize. */
static void let_go(void)
{
    memset(shared, 0, sizeof shared);
    drop_toggled(1);
    for (long before = -1, same = 0; same < 3;) {
        memset(resurrected, 0, sizeof resurrected);
        clear_stack();
        GC_gcollect();
        GC_invoke_finalizers();
        same = before == not_finalized() ? same + 1 : 0;
        before = not_finalized();
    }
    drop_toggled(0);
}

static long number(int argc, char **argv, int index, long otherwise)
{
    return argc > index ? atol(argv[index]) : otherwise;
}

int main(int argc, char **argv)
{
    int is_a_child = argc > 3 && strcmp(argv[1], "as_a_child") == 0;
    if (argc < 3) {
        fprintf(stderr, "usage: %s SEED LIBRARY [ROUNDS [THREADS [STEPS [DISCOVER]]]]\n", argv[0]);
        return 2;
    }
    seed = strtoull(argv[is_a_child ? 2 : 1], NULL, 10);
    library_path = argv[is_a_child ? 3 : 2];
    long rounds = is_a_child ? 1 : number(argc, argv, 3, 6);
    threads = is_a_child ? 1 : (unsigned)number(argc, argv, 4, 4);
    count = is_a_child ? 100 : (unsigned)number(argc, argv, 5, 2000);
    may_discover = !is_a_child && number(argc, argv, 6, 1) != 0;
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;

    static struct local local;
    local.chance = seed;
    local.may_fork = !is_a_child;
    if (below(&local, 4) == 0)
        GC_set_all_interior_pointers(0);
    GC_INIT();
    GC_allow_register_threads();
    prepare_things();
    prepare_deaths(&local);
    prepare_signals();
    struct figures most = { 0 };
    for (long round = 0; round < rounds; round++) {
        with_own_slots(&local, round_of, 3);
        let_go();
        struct figures now = figures();
        printf("round %ld: %ld bytes in %ld objects alive, %ld resident, %ld mappings, %ld files, %ld threads, %ld not finalized\n", round, now.live_bytes, now.objects,
               now.resident_bytes, now.mappings, now.descriptors, now.threads, now.not_finalized);
        if (round >= (rounds + 1) / 2)
            check_growth(&most, &now);
        else
            most_of(&most, &now);
    }
    puts("done");
    return 0;
}
