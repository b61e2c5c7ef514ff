/* What an emulator of programs does not do of what a kernel does: a word for each, as it is found. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <linux/seccomp.h>
#include <unistd.h>
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

enum { BYTES = 64 << 20 };

static char *map(void)
{
    char *start = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(start, 1, BYTES);
    return start;
}

static long resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return pages * getpagesize();
}

static int nothing(void *argument)
{
    (void)argument;
    return 0;
}

int main(void)
{
    /* Memory that is moved and leaves its place mapped: the contents there, the place empty, and advice on both. */
    char *from = map(), *to = map();
    memset(from, 2, BYTES);
    char *moved = mremap(from, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);
    if (moved != to || moved[BYTES / 2] != 2 || from[BYTES / 2] != 0)
        puts("moves");
    else {
        memset(from, 3, BYTES);
        if (madvise(from, BYTES, MADV_DONTNEED) != 0 || from[0] != 0 || madvise(to, BYTES, MADV_DONTNEED) != 0 || to[0] != 0)
            puts("moves");
    }
    /* Memory that is given back. */
    long before = resident();
    char *dirty = map();
    if (madvise(dirty, BYTES, MADV_DONTNEED) != 0 || resident() > before + BYTES / 2)
        puts("residency");
    /* A thread with descriptors of its own. */
    char *stack = map();
    int flags = CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    if (clone(nothing, stack + BYTES, flags, NULL) < 0)
        puts("helpers");
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0)
        puts("filters");
    return 0;
}
