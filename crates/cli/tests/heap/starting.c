/* Threads whose first blocks are large, and many threads that start at once and allocate. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static void *volatile kept;

static void *large(void *none)
{
    char *block = malloc(8 * MIB); /* large */
    memset(block, 1, 8 * MIB);
    kept = block;
    return none;
}

static void *small(void *none)
{
    for (int i = 0; i < 1000; i++)
        kept = malloc(1000); /* small */
    return none;
}

static void run(int count, void *(*work)(void *))
{
    static pthread_t threads[100];
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    run(8, large);
    run(100, small);
    return 0;
}
