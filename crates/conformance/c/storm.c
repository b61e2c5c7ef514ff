/* storm paged|growing SECONDS: memory whose every page is checked whenever it is looked at, for a kernel that moves pages about meanwhile.
   paged: one block of four times the frames that the test gives, walked through and jumped about in by two threads.
   growing: blocks that grow and shrink by realloc and are exchanged for others, so that their pages move.
   Says how many pages were looked at; one that is wrong is said and ends the program. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE 4096ul
#define WORDS (PAGE / 8)
#define THREADS 2
#define PAGED (64ul << 20)
#define BLOCKS 24
#define PAGES_MAX 2048ul

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static uint64_t mixed(uint64_t x) { x += 0x9e3779b97f4a7c15u; x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u; return x ^ x >> 27; }

static double deadline;
static uint64_t looks;

/* A page says in its first, a middle and its last word who it is and which of its lives this is. */
static void write_page(uint64_t *page, uint64_t who, uint64_t life) {
    page[0] = who << 32 | life;
    page[100 + who % 300] = mixed(who << 32 | life);
    page[WORDS - 1] = ~(who << 32 | life);
}
static void check_page(const uint64_t *page, uint64_t who, uint64_t life, const char *what) {
    uint64_t word = who << 32 | life;
    __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
    if (page[0] != word || page[100 + who % 300] != mixed(word) || page[WORDS - 1] != ~word) {
        printf("bad page: %s, page %lu at %p, life %lu: %lx %lx %lx\n", what, who, (void *)page, life, page[0], page[100 + who % 300], page[WORDS - 1]);
        fflush(stdout);
        _Exit(3);
    }
}

struct part { uint64_t *start; size_t pages; uint64_t seed; };
static void *page_through(void *argument) {
    struct part *part = argument;
    uint32_t *lives = malloc(part->pages * sizeof *lives);
    uint64_t x = part->seed;
    for (size_t i = 0; i < part->pages; i++) { lives[i] = 1; write_page(part->start + i * WORDS, i, 1); }
    while (now() < deadline) {
        for (size_t i = 0; i < part->pages; i++) {
            uint64_t *page = part->start + i * WORDS;
            check_page(page, i, lives[i], "in order");
            if (mixed(x + i) % 4 == 0) write_page(page, i, ++lives[i]);
        }
        for (size_t step = 0; step < part->pages / 2; step++) {
            x = mixed(x);
            size_t i = x % part->pages;
            uint64_t *page = part->start + i * WORDS;
            check_page(page, i, lives[i], "jumping");
            if (x >> 40 & 1) write_page(page, i, ++lives[i]);
        }
    }
    free(lives);
    return NULL;
}

static void *grow(void *argument) {
    struct part *part = argument;
    uint64_t *blocks[BLOCKS] = {0}, x = part->seed;
    size_t pages[BLOCKS] = {0};
    uint64_t lives[BLOCKS] = {0};
    while (now() < deadline) {
        x = mixed(x);
        size_t b = x % BLOCKS, wanted = 1 + (x >> 20) % PAGES_MAX;
        for (size_t i = 0; i < pages[b]; i++) check_page((uint64_t *)((char *)blocks[b] + 16) + i * WORDS, i, lives[b], "before");
        if ((x >> 50) % 5 == 0) { free(blocks[b]); blocks[b] = NULL; pages[b] = 0; continue; }
        uint64_t *block = realloc(blocks[b], (wanted + 1) * PAGE);
        if (!block) { printf("no memory\n"); _Exit(4); }
        blocks[b] = block;
        size_t kept = pages[b] < wanted ? pages[b] : wanted;
        for (size_t i = 0; i < kept; i++) check_page((uint64_t *)((char *)block + 16) + i * WORDS, i, lives[b], "after");
        lives[b]++;
        pages[b] = wanted;
        for (size_t i = 0; i < wanted; i++) write_page((uint64_t *)((char *)block + 16) + i * WORDS, i, lives[b]);
    }
    for (size_t b = 0; b < BLOCKS; b++) {
        for (size_t i = 0; i < pages[b]; i++) check_page((uint64_t *)((char *)blocks[b] + 16) + i * WORDS, i, lives[b], "at the end");
        free(blocks[b]);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    deadline = now() + atof(arguments[2]);
    int is_paged = !strcmp(arguments[1], "paged");
    char *block = is_paged ? malloc(PAGED) : NULL;
    pthread_t threads[THREADS];
    struct part parts[THREADS];
    size_t pages = PAGED / PAGE / THREADS - 1;
    for (int i = 0; i < THREADS; i++) {
        uint64_t *start = is_paged ? (uint64_t *)(((uintptr_t)block + PAGE - 1) / PAGE * PAGE + i * pages * PAGE) : NULL;
        parts[i] = (struct part){start, pages, i * 77 + 5};
        pthread_create(&threads[i], NULL, is_paged ? page_through : grow, &parts[i]);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    free(block);
    fprintf(stderr, "%lu pages looked at\n", looks);
    printf("done\n");
    return 0;
}
