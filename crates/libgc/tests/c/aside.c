/* Tests of threads in unusual states while others collect: in a handler on an alternate stack, suspended while they hold the allocation lock, in a
 * library that is being unloaded. Also: new objects at the addresses of dead checked ones, and forks while another thread is in the loader. */
#define _GNU_SOURCE
#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS
#include "check.h"
#include <dlfcn.h>
#include <gc.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 300, ALTSTACK = 64 << 10 };
#include "lists.h"

static void churn(void)
{
    for (int i = 0; i < many(50000); i++)
        memset(GC_MALLOC(16), 0xee, 16);
    GC_gcollect();
}

/* ---- In a handler on an alternate stack: pointers of the interrupted function lie on its own stack, or in registers saved on the alternate one. ---- */
static volatile int in_handler, may_leave;

static void handle(int signal)
{
    (void)signal;
    in_handler = 1;
    while (!may_leave)
        ;
}

static void *interrupted(void *argument)
{
    int where = (int)(size_t)argument;
    /* Addresses below all stacks, above them, and within this one. */
    char own[ALTSTACK], *apart = mmap(NULL, ALTSTACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = { .ss_sp = where ? own : apart, .ss_size = ALTSTACK };
    CHECK(apart != MAP_FAILED && sigaltstack(&stack, NULL) == 0);
    struct cell *list = list_of(where);
    raise(SIGUSR1);
    check(list, where);
    stack.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&stack, NULL) == 0 && munmap(apart, ALTSTACK) == 0);
    return argument;
}

static void run_interrupted(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = SA_ONSTACK;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (size_t where = 0; where < 2; where++) {
        pthread_t thread;
        in_handler = may_leave = 0;
        CHECK(GC_pthread_create(&thread, NULL, interrupted, (void *)where) == 0);
        while (!in_handler)
            usleep(100);
        for (int i = 0; i < 3; i++)
            churn();
        may_leave = 1;
        CHECK(GC_pthread_join(thread, NULL) == 0);
    }
}

/* ---- A thread that repeatedly takes the allocation lock is repeatedly suspended. ---- */
static volatile int ends;

static void *nothing(void *argument)
{
    return argument;
}

static void *locks(void *argument)
{
    while (!ends)
        CHECK(GC_call_with_alloc_lock(nothing, argument) == argument);
    return argument;
}

static void run_locks(void)
{
    extern void GC_suspend_thread(pthread_t), GC_resume_thread(pthread_t);
    pthread_t thread;
    CHECK(GC_pthread_create(&thread, NULL, locks, &thread) == 0);
    for (int i = 0; i < 2000; i++) {
        GC_suspend_thread(thread);
        GC_resume_thread(thread);
    }
    ends = 1;
    CHECK(GC_pthread_join(thread, NULL) == 0);
    ends = 0;
}

/* ---- A library is loaded and unloaded in a blocking region, for which no collection waits. ---- */
static void *opens(void *argument)
{
    while (!ends) {
        void *library = dlopen(argument, RTLD_NOW);
        CHECK(library && dlclose(library) == 0);
    }
    return NULL;
}

static void *opens_while_blocked(void *argument)
{
    return GC_do_blocking(opens, argument);
}

static void run_libraries(char *library)
{
    pthread_t thread;
    CHECK(GC_pthread_create(&thread, NULL, opens_while_blocked, library) == 0);
    for (int i = 0; i < 300; i++)
        GC_gcollect();
    ends = 1;
    CHECK(GC_pthread_join(thread, NULL) == 0);
    ends = 0;
}

/* ---- A fork while another thread holds the loader's lock. ---- */
static volatile int in_loader;

static int stay(struct dl_phdr_info *info, size_t bytes, void *data)
{
    (void)info, (void)bytes, (void)data;
    in_loader = 1;
    while (!ends)
        usleep(100);
    return 1;
}

static void *stays_in_the_loader(void *argument)
{
    dl_iterate_phdr(stay, NULL);
    return argument;
}

static void run_forks(void)
{
    static struct cell *list;
    list = list_of(11);
    pthread_t thread;
    /* The thread is not registered, or a collection of the parent would wait for it. */
    CHECK(pthread_create(&thread, NULL, stays_in_the_loader, NULL) == 0);
    while (!in_loader)
        usleep(100);
    ends = 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        churn();
        check(list, 11);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    ends = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(status == 0);
}

/* ---- The remains of checked objects are not headers of later objects. ---- */
static void run_checked(void)
{
    enum { COUNT = 3000 };
    static unsigned char *kept[COUNT];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++)
            CHECK(GC_debug_malloc(8 + (size_t)(i % 100), __FILE__, __LINE__));
        GC_gcollect();
        for (int i = 0; i < COUNT; i++) {
            kept[i] = GC_MALLOC_ATOMIC(47 + (size_t)(i % 100));
            /* Overwrites the place of the old program's part, behind the place of a header. */
            memset(kept[i] + 32, 0xaa, 15);
        }
        GC_gcollect();
        for (int i = 0; i < COUNT; i++)
            for (int j = 32; j < 47; j++)
                CHECK(kept[i][j] == 0xaa);
        memset(kept, 0, sizeof kept);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    GC_INIT();
    run_interrupted();
    run_locks();
    run_libraries(argv[1]);
    run_checked();
    run_forks();
    puts("aside: as promised");
    return 0;
}
