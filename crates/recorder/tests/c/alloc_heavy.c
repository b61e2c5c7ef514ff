/* A program that does little but allocate: a working set of small blocks, each round one of them replaced by another of another size
 * and written to. Prints how many of each operation it did, so that exact counts can be distinguished from others.
 *
 * usage: alloc_heavy ROUNDS [THREADS]
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 1024, MAX_BYTES = 512 };

static long rounds;

static void *work(void *seed) {
    char *blocks[BLOCKS] = {0};
    uint64_t x = (uintptr_t)seed * 2654435761u + 88172645463325252u;
    for (long i = 0; i < rounds; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        char **slot = &blocks[x % BLOCKS];
        size_t bytes = 16 + (x >> 32) % (MAX_BYTES - 16);
        free(*slot);
        *slot = malloc(bytes);
        (*slot)[0] = (*slot)[bytes - 1] = 1;
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return NULL;
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? atol(argv[1]) : 1000000;
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    pthread_t ids[64];
    for (intptr_t i = 1; i < threads && i < 64; i++)
        pthread_create(&ids[i], NULL, work, (void *)(i + 1));
    work((void *)1);
    for (int i = 1; i < threads && i < 64; i++)
        pthread_join(ids[i], NULL);
    printf("malloc %ld free %ld\n", rounds * threads, (rounds + BLOCKS) * threads);
    return 0;
}
