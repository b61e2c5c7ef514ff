/* Forked children: each checks the objects it inherits, then works alone, starts threads, forks again, or
 * executes a program. */
#include "stress.h"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Seconds after which a child counts as hung. */
enum { CHILD_LIMIT_S = 100, CHILD_STEPS = 300, GENERATIONS = 2 };

static void *in_child(void *argument)
{
    struct local *parent = argument, local = { .chance = chance(parent), .is_child = 1 };
    _Atomic(struct thing *) slots[SLOTS];
    memset(slots, 0, sizeof slots);
    local.slot = slots;
    local.cell = calloc(CELLS, sizeof *local.cell);
    steps(&local, CHILD_STEPS / 2);
    forget_links(&local);
    free(local.cell);
    return slots[0];
}

static _Noreturn void child(struct local *local)
{
    static int generation;
    alarm(CHILD_LIMIT_S);
    /* exit() takes locks that opening and closing libraries takes too, and the C library leaves them as another thread held them (glibc 2.36): such a child
     * never ends, whatever collects, nor do its own. */
    static int may_exit = 1;
    may_exit &= is_loader_free();
    forget_locks();
    local->is_child = 1;
    local->may_be_cancelled = 0;
    local->may_fork = ++generation < GENERATIONS;
    local->chance = mixed(local->chance + 1);
    for (int i = 0; i < SLOTS; i++)
        if (local->slot[i])
            look(local, local->slot[i]);
    for (int i = 0; i < SHARED; i++) {
        struct thing *thing = atomic_load(&shared[i]);
        if (thing)
            look(local, thing);
    }
    unsigned what = below(local, 6);
    if (what == 0) {
        char text[24];
        snprintf(text, sizeof text, "%llu", (unsigned long long)chance(local));
        execl("/proc/self/exe", "stress", "as_a_child", text, library_path, (char *)NULL);
        CHECK(!"exec");
    }
    if (what == 1)
        _exit(0);
    steps(local, CHILD_STEPS);
    if (what == 2) {
        pthread_t thread;
        void *result;
        CHECK(GC_pthread_create(&thread, NULL, in_child, local) == 0);
        CHECK(GC_pthread_join(thread, &result) == 0);
        if (result)
            look(local, result);
    }
    GC_gcollect();
    for (int i = 0; i < SLOTS; i++)
        if (local->slot[i])
            look(local, local->slot[i]);
    if (what == 3 && may_exit)
        exit(0);
    _exit(0);
}

static void *wait_for(void *argument)
{
    int status = 0;
    pid_t pid = *(pid_t *)argument;
    while (waitpid(pid, &status, 0) != pid)
        ;
    CHECK_OF(status == 0, status);
    return NULL;
}

void fork_a_child(struct local *local)
{
    if (!local->may_fork)
        return;
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        child(local);
    if (below(local, 2))
        GC_do_blocking(wait_for, &pid);
    else
        wait_for(&pid);
}
