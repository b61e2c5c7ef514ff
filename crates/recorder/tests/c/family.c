/* Threads that come and go, forked children, and an end by a signal: nothing that was counted may be missing. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GENERATIONS = 30, THREADS = 8, ROUNDS = 1000, CHILDREN = 10, CHILD_ROUNDS = 500 };

static void *volatile kept;

static void *work(void *rounds) {
    for (long i = 0; i < (long)rounds; i++) {
        void *block = malloc(100); //= malloc=245000
        kept = block;
        free(block); //= free=245000
    }
    return NULL;
}

int main(void) {
    for (int generation = 0; generation < GENERATIONS; generation++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, work, (void *)ROUNDS);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < CHILDREN; i++) {
        if (fork() == 0) {
            work((void *)CHILD_ROUNDS);
            /* Without destructors, killed, and as another program. */
            if (i % 3 == 0)
                _exit(0);
            if (i % 3 == 1)
                kill(getpid(), SIGKILL);
            execl("/bin/true", "true", (char *)NULL);
        }
    }
    while (wait(NULL) > 0)
        ;
    kept = malloc(77); //= malloc=1
    *(volatile int *)0 = 1;
}
