/* A library that comes and goes. With PAD its functions have larger frames. */
#include <stdlib.h>

#ifndef PAD
#define PAD 16
#endif

static void *volatile kept[300];

__attribute__((noinline)) static void *taken(int bytes) {
    volatile char frame[PAD];
    frame[0] = (char)bytes;
    void *block = malloc(bytes + frame[0] % 2);
    frame[PAD - 1] = frame[0];
    return block;
}

void work(void) {
    for (int i = 0; i < 300; i++)
        kept[i] = taken(5000);
    for (int i = 0; i < 300; i++)
        free(kept[i]);
}
