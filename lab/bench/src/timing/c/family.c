/* A program with threads and forked children, each of which does nothing but malloc and free.
 *
 * usage: family THREADS FORKS PAIRS
 *
 * Each thread, and then each child, does PAIRS of malloc(100) and free. Prints the processor time of the process and its children
 * as one line of JSON.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS_MAX = 64 };

static long pairs;

static void *work(void *nothing) {
    for (long i = 0; i < pairs; i++) {
        void *volatile block = malloc(100);
        free(block);
    }
    return nothing;
}

static double nanoseconds(int whose) {
    struct rusage used;
    getrusage(whose, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e9 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3;
}

int main(int argc, char **argv) {
    long threads = argc == 4 ? atol(argv[1]) : -1, forks = argc == 4 ? atol(argv[2]) : -1;
    if (threads < 0 || threads > THREADS_MAX || forks < 0) {
        fprintf(stderr, "usage: %s THREADS FORKS PAIRS, with at most %d threads\n", argv[0], THREADS_MAX);
        return 2;
    }
    pairs = atol(argv[3]);
    pthread_t ids[THREADS_MAX];
    for (long i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, work, NULL) != 0) {
            fprintf(stderr, "%s: thread %ld of %ld cannot be started\n", argv[0], i + 1, threads);
            return 1;
        }
    for (long i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    for (long i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child < 0) {
            perror("fork");
            return 1;
        }
        if (child == 0) {
            work(NULL);
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
    printf("{\"cpu_ns\": %.0f}\n", nanoseconds(RUSAGE_SELF) + nanoseconds(RUSAGE_CHILDREN));
    return 0;
}
