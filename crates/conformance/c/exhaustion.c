/* When there is no more: null, ENOMEM, and a program that can go on. */
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

#define LIMIT (256 * MIB)

static void limit(int resource, size_t bytes)
{
    struct rlimit wanted = {bytes, bytes};
    CHECK(setrlimit(resource, &wanted) == 0);
}

struct link {
    struct link *next;
};

/* Takes blocks of `size` until there are none; how many there were. They are all given back. */
static size_t take_all(size_t size, bool touch)
{
    struct link *blocks = NULL;
    size_t count = 0;
    for (;;) {
        errno = 0;
        struct link *block = malloc(size);
        if (block == NULL) {
            CHECK_OF(errno == ENOMEM, size);
            break;
        }
        if (touch)
            memset(block, 1, size);
        block->next = blocks;
        blocks = block;
        count++;
        CHECK_OF(count * size < 4 * LIMIT, size);
    }
    /* The other ways to ask are refused likewise. */
    errno = 0;
    CHECK_OF(calloc(LIMIT, 1) == NULL && errno == ENOMEM, size);
    errno = 0;
    CHECK_OF(aligned_alloc(4096, LIMIT) == NULL && errno == ENOMEM, size);
    void *untouched = &count;
    CHECK(posix_memalign(&untouched, 64, LIMIT) == ENOMEM && untouched == &count);
    if (blocks) {
        struct link *next = blocks->next;
        errno = 0;
        CHECK_OF(realloc(blocks, LIMIT) == NULL && errno == ENOMEM, size);
        CHECK(blocks->next == next);
    }
    errno = 0;
    char *map = mmap(NULL, LIMIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map == MAP_FAILED && errno == ENOMEM);
    while (blocks) {
        struct link *next = blocks->next;
        free(blocks);
        blocks = next;
    }
    return count;
}

static void all_sizes(size_t wanted)
{
    size_t sizes[] = {MIB, 64 * MIB, 100 * KIB, 9000, 1000, 64};
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            size_t got = take_all(sizes[i], sizes[i] <= MIB) * sizes[i];
            CHECK_OF(got >= wanted, got);
            malloc_trim(0);
        }
}

static void limited_address_space(void)
{
    limit(RLIMIT_AS, LIMIT);
    all_sizes(LIMIT / 2);
}

static void limited_address_space_after_use(void)
{
    void *block = malloc(100 * MIB);
    memset(block, 1, 100 * MIB);
    free(block);
    limit(RLIMIT_AS, LIMIT);
    all_sizes(LIMIT / 2);
}

/* To be run by a parent that has set the limit already. */
static void limited_from_the_start(void)
{
    struct rlimit found;
    CHECK(getrlimit(RLIMIT_AS, &found) == 0);
    if (found.rlim_cur == LIMIT)
        all_sizes(LIMIT / 2);
}

static void limited_data(void)
{
    limit(RLIMIT_DATA, LIMIT);
    all_sizes(LIMIT / 2);
}

static void growing_to_the_limit(void)
{
    limit(RLIMIT_AS, LIMIT);
    for (int round = 0; round < 3; round++) {
        size_t size = 4096;
        unsigned char *block = malloc(size);
        fill(block, size, size);
        for (;;) {
            size_t next = size + size / 4;
            unsigned char *more = realloc(block, next);
            if (more == NULL) {
                CHECK_OF(errno == ENOMEM, size);
                break;
            }
            block = more;
            CHECK_OF(is_filled(block, size, size, size), size);
            size = next;
            fill(block, size, size);
        }
        CHECK_OF(is_filled(block, size, size, size), size);
        CHECK_OF(size >= LIMIT / 4, size);
        free(block);
        malloc_trim(0);
    }
}

static void *take_and_return(void *argument)
{
    uint64_t state = seeded((uintptr_t)argument);
    void *blocks[100] = {0};
    size_t refused = 0;
    for (int i = 0; i < 4000; i++) {
        size_t slot = next_random(&state) % 100, size = random_size(&state, 16 * MIB);
        free(blocks[slot]);
        blocks[slot] = malloc(size);
        if (blocks[slot])
            ((char *)blocks[slot])[size - 1] = 1;
        else
            refused++;
    }
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
    return (void *)refused;
}

static void threads_at_the_limit(void)
{
    limit(RLIMIT_AS, LIMIT);
    pthread_t threads[4];
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 256 * KIB) == 0);
    int made = 0;
    for (uintptr_t t = 0; t < 4; t++)
        made += pthread_create(&threads[made], &attributes, take_and_return, (void *)(t + 1)) == 0;
    CHECK(made > 0);
    for (int t = 0; t < made; t++)
        CHECK(pthread_join(threads[t], NULL) == 0);
    void *block = malloc(LIMIT / 5);
    CHECK(block != NULL);
    free(block);
}

/* Every map entry the kernel gives a process is used up by pages with alternating protection. */
static char *entries;
static size_t entries_bytes;

static void use_up_map_entries(void)
{
    /* No faster way: each call makes one entry, or fails for good. */
    entries_bytes = 400000 * PAGE;
    entries = mmap(NULL, entries_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(entries != MAP_FAILED);
    size_t used = 0;
    for (size_t at = PAGE; at < entries_bytes; at += 2 * PAGE, used += 2)
        if (mprotect(entries + at, PAGE, PROT_READ) != 0)
            break;
    CHECK_OF(errno == ENOMEM && used > 1000, used);
    /* The last few, which the loop's steps of two leave over. */
    for (int i = 0; i < 4; i++)
        mmap(NULL, PAGE, i % 2 ? PROT_READ : PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void check_without_entries(bool *worked)
{
    size_t sizes[] = {10, 500, 5000, 50000, 500000, 2 * MIB, 5 * MIB, 40 * MIB, 300 * MIB};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    for (int round = 0; round < 4; round++) {
        unsigned char *blocks[SIZES];
        for (int i = 0; i < SIZES; i++) {
            errno = 0;
            blocks[i] = i % 3 ? malloc(sizes[i]) : calloc(1, sizes[i]);
            CHECK_OF(blocks[i] || errno == ENOMEM, sizes[i]);
            if (blocks[i]) {
                *worked = true;
                fill(blocks[i], sizes[i], (uint64_t)i);
            }
        }
        for (int i = 0; i < SIZES; i++) {
            if (!blocks[i])
                continue;
            errno = 0;
            unsigned char *more = realloc(blocks[i], sizes[i] * 2);
            CHECK_OF(more || errno == ENOMEM, sizes[i]);
            blocks[i] = more ? more : blocks[i];
            CHECK_OF(is_filled(blocks[i], sizes[i], sizes[i], (uint64_t)i), sizes[i]);
            more = realloc(blocks[i], sizes[i] / 2 + 1);
            CHECK_OF(more || errno == ENOMEM, sizes[i]);
            blocks[i] = more ? more : blocks[i];
            CHECK_OF(is_filled(blocks[i], sizes[i] / 2 + 1, sizes[i], (uint64_t)i), sizes[i]);
        }
        for (int i = 0; i < SIZES; i++)
            free(blocks[i]);
        malloc_trim(0);
    }
}

static void used_up_map_entries(void)
{
    /* Something large and cached before, so that there is something to give back without entries. */
    void *block = malloc(64 * MIB);
    memset(block, 1, 64 * MIB);
    use_up_map_entries();
    free(block);
    bool worked = false;
    check_without_entries(&worked);
    pthread_t thread;
    if (pthread_create(&thread, NULL, take_and_return, (void *)1) == 0)
        CHECK(pthread_join(thread, NULL) == 0);
    CHECK(munmap(entries, entries_bytes) == 0);
    worked = false;
    check_without_entries(&worked);
    CHECK(worked);
}

/* Vellum spends no map entry a block. */
static size_t map_entries(void)
{
    int file = open("/proc/self/maps", O_RDONLY);
    CHECK(file >= 0);
    static char text[1 << 16];
    size_t lines = 0;
    ssize_t got;
    while ((got = read(file, text, sizeof text)) > 0)
        for (ssize_t i = 0; i < got; i++)
            lines += text[i] == '\n';
    close(file);
    return lines;
}

static void vellum_few_map_entries(void)
{
    enum { COUNT = 20000 };
    static void *blocks[COUNT];
    size_t before = map_entries();
    uint64_t state = seeded(1);
    for (int i = 0; i < COUNT; i++) {
        CHECK((blocks[i] = malloc(100 * KIB + next_random(&state) % (400 * KIB))) != NULL);
        *(char *)blocks[i] = 1; /* untouched memory leaves fewer entries when it moves */
    }
    for (int i = 0; i < COUNT; i += 2)
        free(blocks[i]);
    for (int i = 1; i < COUNT; i += 2)
        CHECK((blocks[i] = realloc(blocks[i], 200 * KIB + next_random(&state) % (MIB))) != NULL);
    size_t after = map_entries();
    /* 256 moves, with an entry for the block and one for what lies behind it; huge pages end at 64 places. */
    CHECK_OF(after <= before + 2 * 256 + 64, after - before);
    for (int i = 1; i < COUNT; i += 2)
        free(blocks[i]);
}

/* The limit comes from another process: by a child here. */
static void limited_by_another_process(void)
{
    free(malloc(MIB));
    pid_t child = fork();
    if (child == 0) {
        struct rlimit wanted = {LIMIT, LIMIT};
        _exit(prlimit(getppid(), RLIMIT_AS, &wanted, NULL) == 0 ? 0 : 1);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    for (size_t size = 64; size <= 4 * MIB; size *= 16) {
        size_t count = take_all(size, true);
        CHECK_OF(count * size >= LIMIT / 4, count);
    }
}

static const struct scenario scenarios[] = {
    {"limited_address_space", limited_address_space},
    {"limited_address_space_after_use", limited_address_space_after_use},
    {"limited_from_the_start", limited_from_the_start},
    {"limited_data", limited_data},
    {"limited_by_another_process", limited_by_another_process},
    {"growing_to_the_limit", growing_to_the_limit},
    {"threads_at_the_limit", threads_at_the_limit},
    {"used_up_map_entries", used_up_map_entries},
    {"vellum_few_map_entries", vellum_few_map_entries},
};

int main(int argc, char **argv)
{
    return DISPATCH(argc, argv, scenarios);
}
