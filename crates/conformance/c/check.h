/* What the C programs of this folder share.
 *
 * A program is a table of scenarios. Without arguments it lists their names; with one it runs that scenario, which
 * either returns, having printed only what every correct allocator makes it print, or says on standard error what was
 * not so and exits with 1. The tests run each scenario on the C library's own memory and on Vellum's and compare, so
 * an expectation that is wrong shows as such.
 *
 * Scenarios whose names begin with "vellum_" check what only Vellum promises. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define PAGE ((size_t)4096)

/* Ends the program unless `condition` holds. */
#define CHECK(condition)                                                                                              \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s:%d: %s: not so: %s (errno %d)\n", __FILE__, __LINE__, __func__, #condition, errno);   \
            _exit(1);                                                                                                 \
        }                                                                                                             \
    } while (0)

/* The same for a value worth seeing. */
#define CHECK_OF(condition, value)                                                                                    \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s:%d: %s: not so: %s, with %s = %lld (errno %d)\n", __FILE__, __LINE__, __func__,       \
                    #condition, #value, (long long)(value), errno);                                                   \
            _exit(1);                                                                                                 \
        }                                                                                                             \
    } while (0)

struct scenario {
    const char *name;
    void (*run)(void);
};

static inline int dispatch(int argc, char **argv, const struct scenario *scenarios, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (argc < 2)
            puts(scenarios[i].name);
        else if (strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].run();
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}

#define DISPATCH(argc, argv, scenarios) dispatch(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]))

/* A small generator (xorshift64*), so that a seed means the same everywhere. */
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

/* A seed that a person gave becomes a state: never zero, and close seeds far apart. */
static inline uint64_t seeded(uint64_t seed)
{
    seed += UINT64_C(0x9E3779B97F4A7C15);
    seed = (seed ^ (seed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    seed = (seed ^ (seed >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (seed ^ (seed >> 31)) | 1;
}

/* A size between 1 and `most`, small ones far more often than large ones. */
static inline size_t random_size(uint64_t *state, size_t most)
{
    unsigned bits = 1;
    while (((size_t)1 << bits) < most)
        bits++;
    unsigned shift = (unsigned)(next_random(state) % bits);
    size_t size = 1 + (size_t)(next_random(state) % ((size_t)2 << shift));
    return size > most ? most : size;
}

/* Fills a block with bytes that depend on `key` and the offset; of long blocks only the edges of each page. */
static inline unsigned char pattern_at(uint64_t key, size_t offset)
{
    return (unsigned char)((key * UINT64_C(0x9E3779B97F4A7C15) >> 40) + offset * 31 + (offset >> 12) * 17);
}

#define DENSE (64 * KIB)

static inline size_t pattern_step(size_t offset, size_t size)
{
    if (size <= DENSE || offset < 64 || offset + 65 >= size)
        return 1;
    size_t step = 509;
    return offset + step + 65 > size ? size - 65 - offset : step;
}

static inline void fill(void *block, size_t size, uint64_t key)
{
    unsigned char *bytes = block;
    for (size_t i = 0; i < size; i += pattern_step(i, size))
        bytes[i] = pattern_at(key, i);
}

/* How many of the first `size` bytes, of a block that was filled when it was `filled` long, are as they were. */
static inline bool is_filled(const void *block, size_t size, size_t filled, uint64_t key)
{
    const unsigned char *bytes = block;
    for (size_t i = 0; i < filled && i < size; i += pattern_step(i, filled))
        if (bytes[i] != pattern_at(key, i))
            return false;
    return true;
}

static inline bool is_zero(const void *block, size_t size)
{
    const unsigned char *bytes = block;
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static inline bool is_aligned(const void *block, size_t align)
{
    return ((uintptr_t)block & (align - 1)) == 0;
}

/* Pages of this process by /proc/self/statm, read without allocating: all that are resident, and of those
 * the ones of files and shared memory. */
static inline void resident_pages(size_t *all, size_t *shared)
{
    char text[128];
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    CHECK(got > 0);
    text[got] = 0;
    char *second = strchr(text, ' ');
    CHECK(second != NULL);
    char *third = NULL;
    *all = (size_t)strtoull(second, &third, 10);
    *shared = (size_t)strtoull(third, NULL, 10);
}

static inline size_t resident_bytes(void)
{
    size_t all, shared;
    resident_pages(&all, &shared);
    return all * PAGE;
}

/* Resident bytes without pages of files: neither code nor shared memory. */
static inline size_t anonymous_bytes(void)
{
    size_t all, shared;
    resident_pages(&all, &shared);
    return (all - shared) * PAGE;
}

static inline void nap_ms(long ms)
{
    struct timespec wanted = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&wanted, &wanted) != 0 && errno == EINTR) {
    }
}

#endif
