/* Mappings that are moved, resized, laid over and advised about. Contents must be as the kernel's. */
#include "maps.h"
#include <sys/resource.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static long minor_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void remapping(void)
{
    for (size_t i = 0; i < SIZES - 1; i++) {
        size_t size = sizes[i], big = (size * 3 / 2 + PAGE) / PAGE * PAGE;
        char *start = map(size);
        fill(start, size, i);
        char *grown = mremap(start, size, big, MREMAP_MAYMOVE);
        CHECK_OF(grown != MAP_FAILED, size);
        CHECK_OF(is_filled(grown, size, size, i), size);
        CHECK_OF(is_zero(grown + size, big - size), size);
        memset(grown + size, 0xAB, big - size);
        char *less = mremap(grown, big, size, 0);
        CHECK_OF(less == grown && is_filled(less, size, size, i), size);
        /* What was cut off and comes back is zero. */
        grown = mremap(less, size, big, MREMAP_MAYMOVE);
        CHECK_OF(grown != MAP_FAILED && is_zero(grown + size, big - size), size);
        CHECK_OF(is_filled(grown, size, size, i), size);
        /* In place or not at all. */
        char *stayed = mremap(grown, big, big + MIB, 0);
        CHECK_OF(stayed == grown || (stayed == MAP_FAILED && errno == ENOMEM), size);
        if (stayed == grown) {
            CHECK_OF(is_zero(grown + big, MIB), size);
            unmap(grown + big, MIB);
        }
        CHECK_OF(is_filled(grown, size, size, i), size);
        unmap(grown, big);
    }
}

static void remapping_in_steps(void)
{
    char *one = map(64 * KIB), *two = map(64 * KIB);
    size_t size = 64 * KIB;
    while (size < 48 * MIB) {
        size_t next = size + size / 2 / PAGE * PAGE;
        one[size - 1] = 1;
        two[size - 1] = 2;
        one = mremap(one, size, next, MREMAP_MAYMOVE);
        two = mremap(two, size, next, MREMAP_MAYMOVE);
        CHECK(one != MAP_FAILED && two != MAP_FAILED);
        CHECK_OF(one[size - 1] == 1 && two[size - 1] == 2, size);
        CHECK_OF(is_zero(one + size, next - size) && is_zero(two + size, next - size), size);
        memset(one + size, 3, next - size);
        memset(two + size, 4, next - size);
        size = next;
    }
    unmap(one, size);
    unmap(two, size);
}

static void remapping_parts_and_to_places(void)
{
    size_t size = 6 * MIB;
    char *start = map(size), *place = map(size);
    fill(start, size, 1);
    char *copy = malloc(size);
    memcpy(copy, start, size);
    /* The middle third leaves for a place of our choice. */
    char *moved = mremap(start + 2 * MIB, 2 * MIB, 2 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, place + 2 * MIB);
    CHECK(moved == place + 2 * MIB);
    CHECK(memcmp(moved, copy + 2 * MIB, 2 * MIB) == 0);
    CHECK(memcmp(start, copy, 2 * MIB) == 0 && memcmp(start + 4 * MIB, copy + 4 * MIB, 2 * MIB) == 0);
    CHECK(is_zero(place, 2 * MIB) && is_zero(place + 4 * MIB, 2 * MIB));
    /* The rest is given back in three calls, the hole among them. */
    unmap(start, 2 * MIB);
    unmap(start + 4 * MIB, 2 * MIB);
    unmap(place, size);
    for (int i = 0; i < 8; i++) {
        char *again = map(size);
        CHECK_OF(is_zero(again, size), i);
        memset(again, 1, size);
        if (i % 2)
            unmap(again, size);
    }
    /* A part grows away from its mapping. */
    start = map(4 * MIB);
    memcpy(start, copy, 4 * MIB);
    moved = mremap(start + MIB, MIB, 2 * MIB, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED && memcmp(moved, copy + MIB, MIB) == 0 && is_zero(moved + MIB, MIB));
    CHECK(memcmp(start, copy, MIB) == 0 && memcmp(start + 2 * MIB, copy + 2 * MIB, 2 * MIB) == 0);
    unmap(moved, 2 * MIB);
    unmap(start, MIB);
    unmap(start + 2 * MIB, 2 * MIB);
    /* The old place stays mapped, and reads zero, if asked. */
#ifdef MREMAP_DONTUNMAP
    start = map(2 * MIB);
    memcpy(start, copy, 2 * MIB);
    moved = mremap(start, 2 * MIB, 2 * MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
    if (moved != MAP_FAILED) {
        CHECK(memcmp(moved, copy, 2 * MIB) == 0);
        CHECK(is_zero(start, 2 * MIB));
        memset(start, 9, 2 * MIB);
        CHECK(memcmp(moved, copy, 2 * MIB) == 0);
        unmap(start, 2 * MIB);
        unmap(moved, 2 * MIB);
    } else
        unmap(start, 2 * MIB);
#endif
    free(copy);
    for (int i = 0; i < 8; i++) {
        char *block = malloc(3 * MIB), *again = map(2 * MIB);
        memset(block, 0xFF, 3 * MIB);
        CHECK_OF(is_zero(again, 2 * MIB), i);
        memset(again, 0xFF, 2 * MIB);
        free(block);
        unmap(again, 2 * MIB);
    }
}

static void mapping_over(void)
{
    char name[] = "/tmp/vellum-mapping-XXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0 && unlink(name) == 0 && ftruncate(file, (off_t)MIB) == 0);
    CHECK(pwrite(file, "from the file", 13, 0) == 13);
    for (size_t i = 5; i < SIZES; i++) {
        size_t size = sizes[i], part = size / 4 / PAGE * PAGE;
        char *start = map(size);
        fill(start, size, i);
        char *copy = malloc(size);
        memcpy(copy, start, size);
        size_t file_part = part > MIB ? MIB : part;
        CHECK(mmap(start + part, file_part, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == start + part);
        CHECK(memcmp(start + part, "from the file", 14) == 0);
        CHECK_OF(faults(start + part, true), size);
        CHECK(mmap(start + 2 * part, part, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              start + 2 * part);
        CHECK_OF(faults(start + 2 * part, false), size);
        CHECK(mmap(start + 3 * part, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              start + 3 * part);
        CHECK(is_zero(start + 3 * part, PAGE));
        CHECK_OF(memcmp(start, copy, part) == 0, size);
        CHECK_OF(memcmp(start + 3 * part + PAGE, copy + 3 * part + PAGE, size - 3 * part - PAGE) == 0, size);
        /* Fresh memory over one's own mapping: the old way to clear it. */
        CHECK(mmap(start, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == start);
        CHECK_OF(is_zero(start, part), size);
        unmap(start, size);
        free(copy);
        for (int k = 0; k < 2; k++) {
            char *again = map(size), *block = malloc(size);
            CHECK_OF(is_zero(again, size), size);
            memset(again, 1, size);
            memset(block, 2, size);
            CHECK_OF(!faults(again, true) && again[size / 2] == 1 && block[size / 2] == 2, size);
            free(block);
            unmap(again, size);
        }
    }
    char text[14] = {0};
    CHECK(pread(file, text, 13, 0) == 13 && strcmp(text, "from the file") == 0);
    close(file);
}

static void advice(void)
{
    for (size_t i = 2; i < SIZES; i++) {
        size_t size = sizes[i], half = size / 2 / PAGE * PAGE;
        char *start = map(size);
        fill(start, size, i);
        char *copy = malloc(size);
        memcpy(copy, start, size);
        CHECK(madvise(start, half, MADV_DONTNEED) == 0);
        CHECK_OF(is_zero(start, half), size);
        CHECK_OF(memcmp(start + half, copy + half, size - half) == 0, size);
        memcpy(start, copy, half);
        int others[] = {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE, 20, 21};
        for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
            (void)madvise(start, size, others[k]); /* Not every kernel has each of them. */
        CHECK_OF(memcmp(start, copy, size) == 0, size);
        /* Lazily freed: each page is as it was, or zero; later writes stay. */
        CHECK(madvise(start, size, MADV_FREE) == 0);
        for (size_t at = 0; at < size; at += PAGE)
            CHECK_OF(memcmp(start + at, copy + at, PAGE) == 0 || is_zero(start + at, PAGE), at);
        memset(start, 0x31, size);
        CHECK_OF(start[0] == 0x31 && start[size - 1] == 0x31, size);
        unmap(start, size);
        start = map(size);
        CHECK_OF(is_zero(start, size), size);
        unmap(start, size);
        free(copy);
    }
}

/* Many small changes at random against a plain model: one byte a page. */
static void random_operations(void)
{
    enum { SLOTS = 24, STEPS = 1500 };
    const char *given = getenv("VELLUM_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 1, state = seeded(seed);
    struct {
        char *start;
        size_t pages;
        unsigned char *model;
    } slots[SLOTS] = {{0}};
    for (int step = 0; step < STEPS; step++) {
        int s = (int)(next_random(&state) % SLOTS);
        char *start = slots[s].start;
        size_t pages = slots[s].pages;
        unsigned char *model = slots[s].model;
        for (size_t p = 0; p < pages; p++)
            CHECK_OF((unsigned char)start[p * PAGE + 8] == model[p], step);
        size_t from = pages ? next_random(&state) % pages : 0, count = pages ? 1 + next_random(&state) % (pages - from) : 0;
        switch (start == NULL ? 0 : next_random(&state) % 8) {
        case 0:
            if (start) {
                unmap(start, pages * PAGE);
                free(model);
            }
            slots[s].pages = 1 + next_random(&state) % (next_random(&state) % 8 ? 100 : 2000);
            slots[s].start = map(slots[s].pages * PAGE);
            slots[s].model = calloc(slots[s].pages, 1);
            break;
        case 1: /* less */
            CHECK_OF(mremap(start, pages * PAGE, count * PAGE, 0) == start, step);
            slots[s].pages = count;
            break;
        case 2: { /* more */
            size_t more = pages + 1 + next_random(&state) % 200;
            char *to = mremap(start, pages * PAGE, more * PAGE, MREMAP_MAYMOVE);
            if (to == MAP_FAILED) {
                /* What was mapped over in part may be several mappings to the kernel, which grows only one. */
                CHECK_OF(errno == EFAULT, step);
                break;
            }
            slots[s].start = to;
            slots[s].pages = more;
            slots[s].model = realloc(model, more);
            memset(slots[s].model + pages, 0, more - pages);
            break;
        }
        case 3: /* the head goes */
            if (count < pages) {
                unmap(start, count * PAGE);
                slots[s].start += count * PAGE;
                slots[s].pages -= count;
                memmove(model, model + count, pages - count);
            }
            break;
        case 4: /* zero a part */
            CHECK(madvise(start + from * PAGE, count * PAGE, MADV_DONTNEED) == 0);
            memset(model + from, 0, count);
            break;
        case 5: /* protect and unprotect a part */
            CHECK(mprotect(start + from * PAGE, count * PAGE, PROT_READ) == 0);
            CHECK(mprotect(start + from * PAGE, count * PAGE, PROT_READ | PROT_WRITE) == 0);
            break;
        case 6: /* over itself */
            CHECK(mmap(start + from * PAGE, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                       -1, 0) == start + from * PAGE);
            memset(model + from, 0, count);
            break;
        default:
            for (size_t p = from; p < from + count; p++)
                start[p * PAGE + 8] = (char)(model[p] = (unsigned char)next_random(&state));
        }
        if (next_random(&state) % 4 == 0) {
            size_t size = random_size(&state, 4 * MIB);
            char *block = malloc(size);
            memset(block, 0xEF, size);
            free(block);
        }
    }
}

/* V8's allocator: a mapping at a random place below 2^46, of which the unaligned ends are given back. */
static void random_hints(void)
{
    char *first = malloc(100000); /* so that there is memory of malloc's to land in */
    first[0] = 1;
    uint64_t state = 88172645463325252u;
    for (int round = 0; round < 20000; round++) {
        uintptr_t hint = (uintptr_t)next_random(&state) & 0x3ffffffc0000u;
        char *start = mmap((void *)hint, 520192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(start != MAP_FAILED);
        CHECK_OF(munmap(start + 256 * KIB, 520192 - 256 * KIB) == 0, hint);
        CHECK_OF(munmap(start, 256 * KIB) == 0, hint);
    }
    free(first);
}

/* What was unmapped can be mapped again at the same place, however, and is nobody else's then. */
static void places_again(void)
{
    for (int way = 0; way < 5; way++) {
        char *start = map(MIB), *other;
        memset(start, 1, MIB);
        size_t from = 0, length = MIB;
        switch (way) {
        case 0:
            unmap(start, MIB);
            CHECK(mmap(start, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == start);
            break;
        case 1:
            unmap(start, MIB);
            CHECK(mmap(start, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == start);
            break;
        case 2: /* a part moves away, its place is mapped again */
            from = 256 * KIB, length = 512 * KIB;
            other = mmap(NULL, MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            CHECK(mremap(start + from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, other) == other);
            CHECK(mmap(start + from, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == start + from);
            break;
        case 3: /* another mapping moves in */
            other = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            unmap(start, MIB);
            CHECK(mremap(other, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, start) == start);
            break;
        case 4: /* its contents move away, it stays */
            other = mremap(start, MIB, MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
            CHECK(other != MAP_FAILED && other[5] == 1 && start[5] == 0);
            unmap(other, MIB);
            break;
        }
        memset(start + from, 2, length);
        void *blocks[200];
        for (int k = 0; k < 200; k++) {
            blocks[k] = k % 2 ? malloc(300000) : map(MIB);
            memset(blocks[k], 7, 300000);
        }
        for (size_t at = from; at < from + length; at += PAGE)
            CHECK_OF(start[at] == 2, way);
        for (int k = 0; k < 200; k++)
            if (k % 2)
                free(blocks[k]);
            else
                unmap(blocks[k], MIB);
        unmap(start, MIB);
    }
}

/* Huge pages advised for each array, as numpy does, must not cost the memory that is kept. */
static void vellum_advised_blocks_stay(void)
{
    long faults[2];
    for (int advised = 0; advised < 2; advised++) {
        long before = minor_faults();
        for (int round = 0; round < 40; round++) {
            char *arrays[3];
            for (int k = 0; k < 3; k++) {
                arrays[k] = malloc(16 * MIB);
                char *first = (char *)(((uintptr_t)arrays[k] + PAGE - 1) & ~(PAGE - 1));
                if (advised)
                    CHECK(madvise(first, 16 * MIB - PAGE, MADV_HUGEPAGE) == 0);
                memset(arrays[k], round, 16 * MIB);
            }
            for (int k = 0; k < 3; k++)
                free(arrays[k]);
        }
        faults[advised] = minor_faults() - before;
    }
    CHECK_OF(faults[1] * 10 <= faults[0] * 11 + 1000, faults[1]);
}

static const struct scenario scenarios[] = {
    {"random_hints", random_hints},
    {"places_again", places_again},
    {"vellum_advised_blocks_stay", vellum_advised_blocks_stay},
    {"remapping", remapping},
    {"remapping_in_steps", remapping_in_steps},
    {"remapping_parts_and_to_places", remapping_parts_and_to_places},
    {"mapping_over", mapping_over},
    {"advice", advice},
    {"random_operations", random_operations},
};

int main(int argc, char **argv)
{
    return DISPATCH(argc, argv, scenarios);
}
