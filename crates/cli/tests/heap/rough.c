/* What a profile must bear: threads that free each other's blocks, a signal handler that allocates and frees
   (where malloc was not interrupted), forks from all of that, libraries that come and go, and stacks of coroutines. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define SHELVES 512
#define THREADS 8
#define TURNS 60000
#define FORKS 20

static _Atomic(void *) shelves[SHELVES];
static _Atomic int handled, over;
static const char *library;

static void *take(unsigned *seed) {
    size_t bytes = rand_r(seed) % 64 ? rand_r(seed) % 3000 : rand_r(seed) % 300000;
    char *block = rand_r(seed) % 8 ? malloc(bytes) : calloc(1, bytes);
    if (bytes > 0)
        block[0] = block[bytes - 1] = 1;
    return block;
}

static void handler(int signal) {
    (void)signal;
    static unsigned seed = 7;
    void *block = take(&seed);
    free(atomic_exchange(&shelves[rand_r(&seed) % SHELVES], block));
    handled++;
}

static void turns(unsigned seed) {
    for (int turn = 0; turn < TURNS; turn++) {
        unsigned shelf = rand_r(&seed) % SHELVES;
        void *block = take(&seed);
        if (turn % 16 == 0)
            block = realloc(block, 1 + rand_r(&seed) % 60000);
        free(atomic_exchange(&shelves[shelf], block));
    }
}

static void *thread(void *number) {
    turns((unsigned)(size_t)number);
    return NULL;
}

static void *idle(void *nothing) {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    while (!over || !handled)
        usleep(100);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    return nothing;
}

static ucontext_t outside, inside;

static void coroutine(void) {
    turns(99);
    swapcontext(&inside, &outside);
}

int main(int argc, char **argv) {
    library = argc > 1 ? argv[1] : NULL;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    pthread_t handles;
    pthread_create(&handles, NULL, idle, NULL);
    struct itimerval often = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, thread, (void *)(i + 1));
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            unsigned seed = i;
            for (int turn = 0; turn < 2000; turn++)
                free(atomic_exchange(&shelves[rand_r(&seed) % SHELVES], take(&seed)));
            _exit(0);
        }
        int status;
        while (waitpid(child, &status, 0) < 0)
            ;
        if (status != 0) {
            printf("child: %x\n", status);
            return 1;
        }
        if (library) {
            void *opened = dlopen(library, RTLD_NOW);
            if (!opened) {
                puts(dlerror());
                return 1;
            }
            void (*work)(void) = (void (*)(void))dlsym(opened, "work");
            work();
            dlclose(opened);
        }
    }
    char *stack = malloc(32768);
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = 32768;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    over = 1;
    pthread_join(handles, NULL);
    struct itimerval never = {0};
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 0; i < SHELVES; i++)
        free(atomic_exchange(&shelves[i], NULL));
    puts(handled > 0 ? "whole" : "no signal came");
    return 0;
}
