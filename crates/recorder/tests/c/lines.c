/* Operations whose number is known: behind each line stands, in a comment, what `vellum cost` must count there, and after
 * a colon the bytes. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 1000, FEW = 10 };

/* Keeps a compiler from leaving out what it knows to be useless. */
static void *volatile kept;
static void *volatile nothing;

static inline __attribute__((always_inline)) void *inlined(size_t bytes) {
    void *block = malloc(bytes); //= malloc=2000:329500
    kept = block;
    return block;
}

static __attribute__((noinline)) void called(int rounds) {
    for (int i = 0; i < rounds; i++)
        free(inlined(i % 700)); //= free=1000
}

static void reallocated(void) {
    char *block = malloc(100); //= malloc=1:100
    kept = block;
    for (int i = 0; i < FEW; i++)
        block = realloc(block, 100 - i); //= realloc_kept=10:955
    kept = block;
    free(block); //= free=1
    block = realloc(NULL, 50); //= malloc=1:50
    kept = block;
    block = realloc(block, 5000); //= realloc_copied=1:5000
    kept = block;
    free(block); //= free=1
}

int main(void) {
    called(ROUNDS);
    for (int i = 0; i < ROUNDS; i++) {
        void *block = inlined(40);
        free(block); //= free=1000
    }
    for (int i = 0; i < FEW; i++) {
        void *zeros = calloc(i + 1, 300); //= calloc=10:16500
        kept = zeros;
        free(zeros); free(nothing); //= free=10 free_null=10
    }
    for (int i = 0; i < FEW; i++) {
        char *copy = strdup("the library allocates, this line is the cause"); //= malloc=10:460
        kept = copy;
        free(copy); //= free=10
    }
    reallocated();
    for (int i = 0; i < FEW; i++) {
        void *aligned = aligned_alloc(64, 640); //= aligned=10:6400
        kept = aligned;
        void *posix;
        if (posix_memalign(&posix, 4096, 100)) abort(); //= aligned=10:1000
        kept = posix;
        free(aligned); free(posix); //= free=20
    }
    for (int i = 0; i < FEW; i++) {
        char *pages = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); //= mmap=10:10485760
        madvise(pages, 1 << 20, MADV_NOHUGEPAGE); //= madvise=10
        mprotect(pages, 4096, PROT_READ); //= mprotect=10
        pages = mremap(pages, 1 << 20, 2 << 20, MREMAP_MAYMOVE); //= mremap=10:20971520
        munmap(pages, 2 << 20); //= munmap=10
    }
    malloc_trim(0); //= trim=1
    return 7;
}
