/* Bursts of blocks of which a few survive, so that hardly a slab is free as a whole: what stays resident, and whether the
 * survivors and whatever is allocated among them keep their contents.
 *
 * With the argument "measure", a table for people: resident MB after a burst, after ten idle seconds, after malloc_trim.
 * With "survive", it says how many bytes survive, as malloc_usable_size has it, and ends; with "survive-killed" and the
 * numbers of two counters it waits until its own of these say as much, and is killed. */
#include "check.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define THREADS 8
/* How long an idle process may take to give memory back before that counts as never. */
#define PATIENCE_MS 60000
#define MEASURED_MS 10000

struct block {
    void *start;
    size_t size;
};

struct burst {
    size_t least, most, bytes;
    unsigned kept_percent;
    /* Whether the threads sleep on what they have, or end. */
    bool stays;
    /* Whether all blocks are locked into memory. */
    bool locks;
};

struct worker {
    const struct burst *burst;
    uint64_t seed;
    struct block *blocks;
    size_t count;
    size_t live;
    pthread_t thread;
};

static atomic_int finished;
static atomic_bool over;
/* Whether memory could not be locked. */
static atomic_bool is_refused;

static uint64_t key_of(const struct block *block)
{
    return (uintptr_t)block->start ^ block->size;
}

static size_t size_between(uint64_t *state, size_t least, size_t most)
{
    if (most / least <= 16)
        return least + next_random(state) % (most - least + 1);
    /* As many of each order of magnitude. */
    unsigned shifts = 0;
    while (least << (shifts + 1) <= most)
        shifts++;
    size_t low = least << next_random(state) % shifts;
    return low + next_random(state) % low;
}

static void sparsen(struct worker *worker, uint64_t *state)
{
    size_t kept = 0;
    for (size_t i = 0; i < worker->count; i++) {
        struct block *block = &worker->blocks[i];
        if (next_random(state) % 100 < worker->burst->kept_percent) {
            worker->live += block->size;
            worker->blocks[kept++] = *block;
        } else {
            free(block->start);
        }
    }
    worker->count = kept;
}

static void lock(const struct block *block)
{
    uintptr_t start = (uintptr_t)block->start, first = start - start % PAGE;
    if (mlock((void *)first, start + block->size - first) != 0)
        is_refused = true;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    const struct burst *burst = worker->burst;
    uint64_t state = seeded(worker->seed);
    size_t bytes = 0;
    while (bytes < burst->bytes / THREADS) {
        struct block *block = &worker->blocks[worker->count++];
        block->size = size_between(&state, burst->least, burst->most);
        block->start = malloc(block->size);
        CHECK(block->start != NULL);
        fill(block->start, block->size, key_of(block));
        bytes += block->size;
        if (burst->locks)
            lock(block);
    }
    sparsen(worker, &state);
    finished++;
    while (burst->stays && !over)
        nap_ms(5);
    return NULL;
}

/* The room for a worker's list, outside what is measured. */
static void *room(size_t bytes)
{
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED);
    return start;
}

static struct worker workers[THREADS];

static size_t lists_bytes(const struct burst *burst)
{
    return (burst->bytes / THREADS / burst->least + 2) * sizeof(struct block);
}

/* Runs a burst and returns what is live after it. */
static size_t run(const struct burst *burst)
{
    size_t live = 0;
    finished = 0;
    over = false;
    for (size_t t = 0; t < THREADS; t++) {
        workers[t] = (struct worker){.burst = burst, .seed = t + 1, .blocks = room(lists_bytes(burst))};
        CHECK(pthread_create(&workers[t].thread, NULL, work, &workers[t]) == 0);
    }
    while (finished < THREADS)
        nap_ms(5);
    for (size_t t = 0; t < THREADS; t++) {
        if (!burst->stays)
            CHECK(pthread_join(workers[t].thread, NULL) == 0);
        live += workers[t].live;
    }
    return live;
}

/* Checks all that survived, allocates and frees among it, and frees it, in part by a thread that is not its owner. */
static void finish(const struct burst *burst)
{
    struct block others[2000];
    uint64_t state = seeded(7);
    for (size_t i = 0; i < 2000; i++) {
        others[i].size = size_between(&state, burst->least, burst->most);
        others[i].start = malloc(others[i].size);
        fill(others[i].start, others[i].size, key_of(&others[i]));
    }
    over = true;
    for (size_t t = 0; t < THREADS; t++) {
        if (burst->stays)
            CHECK(pthread_join(workers[t].thread, NULL) == 0);
        for (size_t i = 0; i < workers[t].count; i++) {
            struct block *block = &workers[t].blocks[i];
            CHECK(is_filled(block->start, block->size, block->size, key_of(block)));
            free(block->start);
        }
        munmap(workers[t].blocks, lists_bytes(burst));
    }
    for (size_t i = 0; i < 2000; i++) {
        CHECK(is_filled(others[i].start, others[i].size, others[i].size, key_of(&others[i])));
        free(others[i].start);
    }
}

static const struct burst SMALL = {16, 256, 50 * MIB, 2, false, false};
static const struct burst MIDDLING = {256, 4096, 200 * MIB, 2, false, false};

/* What may be resident: the pages of the survivors, in the worst case one each, and what a process has anyway. */
static size_t allowed(size_t live, const struct burst *burst)
{
    size_t survivors = 0;
    for (size_t t = 0; t < THREADS; t++)
        survivors += workers[t].count;
    size_t whole = burst->bytes / 10 * 7, pages = survivors * PAGE + live;
    return (pages < whole ? pages : whole) + 24 * MIB;
}

static void goes_back_alone(struct burst burst, bool stays)
{
    burst.stays = stays;
    size_t live = run(&burst), most = allowed(live, &burst), now = 0;
    for (int waited = 0; waited < PATIENCE_MS && (now = anonymous_bytes()) > most; waited += 20)
        nap_ms(20);
    CHECK_OF(now <= most, now);
    finish(&burst);
}

static void goes_back_at_once(struct burst burst, bool stays)
{
    burst.stays = stays;
    size_t live = run(&burst), most = allowed(live, &burst);
    malloc_trim(0);
    CHECK_OF(anonymous_bytes() <= most, anonymous_bytes());
    finish(&burst);
}

static void vellum_pages_among_survivors_go_back(void)
{
    goes_back_alone(MIDDLING, false);
    goes_back_alone(SMALL, false);
}

static void vellum_pages_of_sleeping_threads_go_back(void)
{
    goes_back_alone(MIDDLING, true);
    goes_back_alone(SMALL, true);
}

static void vellum_a_trim_gives_back_pages_among_survivors(void)
{
    goes_back_at_once(MIDDLING, false);
    goes_back_at_once(MIDDLING, true);
    goes_back_at_once(SMALL, false);
}

/* What is in use is counted, not the slabs around it. */
static void vellum_mallinfo_tells_survivors_from_the_rest(void)
{
    struct burst burst = MIDDLING;
    for (int stays = 0; stays < 2; stays++) {
        burst.stays = stays;
        size_t before = mallinfo2().uordblks, usable = 0;
        run(&burst);
        for (size_t t = 0; t < THREADS; t++)
            for (size_t i = 0; i < workers[t].count; i++)
                usable += malloc_usable_size(workers[t].blocks[i].start);
        size_t held = mallinfo2().uordblks - before;
        CHECK_OF(held >= usable / 100 * 95 && held <= usable / 100 * 105, held);
        malloc_trim(0);
        held = mallinfo2().uordblks - before;
        CHECK_OF(held >= usable / 100 * 95 && held <= usable / 100 * 105, held);
        CHECK(mallinfo2().arena <= burst.bytes / 10 * 7);
        finish(&burst);
    }
}

/* Pages that are locked into memory stay, and are not said to have gone; afterwards they go. */
static void vellum_locked_pages_go_once_they_are_not_locked(void)
{
    struct burst burst = {256, 1024, 6 * MIB, 10, true, true};
    run(&burst);
    if (!is_refused) {
        malloc_trim(0);
        size_t locked = mallinfo2().arena, resident = anonymous_bytes(), least = burst.bytes / 16;
        munlockall();
        malloc_trim(0);
        CHECK_OF(anonymous_bytes() + least <= resident, resident - anonymous_bytes());
        CHECK_OF(mallinfo2().arena + least <= locked, locked - mallinfo2().arena);
    }
    finish(&burst);
}

/* The same program while pages go back and come again, over and over. */
static void survivors_keep_their_contents(void)
{
    for (int round = 0; round < 6; round++) {
        struct burst burst = {16, 3000, 40 * MIB, 10, round % 2, false};
        run(&burst);
        malloc_trim(0);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            struct burst little = {16, 3000, 4 * MIB, 10, false, false};
            for (size_t t = 0; t < THREADS; t++)
                for (size_t i = 0; i < workers[t].count; i++) {
                    struct block *block = &workers[t].blocks[i];
                    CHECK(is_filled(block->start, block->size, block->size, key_of(block)));
                    free(block->start);
                }
            run(&little);
            malloc_trim(0);
            finish(&little);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        finish(&burst);
    }
}

static int compare_pages(const void *a, const void *b)
{
    uintptr_t left = *(const uintptr_t *)a, right = *(const uintptr_t *)b;
    return left < right ? -1 : left > right;
}

/* The pages that hold a part of a survivor. */
static size_t pages_of_survivors(void)
{
    size_t most = 0, count = 0, pages = 0;
    for (size_t t = 0; t < THREADS; t++)
        for (size_t i = 0; i < workers[t].count; i++)
            most += workers[t].blocks[i].size / PAGE + 2;
    uintptr_t *list = room(most * sizeof *list);
    for (size_t t = 0; t < THREADS; t++)
        for (size_t i = 0; i < workers[t].count; i++) {
            uintptr_t start = (uintptr_t)workers[t].blocks[i].start;
            for (uintptr_t page = start / PAGE; page <= (start + workers[t].blocks[i].size - 1) / PAGE; page++)
                list[count++] = page;
        }
    qsort(list, count, sizeof *list, compare_pages);
    for (size_t i = 0; i < count; i++)
        pages += i == 0 || list[i] != list[i - 1];
    munmap(list, most * sizeof *list);
    return pages;
}

static void measure(const char *name, struct burst burst, bool stays)
{
    burst.stays = stays;
    size_t live = run(&burst), after = anonymous_bytes(), pages = pages_of_survivors();
    nap_ms(MEASURED_MS);
    size_t idle = anonymous_bytes();
    struct mallinfo2 info = mallinfo2();
    struct rusage before, done;
    getrusage(RUSAGE_SELF, &before);
    malloc_trim(0);
    getrusage(RUSAGE_SELF, &done);
    printf("%-24s %-7s live %4zu (pages %4zu)  burst %5zu  idle %5zu  trim %5zu (%ld ms)  in use by mallinfo2 %4zu, free %4zu\n", name,
           stays ? "asleep" : "ended", live / MIB, pages * PAGE / MIB, after / MIB, idle / MIB, anonymous_bytes() / MIB,
           (done.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000 + (done.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1000,
           (info.uordblks + info.hblkhd) / MIB, info.fordblks / MIB);
    finish(&burst);
}

static void measure_apart(const char *name, struct burst burst, bool stays)
{
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        measure(name, burst, stays);
        exit(0);
    }
    waitpid(child, NULL, 0);
}

static const struct scenario scenarios[] = {
    {"vellum_pages_among_survivors_go_back", vellum_pages_among_survivors_go_back},
    {"vellum_pages_of_sleeping_threads_go_back", vellum_pages_of_sleeping_threads_go_back},
    {"vellum_a_trim_gives_back_pages_among_survivors", vellum_a_trim_gives_back_pages_among_survivors},
    {"vellum_mallinfo_tells_survivors_from_the_rest", vellum_mallinfo_tells_survivors_from_the_rest},
    {"vellum_locked_pages_go_once_they_are_not_locked", vellum_locked_pages_go_once_they_are_not_locked},
    {"survivors_keep_their_contents", survivors_keep_their_contents},
};

/* The first words of what the library exports, and of what that leads to. */
struct exported {
    uint64_t magic;
    uint32_t version, slot_bytes;
    struct {
        uint32_t pid, attach;
        uint64_t since, name[2], counters[];
    } *slot;
};

static bool is_close(size_t found, size_t expected)
{
    return found >= expected / 100 * 95 && found <= expected / 100 * 105;
}

/* `counters`: NULL, or the numbers of the counters of bytes in use and of bytes gone from slabs. */
static int survive(char **counters)
{
    size_t usable = 0;
    run(&MIDDLING);
    for (size_t t = 0; t < THREADS; t++)
        for (size_t i = 0; i < workers[t].count; i++)
            usable += malloc_usable_size(workers[t].blocks[i].start);
    malloc_trim(0);
    printf("%zu\n", usable);
    fflush(stdout);
    if (counters == NULL)
        return 0;
    struct exported *exported = dlsym(RTLD_DEFAULT, "vellum_counters");
    CHECK(exported != NULL && exported->slot != NULL);
    volatile uint64_t *in_use = &exported->slot->counters[atoi(counters[0])];
    volatile uint64_t *gone = &exported->slot->counters[atoi(counters[1])];
    /* Both: the helper may have counted last before the memory went. */
    for (int waited = 0; waited < PATIENCE_MS && !(is_close(*in_use, usable) && *gone > usable); waited += 20)
        nap_ms(20);
    CHECK_OF(is_close(*in_use, usable), *in_use);
    CHECK_OF(*gone > usable, *gone);
    raise(SIGKILL);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "survive") == 0)
        return survive(NULL);
    if (argc == 4 && strcmp(argv[1], "survive-killed") == 0)
        return survive(argv + 2);
    if (argc == 2 && strcmp(argv[1], "measure") == 0) {
        for (int stays = 0; stays < 2; stays++) {
            measure_apart("256 B-4 KiB, 2 %", (struct burst){256, 4096, 950 * MIB, 2, false, false}, stays);
            measure_apart("16-256 B, 2 %", (struct burst){16, 256, 64 * MIB, 2, false, false}, stays);
            measure_apart("16 B-1 MB, 2 %", (struct burst){16, 1000000, 2300 * MIB, 2, false, false}, stays);
        }
        return 0;
    }
    return DISPATCH(argc, argv, scenarios);
}
