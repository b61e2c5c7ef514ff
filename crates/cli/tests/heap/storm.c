/* One storm at a time, by its name: a thousand threads, handlers that interrupt malloc, forks from threads that
   allocate or are held up within malloc, libraries that come and go beside them, coroutines, and stacks that end
   at a guard page. Each checks that its blocks keep what was written into them, and ends with "whole". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define SHELVES 256
#define MANY 1000
#define FEW 4
#define STACK (64 * 1024)
/* Seconds after which it hangs, and is killed. */
#define DEADLINE 300

extern char **environ;
static _Atomic(uint64_t *) shelves[SHELVES];
static _Atomic int over, handled;

static _Noreturn void fail(const char *why) {
    printf("%s\n", why);
    fflush(stdout);
    _exit(1);
}

/* A block says its own size and address, so that one that is handed out twice is found out. */
static uint64_t *filled(unsigned *seed) {
    size_t words = 3 + rand_r(seed) % (rand_r(seed) % 40 ? 90 : 9000);
    uint64_t *block = rand_r(seed) % 4 ? malloc(words * 8) : calloc(words, 8);
    if (!block)
        fail("no memory");
    block[0] = words;
    block[1] = block[words - 1] = (uintptr_t)block;
    return block;
}

static void emptied(uint64_t *block) {
    if (!block)
        return;
    if (block[1] != (uintptr_t)block || block[block[0] - 1] != block[1])
        fail("a block has lost its contents");
    block[1] = 0;
    free(block);
}

static void turn(unsigned *seed) {
    emptied(atomic_exchange(&shelves[rand_r(seed) % SHELVES], filled(seed)));
}

static void turns(unsigned seed, int count) {
    for (int i = 0; i < count; i++)
        turn(&seed);
}

static void *worker(void *number) {
    unsigned seed = (unsigned)(uintptr_t)number;
    while (!over)
        turn(&seed);
    return NULL;
}

static pthread_barrier_t all_there;

static void *one_of_many(void *number) {
    turns((unsigned)(uintptr_t)number, 50);
    pthread_barrier_wait(&all_there);
    turns((unsigned)(uintptr_t)number + MANY, 100);
    return NULL;
}

static void start(pthread_t *threads, int count, void *(*what)(void *)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], &attributes, what, (void *)(uintptr_t)(i + 1)))
            fail("no thread");
}

static void join(pthread_t *threads, int count) {
    over = 1;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void threads(void) {
    static pthread_t many[MANY];
    pthread_barrier_init(&all_there, NULL, MANY);
    start(many, MANY, one_of_many);
    join(many, MANY);
}

/* Interrupts malloc and free themselves. It may not allocate: no malloc can be called by a handler that interrupts it. */
static void handler(int signal) {
    volatile uint64_t words[500];
    for (int i = 0; i < 500; i++)
        words[i] = (uint64_t)signal * i;
    handled += words[499] == (uint64_t)signal * 499;
}

static void handlers(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    pthread_t some[FEW];
    start(some, FEW, worker);
    unsigned seed = 5;
    for (int i = 0; i < 20000; i++) {
        pthread_kill(some[i % FEW], SIGPROF);
        turn(&seed);
    }
    while (!handled)
        sched_yield();
    join(some, FEW);
}

static void ended(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0)
        ;
    if (status != 0)
        fail("a child failed");
}

static void forks(void) {
    pthread_t some[FEW];
    start(some, FEW, worker);
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child == 0) {
            over = 1;
            /* What others were about to free is nobody's here: only new blocks are looked at. */
            unsigned seed = i;
            for (int k = 0; k < 500; k++)
                emptied(filled(&seed));
            if (i % 8 == 0) {
                pid_t grandchild = fork();
                if (grandchild == 0) {
                    emptied(filled(&seed));
                    _exit(0);
                }
                ended(grandchild);
            }
            _exit(0);
        }
        ended(child);
        if (i % 8 == 0) {
            char *words[] = {"true", NULL};
            if (posix_spawnp(&child, "true", NULL, NULL, words, environ) == 0)
                ended(child);
        }
    }
    join(some, FEW);
}

static _Atomic int forking;

/* Holds up whatever it interrupts, malloc and its locks, until a fork is over; for longer than a fork waits for
   another thread, but not for ever: some locks it must have. */
static void holding(int signal) {
    (void)signal;
    for (int i = 0; i < 3000 && forking; i++)
        usleep(1000);
}

static void forks_beside_handlers(void) {
    struct sigaction action = {.sa_handler = holding, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    pthread_t some[FEW];
    start(some, FEW, worker);
    for (int i = 0; i < 2; i++) {
        forking = 1;
        for (int k = 0; k < FEW; k++)
            pthread_kill(some[k], SIGPROF);
        pid_t child = fork();
        if (child == 0) {
            unsigned seed = i;
            for (int k = 0; k < 500; k++)
                emptied(filled(&seed));
            _exit(0);
        }
        forking = 0;
        ended(child);
    }
    turns(5, 5000);
    join(some, FEW);
}

/* A library whose code is gone, and another's that lies where it was: stacks of either must not be taken for
   the other's. */
static void libraries(char **names) {
    pthread_t some[FEW];
    start(some, FEW, worker);
    for (int i = 0; i < 400; i++) {
        void *opened = dlopen(names[i % 2], RTLD_NOW);
        if (!opened)
            fail(dlerror());
        void (*work)(void) = (void (*)(void))dlsym(opened, "work");
        work();
        dlclose(opened);
    }
    join(some, FEW);
}

static ucontext_t outside, inside[MANY];

static void coroutine(int number) {
    for (int i = 0; i < 10; i++) {
        turns(number * 10 + i, 5);
        swapcontext(&inside[number], &outside);
    }
}

static char *stack_with_guards(void) {
    char *place = mmap(NULL, STACK + 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED || mprotect(place + 4096, STACK, PROT_READ | PROT_WRITE))
        fail("no stack");
    return place + 4096;
}

static void coroutines(void) {
    for (int i = 0; i < MANY; i++) {
        getcontext(&inside[i]);
        inside[i].uc_stack.ss_sp = stack_with_guards();
        inside[i].uc_stack.ss_size = STACK;
        inside[i].uc_link = &outside;
        makecontext(&inside[i], (void (*)(void))coroutine, 1, i);
    }
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < MANY; i++)
            swapcontext(&outside, &inside[i]);
}

/* Calls a function on another stack, whose last word is its return address: what the tables say lies above that
   is a page that cannot be read. */
__attribute__((noinline)) static void call_on(char *top, void (*what)(void)) {
    __asm__ volatile("movq %%rsp, %%rbx\n\tmovq %0, %%rsp\n\tcall *%1\n\tmovq %%rbx, %%rsp"
                     :
                     : "r"(top), "r"(what)
                     : "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

static void some_turns(void) {
    turns(1, 100);
}

static void guards(void) {
    for (int i = 0; i < 200; i++) {
        char *stack = stack_with_guards();
        call_on(stack + STACK, some_turns);
        munmap(stack - 4096, STACK + 2 * 4096);
    }
}

int main(int argc, char **argv) {
    alarm(DEADLINE);
    const char *storm = argc > 1 ? argv[1] : "";
    if (!strcmp(storm, "threads"))
        threads();
    else if (!strcmp(storm, "handlers"))
        handlers();
    else if (!strcmp(storm, "forks"))
        forks();
    else if (!strcmp(storm, "forks beside handlers"))
        forks_beside_handlers();
    else if (!strcmp(storm, "libraries") && argc > 3)
        libraries(argv + 2);
    else if (!strcmp(storm, "coroutines"))
        coroutines();
    else if (!strcmp(storm, "guards"))
        guards();
    else
        fail("no such storm");
    for (int i = 0; i < SHELVES; i++)
        emptied(atomic_exchange(&shelves[i], NULL));
    puts("whole");
    return 0;
}
