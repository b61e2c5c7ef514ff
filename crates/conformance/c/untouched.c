/* Memory of which a program touches a page here and there: its peak is what it touches, in every round. */
#include "check.h"
#include <pthread.h>

#define ROUNDS 12
/* What an allocator may take beside: a part of what is touched, for its tables, and this. */
#define PART 5
#define BESIDE (5 * MIB)

/* Of this program: what getrusage says includes the process that started it. */
static size_t peak(void)
{
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %zu", &kib) == 1)
            break;
    fclose(file);
    CHECK(kib > 0);
    return kib * KIB;
}

static size_t resident(void)
{
    unsigned long all, pages;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%lu %lu", &all, &pages) == 2);
    fclose(file);
    return pages * PAGE;
}

/* Writes to one page in each `step` bytes; what that comes to. */
static size_t touch(char *block, size_t bytes, size_t step)
{
    for (size_t at = 0; at < bytes; at += step)
        block[at] = 1;
    return (bytes + step - 1) / step * PAGE;
}

static void check_peak(size_t before, size_t touched)
{
    size_t grown = peak() - before;
    CHECK_OF(grown <= touched + touched / PART + BESIDE, grown);
}

static void *by_malloc(size_t bytes)
{
    return malloc(bytes);
}

static void *by_calloc(size_t bytes)
{
    return calloc(1, bytes);
}

static void *aligned(size_t bytes)
{
    void *block = NULL;
    CHECK(posix_memalign(&block, 64 * KIB, bytes) == 0);
    return block;
}

static void *by_realloc(size_t bytes)
{
    char *block = malloc(64 * KIB);
    for (size_t now = MIB; block && now < bytes; now *= 4)
        block = realloc(block, now);
    return realloc(block, bytes);
}

static void *mapped(size_t bytes)
{
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(block != MAP_FAILED);
    return block;
}

static void rounds(void *(*get)(size_t), size_t bytes, size_t count, size_t step)
{
    char *blocks[2000];
    size_t before = resident(), touched = 0;
    for (int round = 0; round < ROUNDS; round++) {
        touched = 0;
        for (size_t i = 0; i < count; i++) {
            CHECK((blocks[i] = get(bytes)));
            touched += touch(blocks[i], bytes, step);
        }
        for (size_t i = 0; i < count; i++)
            if (get == mapped)
                CHECK(munmap(blocks[i], bytes) == 0);
            else
                free(blocks[i]);
    }
    check_peak(before, touched);
}

static void large_blocks(void) { rounds(by_malloc, 128 * MIB, 1, MIB); }
static void large_zeroed_blocks(void) { rounds(by_calloc, 128 * MIB, 2, MIB); }
static void mappings(void) { rounds(mapped, 128 * MIB, 2, MIB); }
static void aligned_blocks(void) { rounds(aligned, 16 * MIB, 8, MIB); }
static void grown_blocks(void) { rounds(by_realloc, 64 * MIB, 2, MIB); }
static void many_blocks(void) { rounds(by_malloc, 300000, 2000, 150000); }
static void many_zeroed_blocks(void) { rounds(by_calloc, 300000, 2000, 150000); }
static void many_mappings(void) { rounds(mapped, 300000, 1000, 150000); }
static void blocks_of_a_few_pages(void) { rounds(by_malloc, 140000, 2000, 70000); }

/* Blocks of other lengths each time lie over other parts of the ones before. */
static void lengths_that_change(void)
{
    char *blocks[500];
    size_t before = resident(), most = 0;
    uint64_t state = 7;
    for (int round = 0; round < 3 * ROUNDS; round++) {
        size_t touched = 0;
        for (int i = 0; i < 500; i++) {
            size_t bytes = 200 * KIB + next_random(&state) % (2 * MIB);
            CHECK((blocks[i] = round & 1 ? calloc(1, bytes) : malloc(bytes)));
            touched += touch(blocks[i], bytes, 128 * KIB);
        }
        most = touched > most ? touched : most;
        for (int i = 0; i < 500; i++)
            free(blocks[i]);
    }
    check_peak(before, most);
}

/* A read of memory of zeros gives a program no page of its own. */
static void memory_that_is_only_read(void)
{
    size_t before = resident(), sum = 0;
    for (int round = 0; round < ROUNDS / 3; round++) {
        char *large = calloc(1, 64 * MIB), *small[200];
        for (int i = 0; i < 200; i++)
            CHECK((small[i] = calloc(1, 300000)));
        CHECK(large);
        for (size_t at = 0; at < 64 * MIB; at += PAGE)
            sum += (size_t)large[at];
        for (int i = 0; i < 200; i++) {
            for (size_t at = 0; at < 300000; at += PAGE)
                sum += (size_t)small[i][at];
            free(small[i]);
        }
        free(large);
    }
    CHECK(sum == 0);
    check_peak(before, 0);
}

/* Dense blocks before and after: their pages are not spent on sparse ones. */
static void beside_dense_blocks(void)
{
    enum { FULL = 24, HOLLOW = 6 };
    char *dense[FULL], *sparse[HOLLOW];
    size_t before = resident(), touched = 0;
    for (int round = 0; round < ROUNDS; round++) {
        touched = 0;
        for (int i = 0; i < HOLLOW; i++) {
            CHECK((sparse[i] = calloc(1, 48 * MIB)));
            touched += touch(sparse[i], 48 * MIB, MIB);
        }
        for (int i = 0; i < FULL; i++) {
            CHECK((dense[i] = malloc(2 * MIB)));
            touched += touch(dense[i], 2 * MIB, PAGE);
        }
        for (int i = 0; i < FULL; i++)
            free(dense[i]);
        for (int i = 0; i < HOLLOW; i++)
            free(sparse[i]);
    }
    check_peak(before, touched);
}

static void *thread(void *nothing)
{
    for (int round = 0; round < ROUNDS; round++) {
        char *block = malloc(8 * MIB);
        CHECK(block);
        touch(block, 8 * MIB, MIB / 4);
        free(block);
    }
    return nothing;
}

static void threads(void)
{
    pthread_t all[4];
    size_t before = resident();
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&all[i], NULL, thread, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(all[i], NULL) == 0);
    check_peak(before, (size_t)4 * 32 * PAGE);
}

/* With all memory locked, freed memory serves again, and little is mapped ahead. */
static void locked_memory_is_had_again(void)
{
    enum { FEW = 500, BYTES = 20000 };
    char *blocks[FEW];
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        return;
    size_t before = resident();
    /* Of these the board of a run takes 16. */
    CHECK_OF(before < 32 * MIB, before);
    char *block = malloc(40 * MIB);
    if (!block)
        return;
    touch(block, 40 * MIB, PAGE);
    free(block);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < FEW; i++) {
            CHECK((blocks[i] = malloc(BYTES)));
            touch(blocks[i], BYTES, PAGE);
        }
        for (int i = 0; i < FEW; i++)
            free(blocks[i]);
    }
    size_t grown = peak() - before;
    CHECK_OF(grown <= 44 * MIB, grown);
}

static const struct scenario scenarios[] = {
    {"large_blocks", large_blocks},
    {"large_zeroed_blocks", large_zeroed_blocks},
    {"mappings", mappings},
    {"aligned_blocks", aligned_blocks},
    {"grown_blocks", grown_blocks},
    {"many_blocks", many_blocks},
    {"vellum_many_zeroed_blocks", many_zeroed_blocks},
    {"many_mappings", many_mappings},
    {"blocks_of_a_few_pages", blocks_of_a_few_pages},
    {"vellum_lengths_that_change", lengths_that_change},
    {"vellum_memory_that_is_only_read", memory_that_is_only_read},
    {"beside_dense_blocks", beside_dense_blocks},
    {"threads", threads},
    {"locked_memory_is_had_again", locked_memory_is_had_again},
};

int main(int argc, char **argv)
{
    return dispatch(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
