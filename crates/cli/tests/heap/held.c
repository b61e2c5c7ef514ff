/* Known amounts from known functions: a leak of small blocks, a large peak, blocks of many kinds, and blocks
   that live for a moment. The lines are named in heap.rs by the marks behind them. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define MEBI (1024 * 1024)
/* Blocks that live for a moment. */
#ifndef MOMENTS
#define MOMENTS 3000000
#endif

static void *volatile sink;

__attribute__((noinline)) static void leak(void) {
    sink = malloc(100); /* leaked */
}

__attribute__((noinline)) static char *whole(void) {
    char *block = malloc(257 * MEBI); /* large */
    block[0] = 1;
    return block;
}

__attribute__((noinline)) static void *zeroed(void) {
    return calloc(3, 700); /* zeroed */
}

__attribute__((noinline)) static void *aligned(void) {
    return memalign(256, 4096); /* aligned */
}

__attribute__((noinline)) static void *grown(void *old, size_t bytes) {
    return realloc(old, bytes); /* grown */
}

__attribute__((noinline)) static void momentary(void) {
    sink = malloc(40); /* momentary */
    free(sink);
}

__attribute__((noinline)) static void *piece(void) {
    return malloc(60000); /* piece */
}

int main(void) {
    static void *kept[10000];
    for (int i = 0; i < 20 * MEBI / 100; i++)
        leak();
    for (int i = 0; i < 10000; i++)
        kept[i] = zeroed();
    for (int i = 0; i < 10000; i++)
        free(kept[i]);
    for (int i = 0; i < 5000; i++)
        kept[i] = aligned();
    for (int i = 0; i < 500; i++)
        kept[5000 + i] = piece();
    char *line = NULL;
    for (size_t bytes = 16; bytes <= 8 * MEBI; bytes *= 2)
        line = grown(line, bytes);
    char *peak = whole();
    free(peak);
    for (int i = 0; i < MOMENTS; i++)
        momentary();
    return 0;
}
