/* Tests of control over the world: changing stacks, suspending threads, stopping all threads, forking. */
#define _GNU_SOURCE
#define GC_THREADS
#include "check.h"
#include <gc.h>
#include <gc_mark.h>
#include <javaxfc.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { LENGTH = 1000, STACK = 256 << 10 };
#include "lists.h"

static void churn(void)
{
    for (int i = 0; i < many(100000); i++)
        memset(GC_MALLOC(32), 0xee, 32);
    GC_gcollect();
}

/* ---- Two coroutines and the initial stack: each has a list to which only its own stack points. ---- */
static ucontext_t contexts[3];
static char *stacks[3], *bottoms[3], *tops[3];
static int current, by_function, rounds;
static GC_push_other_roots_proc before;

static void push_other_stacks(void)
{
    before();
    for (int i = 0; i < 3; i++)
        if (i != current && tops[i])
            GC_push_all_eager(tops[i], bottoms[i]);
}

static __attribute__((noinline)) void go_to(int next)
{
    int from = current;
    /* Registers are in the static context; everything above this frame is on the stack. */
    tops[from] = (char *)__builtin_frame_address(0) - 512;
    current = next;
    struct GC_stack_base base = { bottoms[next] };
    if (by_function)
        GC_set_stackbottom(NULL, &base);
    else
        GC_stackbottom = bottoms[next];
    swapcontext(&contexts[from], &contexts[next]);
}

static void coroutine(int which)
{
    for (;;) {
        struct cell *list = list_of(which * 100000);
        go_to((which + 1) % 3);
        churn();
        check(list, which * 100000);
        list = NULL;
        rounds++;
    }
}

static void run_coroutines(void)
{
    struct GC_stack_base base;
    CHECK(GC_get_stack_base(&base) == GC_SUCCESS && GC_stackbottom == base.mem_base);
    bottoms[0] = base.mem_base;
    for (int i = 1; i < 3; i++) {
        stacks[i] = malloc(STACK);
        bottoms[i] = stacks[i] + STACK;
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = STACK;
        makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
    }
    before = GC_get_push_other_roots();
    GC_set_push_other_roots(push_other_stacks);
    for (int i = 0; i < 6; i++) {
        by_function = i >= 3;
        struct cell *list = list_of(-5);
        go_to(1);
        check(list, -5);
    }
    CHECK(rounds >= 8 && current == 0 && GC_stackbottom == bottoms[0]);
    GC_set_push_other_roots(before);
    tops[1] = tops[2] = NULL;
}

/* ---- Threads. ---- */
static volatile long ticks;
static volatile int ends;

static void *tick(void *argument)
{
    struct cell *list = list_of(3);
    while (!ends) {
        ticks++;
        if (ticks % 1024 == 0)
            GC_MALLOC(40);
    }
    check(list, 3);
    return argument;
}

static void wait_for_ticks(void)
{
    for (long from = ticks; ticks < from + 2000;)
        usleep(100);
}

/* ---- A suspended thread never holds the allocation lock, whatever it was doing. ---- */
static void *in_the_lock(void *unused)
{
    (void)unused;
    return NULL;
}

static void *take_the_lock(void *unused)
{
    (void)unused;
    while (!ends)
        GC_call_with_alloc_lock(in_the_lock, NULL);
    return NULL;
}

static void suspend_while_locked(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, take_the_lock, NULL) == 0);
    for (int i = 0; i < many(5000); i++) {
        GC_suspend_thread(thread);
        GC_call_with_alloc_lock(in_the_lock, NULL);
        GC_resume_thread(thread);
    }
    ends = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    ends = 0;
}

int main(void)
{
    GC_set_suspend_signal(GC_get_suspend_signal() - 1);
    GC_INIT();
    CHECK(GC_get_suspend_signal() == GC_get_thr_restart_signal());
    run_coroutines();
    suspend_while_locked();

    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, tick, NULL) == 0);
    wait_for_ticks();
    CHECK(!GC_is_thread_suspended(thread));
    GC_suspend_thread(thread);
    GC_suspend_thread(thread);
    CHECK(GC_is_thread_suspended(thread));
    long stood = ticks;
    churn();
    CHECK(ticks == stood);
    GC_resume_thread(thread);
    CHECK(!GC_is_thread_suspended(thread));
    wait_for_ticks();
    GC_stop_world_external();
    stood = ticks;
    for (volatile int i = 0; i < 1000000; i++)
        ;
    int is_still = ticks == stood;
    GC_start_world_external();
    CHECK(is_still);
    wait_for_ticks();
    GC_alloc_lock();
    pid_t child = fork();
    if (child == 0) {
        GC_alloc_unlock();
        churn();
        _exit(0);
    }
    GC_alloc_unlock();
    int status;
    ends = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    puts("world: as promised");
    return 0;
}
