/* Threads that allocate, pass blocks on and fork; with a word, a misuse. Prints "whole" if every block kept what was
 * written to it. */
#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 6
#define ROUNDS 40000
#define SLOTS 512

static void *_Atomic shared[SLOTS];

static unsigned next(unsigned *state)
{
    *state ^= *state << 13, *state ^= *state >> 17, *state ^= *state << 5;
    return *state;
}

/* A block that says how large it is, and is full of a byte that follows from that. */
static void *filled(unsigned *state)
{
    size_t size = 16 + next(state) % (next(state) % 64 ? 600 : 400000);
    size_t *block;
    switch (next(state) % 4) {
    case 0: block = calloc(1, size); break;
    case 1: block = aligned_alloc(64, (size + 63) / 64 * 64); break;
    case 2: block = realloc(malloc(8), size); break;
    default: block = malloc(size);
    }
    if (!block) abort();
    memset(block + 1, (int)(size & 255), size - sizeof size);
    *block = size;
    return block;
}

static void checked(size_t *block)
{
    unsigned char *bytes = (unsigned char *)block;
    for (size_t at = sizeof *block; at < *block; at += 61)
        if (bytes[at] != (*block & 255)) abort();
    free(block);
}

static void *work(void *seed)
{
    unsigned state = (unsigned)(uintptr_t)seed;
    for (int round = 0; round < ROUNDS; round++) {
        void *old = __atomic_exchange_n((void **)&shared[next(&state) % SLOTS], filled(&state), __ATOMIC_ACQ_REL);
        if (old) checked(old);
    }
    return NULL;
}

static int threads_now(void)
{
    int found = 0;
    DIR *all = opendir("/proc/self/task");
    for (struct dirent *one; all && (one = readdir(all));) found += *one->d_name != '.';
    if (all) closedir(all);
    return found;
}

int main(int count, char **words)
{
    const char *misuse = count > 1 ? words[1] : "";
    if (!strcmp(misuse, "twice")) {
        void *volatile block = malloc(40);
        free(block), free(block);
        return 1;
    }
    if (!strcmp(misuse, "beyond")) {
        volatile char *block = malloc(24);
        block[24] = 1;
        free((void *)block);
        return 1;
    }
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            unsigned state = 77 + i;
            for (int j = 0; j < 1000; j++) checked(filled(&state));
            _exit(0);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status) return 2;
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++)
        if (shared[i]) checked(shared[i]);
    /* No thread is left that would keep rights the program gives up. One that was joined may take a moment to go. */
    for (int patience = 2000; threads_now() > 1; patience--) {
        if (patience == 0) return 4;
        usleep(1000);
    }
    FILE *other = popen("echo whole", "r");
    char line[16] = "";
    if (!other || !fgets(line, sizeof line, other) || pclose(other)) return 3;
    fputs(line, stdout);
    return 0;
}
