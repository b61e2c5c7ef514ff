/* injected: a little of everything, for a kernel that refuses. Memory that is refused is done without; memory given before keeps its contents. Ends with
   "done", or says what was wrong. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 24
#define STEPS 160

static void bad(const char *what) {
    char line[100];
    int len = snprintf(line, sizeof line, "bad contents: %s\n", what);
    if (write(1, line, len) != len) _exit(4);
    _exit(3);
}
static uint64_t mixed(uint64_t x) { x += 0x9e3779b97f4a7c15u; x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u; return x ^ x >> 27; }
static void fill(unsigned char *block, size_t bytes, unsigned char with) {
    for (size_t i = 0; i < bytes; i += 512) block[i] = with;
    block[bytes - 1] = with;
}
static void check(const unsigned char *block, size_t bytes, unsigned char with, const char *what) {
    for (size_t i = 0; i < bytes; i += 512) if (block[i] != with) bad(what);
    if (block[bytes - 1] != with) bad(what);
}

static void *work(void *argument) {
    uint64_t x = (uintptr_t)argument;
    unsigned char *blocks[BLOCKS] = {0}, with[BLOCKS] = {0};
    size_t sizes[BLOCKS] = {0};
    for (int step = 0; step < STEPS; step++) {
        x = mixed(x);
        size_t b = x % BLOCKS, bytes = 1 + (x >> 20) % ((x >> 8) % 3 ? 3000 : 2000000);
        if (blocks[b]) check(blocks[b], sizes[b], with[b], "before");
        switch ((x >> 56) % 4) {
        case 0: free(blocks[b]); blocks[b] = NULL; break;
        case 1: {
            free(blocks[b]);
            blocks[b] = calloc(bytes, 1);
            if (blocks[b]) { sizes[b] = bytes; check(blocks[b], bytes, 0, "zeros"); fill(blocks[b], bytes, with[b] = 1 + step % 200); }
            break;
        }
        default: {
            unsigned char *moved = realloc(blocks[b], bytes);
            if (!moved) break;
            if (blocks[b]) { size_t kept = sizes[b] < bytes ? sizes[b] : bytes; for (size_t i = 0; i + 1 < kept; i += 512) if (moved[i] != with[b]) bad("moved"); }
            blocks[b] = moved;
            sizes[b] = bytes;
            fill(moved, bytes, with[b] = 1 + step % 200);
        }
        }
        if (step % 40 == 20) {
            unsigned char *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (map != MAP_FAILED) { check(map, 1 << 20, 0, "a mapping"); fill(map, 1 << 20, 9); check(map, 1 << 20, 9, "a mapping"); munmap(map, 1 << 20); }
        }
    }
    for (size_t b = 0; b < BLOCKS; b++) {
        if (blocks[b]) check(blocks[b], sizes[b], with[b], "at the end");
        free(blocks[b]);
    }
    return NULL;
}

int main(void) {
    pthread_t thread;
    unsigned char *kept = malloc(3000000);
    if (kept) fill(kept, 3000000, 77);
    int is_there = pthread_create(&thread, NULL, work, (void *)7) == 0;
    work((void *)11);
    pid_t child = fork();
    if (child == 0) {
        if (kept) check(kept, 3000000, 77, "in a child");
        work((void *)13);
        _exit(0);
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && status) {
        printf("the child ended otherwise: %x\n", status);
        return WIFSIGNALED(status) && WTERMSIG(status) == 6 ? 5 : 6;
    }
    if (is_there) pthread_join(thread, NULL);
    if (kept) check(kept, 3000000, 77, "kept");
    free(kept);
    if (write(1, "done\n", 5) != 5) return 7;
    return 0;
}
