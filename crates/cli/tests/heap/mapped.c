/* A program whose memory is its own mappings, of which it gives up parts, and grows others. Its argument says
   how it ends. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MB (1ul << 20)
#define APART __attribute__((noinline))

static void *volatile kept;

APART static char *map(size_t bytes) {
    return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

APART static void middle(void) { munmap(map(32 * MB) + 8 * MB, 8 * MB); kept = 0; }

APART static void first(void) { munmap(map(32 * MB), 20 * MB); kept = 0; }

APART static void shrink(void) { mremap(map(32 * MB), 32 * MB, 2 * MB, 0); kept = 0; }

APART static void whole(void) { munmap(map(64 * MB), 64 * MB); kept = 0; }

APART static void part(void) { kept = mremap(map(32 * MB), 8 * MB, 16 * MB, MREMAP_MAYMOVE); }

/* With pages that differ, it moves to a place of the kernel's. */
APART static void away(void) {
    char *place = map(16 * MB);
    mprotect(place, 4096, PROT_READ);
    munmap(mremap(place, 16 * MB, 32 * MB, MREMAP_MAYMOVE), 32 * MB);
}

APART static void over(void) {
    mmap(map(16 * MB), 16 * MB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* Most are not samples before they grow. */
APART static void grow(void) {
    for (int i = 0; i < 32; i++)
        kept = mremap(map(64 << 10), 64 << 10, 8 * MB, MREMAP_MAYMOVE);
}

int main(int count, char **words) {
    if (count > 1 && !strcmp(words[1], "large")) {
        char *large = map(300 * MB);
        memset(large, 1, 300 * MB);
        return 0;
    }
    middle();
    first();
    shrink();
    grow();
    part();
    away();
    over();
    whole();
    if (count > 1) {
        char *none[] = {0};
        execle("/bin/true", "true", (char *)0, none);
    }
    return 0;
}
