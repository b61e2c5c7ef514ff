/* What the programs about mappings share. */
#ifndef MAPS_H
#define MAPS_H

#include "check.h"
#include <setjmp.h>
#include <signal.h>

static inline char *map(size_t size)
{
    char *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_OF(start != MAP_FAILED, size);
    return start;
}

static inline void unmap(void *start, size_t size)
{
    CHECK_OF(munmap(start, size) == 0, size);
}

static const size_t sizes[] = {4 * KIB,   20 * KIB,  64 * KIB,  68 * KIB,   256 * KIB,          MIB,
                               2 * MIB,   3 * MIB,   8 * MIB,   32 * MIB,   64 * MIB + 12 * KIB, 130 * MIB};
#define SIZES (sizeof sizes / sizeof sizes[0])

static sigjmp_buf back;

static inline void on_fault(int signal)
{
    siglongjmp(back, signal);
}

/* Whether touching `at` is refused by the kernel. */
static inline bool faults(volatile char *at, bool write)
{
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER}, old[2];
    sigaction(SIGSEGV, &action, &old[0]);
    sigaction(SIGBUS, &action, &old[1]);
    bool refused = true;
    if (sigsetjmp(back, 1) == 0) {
        if (write)
            *at = *at;
        else
            (void)*at;
        refused = false;
    }
    sigaction(SIGSEGV, &old[0], NULL);
    sigaction(SIGBUS, &old[1], NULL);
    return refused;
}

#endif
