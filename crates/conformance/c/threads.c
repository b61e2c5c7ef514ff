/* Threads that come and go, free for each other, and sleep on memory they have freed. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

/* How long an idle process may take to give memory back before that counts as never. */
#define PATIENCE_MS 60000

static void start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    CHECK(pthread_create(thread, NULL, run, argument) == 0);
}

static void join(pthread_t thread)
{
    CHECK(pthread_join(thread, NULL) == 0);
}

static void *mixed_work(void *argument)
{
    uint64_t state = seeded((uintptr_t)argument);
    void *blocks[200] = {0};
    for (int i = 0; i < 2000; i++) {
        size_t slot = next_random(&state) % 200, size = random_size(&state, i % 100 ? 3000 : 300000);
        free(blocks[slot]);
        blocks[slot] = malloc(size);
        memset(blocks[slot], (int)slot, size < 64 ? size : 64);
    }
    for (size_t slot = 0; slot < 200; slot++)
        free(blocks[slot]);
    return NULL;
}

static void threads_come_and_go(void)
{
    size_t settled = 0;
    for (int round = 0; round < 300; round++) {
        pthread_t threads[4];
        for (uintptr_t t = 0; t < 4; t++)
            start(&threads[t], mixed_work, (void *)(t + 1 + 4 * (uintptr_t)round));
        for (int t = 0; t < 4; t++)
            join(threads[t]);
        if (round == 100)
            settled = resident_bytes();
    }
    size_t now = resident_bytes();
    CHECK_OF(now <= settled + 16 * MIB, now - settled);
}

static void *one_block(void *argument)
{
    char *block = malloc((size_t)argument);
    memset(block, 7, (size_t)argument);
    return block;
}

/* Blocks outlive the threads that made them. */
static void blocks_outlive_their_threads(void)
{
    enum { COUNT = 1000 };
    static char *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        pthread_t thread;
        void *block;
        start(&thread, one_block, (void *)(i * i % 100000 + 1));
        CHECK(pthread_join(thread, &block) == 0);
        blocks[i] = block;
    }
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = i * i % 100000 + 1;
        CHECK_OF(blocks[i][0] == 7 && blocks[i][size - 1] == 7, i);
        blocks[i] = realloc(blocks[i], size + 1000);
        CHECK_OF(blocks[i][0] == 7 && blocks[i][size - 1] == 7, i);
        free(blocks[i]);
    }
}

enum { RING = 1024, PASSED = 300000 };
static _Atomic(void *) ring[RING];
static atomic_bool stop;

static void *producer(void *argument)
{
    uint64_t state = seeded((uintptr_t)argument);
    for (size_t i = 0; i < PASSED; i++) {
        size_t size = 16 + random_size(&state, i % 1000 ? 2000 : 400000);
        size_t *block = malloc(size);
        block[0] = size;
        ((unsigned char *)block)[size - 1] = (unsigned char)size;
        block = atomic_exchange(&ring[next_random(&state) % RING], block);
        if (block) {
            size = block[0];
            CHECK(((unsigned char *)block)[size - 1] == (unsigned char)size || size == 16);
            free(block);
        }
    }
    return NULL;
}

static void *consumer(void *argument)
{
    uint64_t state = seeded((uintptr_t)argument);
    while (!stop) {
        size_t *block = atomic_exchange(&ring[next_random(&state) % RING], NULL);
        if (block) {
            CHECK(((unsigned char *)block)[block[0] - 1] == (unsigned char)block[0] || block[0] == 16);
            free(block);
        }
    }
    return NULL;
}

static void blocks_are_freed_by_others(void)
{
    pthread_t threads[4];
    stop = false;
    start(&threads[0], producer, (void *)1);
    start(&threads[1], producer, (void *)2);
    start(&threads[2], consumer, (void *)3);
    start(&threads[3], consumer, (void *)4);
    join(threads[0]);
    join(threads[1]);
    stop = true;
    join(threads[2]);
    join(threads[3]);
    for (int i = 0; i < RING; i++)
        free(atomic_exchange(&ring[i], NULL));
}

static pthread_key_t keys[3];
static atomic_int destroyed;

static void destroy(void *value)
{
    free(value);
    void *other = malloc(300);
    memset(other, 1, 300);
    free(other);
    free(malloc(200000));
    destroyed++;
}

static void destroy_twice(void *value)
{
    /* A destructor may set its key again, and is called again, after other destructors and the allocator's own. */
    if (*(int *)value > 0) {
        int *next = malloc(sizeof *next);
        *next = *(int *)value - 1;
        pthread_setspecific(keys[2], next);
    }
    free(value);
    destroyed++;
}

static void *with_keys(void *argument)
{
    (void)argument;
    pthread_setspecific(keys[0], malloc(100));
    pthread_setspecific(keys[1], strdup("a value"));
    int *count = malloc(sizeof *count);
    *count = 3;
    pthread_setspecific(keys[2], count);
    return NULL;
}

static void destructors_allocate_and_free(void)
{
    CHECK(pthread_key_create(&keys[0], destroy) == 0);
    CHECK(pthread_key_create(&keys[1], free) == 0);
    CHECK(pthread_key_create(&keys[2], destroy_twice) == 0);
    size_t settled = 0;
    for (int i = 0; i < 500; i++) {
        pthread_t thread;
        start(&thread, with_keys, NULL);
        join(thread);
        if (i == 200)
            settled = resident_bytes();
    }
    CHECK_OF(destroyed == 500 * 5, destroyed);
    CHECK(resident_bytes() <= settled + 4 * MIB);
}

static atomic_int at_work;
static pthread_barrier_t barrier;

static void *crowd(void *argument)
{
    size_t size = 100 + (size_t)argument * 10;
    char *blocks[64];
    for (int i = 0; i < 64; i++)
        memset(blocks[i] = malloc(size + (size_t)i * 100), 1, size);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    return NULL;
}

static void a_crowd_of_threads(void)
{
    enum { CROWD = 300 };
    pthread_t threads[CROWD];
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 128 * KIB) == 0);
    CHECK(pthread_barrier_init(&barrier, NULL, CROWD) == 0);
    for (size_t t = 0; t < CROWD; t++)
        CHECK(pthread_create(&threads[t], &attributes, crowd, (void *)t) == 0);
    for (size_t t = 0; t < CROWD; t++)
        join(threads[t]);
}

static void *endless(void *argument)
{
    for (;;)
        mixed_work(argument);
    return NULL;
}

static void the_process_ends_while_others_allocate(void)
{
    pthread_t thread;
    for (uintptr_t t = 1; t <= 3; t++)
        start(&thread, endless, (void *)t);
    nap_ms(100);
    puts("ending");
    exit(0);
}

/* Idle threads. Each takes `EACH` bytes, frees them, and sleeps without ever allocating again. */
enum { SLEEPERS = 4 };
#define EACH (48 * MIB)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static bool awake;

static void sleep_until_woken(void)
{
    pthread_mutex_lock(&mutex);
    while (!awake)
        pthread_cond_wait(&wake, &mutex);
    pthread_mutex_unlock(&mutex);
}

struct load {
    size_t block;
    void ***blocks;
    bool frees;
};

static void *sleeper(void *argument)
{
    struct load *load = argument;
    size_t count = EACH / load->block;
    void **blocks = mmap(NULL, count * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(blocks != MAP_FAILED);
    for (size_t i = 0; i < count; i++) {
        CHECK((blocks[i] = malloc(load->block)) != NULL);
        memset(blocks[i], 1, load->block);
    }
    *load->blocks = blocks;
    if (load->frees) {
        pthread_barrier_wait(&barrier);
        for (size_t i = 0; i < count; i++)
            free(blocks[i]);
        munmap(blocks, count * sizeof *blocks);
    }
    at_work--;
    sleep_until_woken();
    return NULL;
}

static void sleepers(size_t block, bool free_themselves)
{
    pthread_t threads[SLEEPERS];
    struct load loads[SLEEPERS];
    void **blocks[SLEEPERS];
    size_t before = resident_bytes();
    CHECK(pthread_barrier_init(&barrier, NULL, SLEEPERS + 1) == 0);
    at_work = SLEEPERS;
    awake = false;
    for (int t = 0; t < SLEEPERS; t++) {
        loads[t] = (struct load){block, &blocks[t], free_themselves};
        start(&threads[t], sleeper, &loads[t]);
    }
    if (free_themselves) {
        pthread_barrier_wait(&barrier);
        while (at_work)
            nap_ms(1);
    } else {
        while (at_work)
            nap_ms(1);
        for (int t = 0; t < SLEEPERS; t++) {
            for (size_t i = 0; i < EACH / block; i++)
                free(blocks[t][i]);
            munmap(blocks[t], EACH / block * sizeof(void *));
        }
    }
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    CHECK_OF((size_t)usage.ru_maxrss * KIB >= before + SLEEPERS * EACH, usage.ru_maxrss);
    /* Nothing in this process allocates or frees from here on. */
    size_t now = 0, enough = before + SLEEPERS * EACH / 10 + 2 * MIB;
    for (int waited = 0; waited < PATIENCE_MS && (now = resident_bytes()) > enough; waited += 20)
        nap_ms(20);
    CHECK_OF(now <= enough, now - before);
    pthread_mutex_lock(&mutex);
    awake = true;
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&mutex);
    for (int t = 0; t < SLEEPERS; t++)
        join(threads[t]);
}

static void vellum_idle_threads_return_small_blocks(void)
{
    sleepers(48, true);
}

static void vellum_idle_threads_return_middling_blocks(void)
{
    sleepers(5000, true);
}

static void vellum_idle_threads_return_large_blocks(void)
{
    sleepers(200 * KIB, true);
}

static void vellum_idle_threads_return_huge_blocks(void)
{
    sleepers(12 * MIB, true);
}

static void vellum_idle_owners_return_what_others_free(void)
{
    sleepers(64, false);
    sleepers(3000, false);
    sleepers(40000, false);
}

static void vellum_a_burst_goes_back(void)
{
    size_t before = resident_bytes(), now = 0;
    void *block = malloc(300 * MIB);
    memset(block, 1, 300 * MIB);
    CHECK(resident_bytes() >= before + 300 * MIB);
    free(block);
    for (int waited = 0; waited < PATIENCE_MS && (now = resident_bytes()) > before + 8 * MIB; waited += 20)
        nap_ms(20);
    CHECK_OF(now <= before + 8 * MIB, now - before);
}

static const struct scenario scenarios[] = {
    {"threads_come_and_go", threads_come_and_go},
    {"blocks_outlive_their_threads", blocks_outlive_their_threads},
    {"blocks_are_freed_by_others", blocks_are_freed_by_others},
    {"destructors_allocate_and_free", destructors_allocate_and_free},
    {"a_crowd_of_threads", a_crowd_of_threads},
    {"the_process_ends_while_others_allocate", the_process_ends_while_others_allocate},
    {"vellum_idle_threads_return_small_blocks", vellum_idle_threads_return_small_blocks},
    {"vellum_idle_threads_return_middling_blocks", vellum_idle_threads_return_middling_blocks},
    {"vellum_idle_threads_return_large_blocks", vellum_idle_threads_return_large_blocks},
    {"vellum_idle_threads_return_huge_blocks", vellum_idle_threads_return_huge_blocks},
    {"vellum_idle_owners_return_what_others_free", vellum_idle_owners_return_what_others_free},
    {"vellum_a_burst_goes_back", vellum_a_burst_goes_back},
};

int main(int argc, char **argv)
{
    return DISPATCH(argc, argv, scenarios);
}
