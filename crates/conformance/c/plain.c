/* An ordinary program to put under a debugger or a checker. `plain leak` loses 123 bytes, `plain overflow` writes past a
 * block, `plain after` reads a freed one. */
#include "check.h"
#include <pthread.h>

__attribute__((noinline)) static char *make(size_t size)
{
    char *block = malloc(size);
    memset(block, 'x', size);
    return block;
}

static void *in_thread(void *argument)
{
    free(make(5000));
    return argument;
}

__attribute__((noinline)) static int middle(int value)
{
    char *block = make(100);
    value += block[50];
    free(block);
    return value;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 2;
    char *large = make(3 * MIB);
    large = realloc(large, 5 * MIB);
    free(large);
    volatile size_t size = 123;
    if (argc > 1 && strcmp(argv[1], "leak") == 0)
        make(size);
    if (argc > 1 && strcmp(argv[1], "overflow") == 0) {
        char *block = make(size);
        block[size] = 1;
        free(block);
    }
    if (argc > 1 && strcmp(argv[1], "after") == 0) {
        volatile char *block = make(size);
        free((char *)block);
        printf("%d\n", block[5]);
    }
    printf("%d\n", middle(argc));
    return 0;
}
