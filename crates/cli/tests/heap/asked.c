/* Does as it is asked, a letter at a time, and says so: for `vellum heap PID`. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define KEPT_MAX 400000

static void *kept[KEPT_MAX];
static int count;

__attribute__((noinline)) static void before(void) {
    for (int i = 0; i < 5000; i++)
        kept[count++] = memset(malloc(1000), 1, 1000);
}

__attribute__((noinline)) static void grow(void) {
    for (int i = 0; i < 20000; i++)
        kept[count++] = memset(malloc(1000), 1, 1000); /* grown */
}

__attribute__((noinline)) static void churn(void) {
    for (int i = 0; i < 200000; i++) {
        char *block = malloc(100); /* churned */
        *(volatile char *)block = 1;
        free(block);
    }
}

/* A burst of which one in fifty survives: the others' memory cannot go back. */
__attribute__((noinline)) static void burst(void) {
    static void *short_lived[300000];
    srand(1);
    for (int i = 0; i < 300000; i++) {
        if (rand() % 50 == 0)
            kept[count++] = memset(malloc(200), 1, 200), short_lived[i] = NULL; /* survivor */
        else
            short_lived[i] = memset(malloc(200), 1, 200); /* passing */
    }
    for (int i = 0; i < 300000; i++)
        free(short_lived[i]);
}

/* Fifteen mappings of a mebibyte are left, and one of two. */
__attribute__((noinline)) static void map(void) {
    for (int i = 0; i < 20; i++) {
        char *place = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* mapped */
        place[0] = 1;
        if (i < 4)
            munmap(place, 1 << 20);
        else if (i == 4)
            mremap(place, 1 << 20, 2 << 20, MREMAP_MAYMOVE);
    }
}

int main(void) {
    char told;
    while (read(0, &told, 1) == 1) {
        switch (told) {
        case 'b': before(); break;
        case 'g': grow(); break;
        case 'c': churn(); break;
        case 's': burst(); break;
        case 'm': map(); break;
        case 'f':
            if (fork() == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                grow();
                pause();
            }
            break;
        case 'q': return 0;
        default: break;
        }
        printf("%c\n", told);
        fflush(stdout);
    }
    return 0;
}
