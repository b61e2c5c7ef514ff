/* Threads, forks, random sizes and random lifetimes: `stress SEED THREADS STEPS FORKS`. Every block is filled with a
 * pattern of its own and checked whenever it is touched again. Prints one line when all went well. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

enum { OWN = 400, SHARED = 256 };

struct block {
    size_t size;
    uint64_t key;
    /* The pattern follows. */
};

static _Atomic(struct block *) shared[SHARED];
static uint64_t seed;
static int steps;

static struct block *checked(struct block *block)
{
    if (block)
        CHECK_OF(is_filled(block + 1, block->size, block->size, block->key), block->size);
    return block;
}

static size_t some_size(uint64_t *state)
{
    uint64_t dice = next_random(state) % 1000;
    return random_size(state, dice < 900 ? 2000 : dice < 990 ? 100000 : 6 * MIB);
}

static struct block *filled(void *start, size_t size, uint64_t *state)
{
    struct block *block = start;
    CHECK(block != NULL);
    block->size = size;
    block->key = next_random(state);
    fill(block + 1, size, block->key);
    return block;
}

static struct block *made(uint64_t *state)
{
    size_t size = some_size(state), whole = size + sizeof(struct block);
    switch (next_random(state) % 8) {
    case 0: {
        char *start = calloc(1, whole);
        CHECK(start && is_zero(start, whole));
        return filled(start, size, state);
    }
    case 1: {
        size_t align = (size_t)16 << next_random(state) % 12;
        void *start = aligned_alloc(align, whole);
        CHECK_OF(start && is_aligned(start, align), align);
        return filled(start, size, state);
    }
    case 2:
        return filled(realloc(NULL, whole), size, state);
    default:
        return filled(malloc(whole), size, state);
    }
}

static struct block *resized(struct block *block, uint64_t *state)
{
    size_t old = block->size, size = some_size(state);
    uint64_t key = block->key;
    block = realloc(block, size + sizeof *block);
    CHECK(block != NULL);
    CHECK_OF(is_filled(block + 1, size, old, key), old);
    return filled(block, size, state);
}

/* Pages of a mapping that do not hold what they were filled with. */
static void say_what_is_wrong(const unsigned char *map, size_t size)
{
    for (size_t i = 0; i < size; i += pattern_step(i, size)) {
        if (map[i] != pattern_at(size, i)) {
            const unsigned char *page = map + i / PAGE * PAGE;
            fprintf(stderr, "page %zu of %zu: %s\n", i / PAGE, size / PAGE, is_zero(page, PAGE) ? "zeros" : "something else");
        }
    }
}

static void use_mapping(uint64_t *state)
{
    size_t size = (1 + next_random(state) % 300) * PAGE;
    unsigned char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED && is_zero(map, size));
    fill(map, size, size);
    if (next_random(state) % 3 == 0) {
        size_t more = size + next_random(state) % 100 * PAGE;
        map = mremap(map, size, more, MREMAP_MAYMOVE);
        CHECK_OF(map != MAP_FAILED, size);
        say_what_is_wrong(map, size);
        CHECK_OF(is_filled(map, size, size, size), size);
        CHECK_OF(is_zero(map + size, more - size), size);
        size = more;
    }
    CHECK(munmap(map, size) == 0);
}

static void work(uint64_t number, int count)
{
    uint64_t state = seeded(seed * 1000003 + number);
    struct block *own[OWN] = {0};
    for (int step = 0; step < count; step++) {
        size_t slot = next_random(&state) % OWN;
        uint64_t dice = next_random(&state) % 100;
        if (dice < 45) {
            free(checked(own[slot]));
            own[slot] = made(&state);
        } else if (dice < 60) {
            if (own[slot])
                own[slot] = resized(checked(own[slot]), &state);
        } else if (dice < 75)
            own[slot] = checked(atomic_exchange(&shared[next_random(&state) % SHARED], own[slot]));
        else if (dice < 98) {
            free(checked(own[slot]));
            own[slot] = NULL;
        } else
            use_mapping(&state);
    }
    for (int slot = 0; slot < OWN; slot++)
        free(checked(own[slot]));
}

static void *worker(void *argument)
{
    work((uintptr_t)argument, steps);
    return NULL;
}

/* Short-lived threads beside the long-lived ones. */
static void *visitors(void *argument)
{
    for (uintptr_t i = 0; i < 30; i++) {
        pthread_t thread;
        uintptr_t number = (uintptr_t)argument * 100 + i;
        CHECK(pthread_create(&thread, NULL, worker, (void *)number) == 0 && pthread_join(thread, NULL) == 0);
    }
    return NULL;
}

static void fork_once(uint64_t number)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(120);
        work(number, steps / 10);
        for (int i = 0; i < SHARED; i++)
            free(checked(atomic_exchange(&shared[i], NULL)));
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_OF(status == 0, status);
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    seed = strtoull(argv[1], NULL, 10);
    int threads = atoi(argv[2]), forks = atoi(argv[4]);
    steps = atoi(argv[3]);
    CHECK(threads > 0 && threads < 100);
    pthread_t ids[100];
    for (uintptr_t t = 0; t < (uintptr_t)threads; t++)
        CHECK(pthread_create(&ids[t], NULL, worker, (void *)(t + 1)) == 0);
    for (int i = 0; i < forks; i++)
        fork_once(10000 + (uint64_t)i);
    for (int t = 0; t < threads; t++)
        CHECK(pthread_join(ids[t], NULL) == 0);
    steps /= 20;
    visitors((void *)1000);
    for (int i = 0; i < SHARED; i++)
        free(checked(atomic_exchange(&shared[i], NULL)));
    printf("seed %" PRIu64 " done\n", seed);
    return 0;
}
