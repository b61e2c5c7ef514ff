/* Three faults, each at a line of its own: 20 MB leaked in small blocks, a peak of 257 MB, and three million blocks
   that live for a moment. */
#include <stdlib.h>

static void *volatile sink;

__attribute__((noinline)) static void leak(void) {
    sink = malloc(100); /* leak */
}

__attribute__((noinline)) static void peak(void) {
    char *block = malloc(257000000); /* peak */
    for (size_t at = 0; at < 257000000; at += 4096)
        block[at] = 1;
    free(block);
}

__attribute__((noinline)) static void temporary(void) {
    sink = malloc(40); /* temporary */
    free(sink);
}

int main(void) {
    for (int block = 0; block < 200000; block++)
        leak();
    peak();
    for (int block = 0; block < 3000000; block++)
        temporary();
    return 0;
}
