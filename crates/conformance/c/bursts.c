/* Memory under a limit: `bursts KIND MIB SEED`. Everything that is taken is touched. A process alone never holds more
 * than MIB; what an allocator keeps beside that is its own affair, and must not kill anybody. */
#include "check.h"

static size_t most;

static void touch(char *block, size_t from, size_t to)
{
    for (size_t at = from; at < to; at += PAGE)
        block[at] = 1;
}

/* Take everything, give everything back, in blocks of changing sizes. */
static void whole_bursts(uint64_t *state)
{
    for (int round = 0; round < 12; round++) {
        size_t block = (size_t)64 << 10 << next_random(state) % 8, count = most / block;
        char **blocks = calloc(count, sizeof *blocks);
        for (size_t i = 0; i < count; i++) {
            CHECK((blocks[i] = malloc(block)) != NULL);
            touch(blocks[i], 0, block);
        }
        for (size_t i = 0; i < count; i++)
            free(blocks[i]);
        free(blocks);
    }
}

/* Small blocks, then large ones, then mappings: what one kind leaves must make room for the next. */
static void kinds_in_turn(uint64_t *state)
{
    for (int round = 0; round < 4; round++) {
        size_t size = 40 + next_random(state) % 2000, count = most * 4 / 5 / size;
        char **blocks = mmap(NULL, count * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(blocks != MAP_FAILED);
        for (size_t i = 0; i < count; i++)
            memset(blocks[i] = malloc(size), 1, size);
        for (size_t i = 0; i < count; i++)
            free(blocks[i]);
        munmap(blocks, count * sizeof *blocks);
        char *large = malloc(most);
        touch(large, 0, most);
        free(large);
        char *map = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(map != MAP_FAILED);
        touch(map, 0, most);
        munmap(map, most);
    }
}

static void growth(uint64_t *state)
{
    for (int round = 0; round < 4; round++) {
        size_t size = 100000 + next_random(state) % 100000;
        char *block = malloc(size);
        touch(block, 0, size);
        while (size < most) {
            size_t next = size + size / 5 + 64 * KIB;
            next = next > most ? most : next;
            block = realloc(block, next);
            CHECK(block != NULL);
            touch(block, size, next);
            size = next;
        }
        free(block);
    }
}

/* Two processes whose peaks alternate under one limit: each frees, and waits, before the other takes. */
static void take_turns(uint64_t *state, useconds_t wait)
{
    int there[2], back[2];
    CHECK(pipe(there) == 0 && pipe(back) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    int in = child ? back[0] : there[0], out = child ? there[1] : back[1];
    /* So that the end of one is seen by the other. */
    CHECK(close(child ? there[0] : back[0]) == 0 && close(child ? back[1] : there[1]) == 0);
    char byte = 0;
    for (int round = 0; round < 4; round++) {
        if (child == 0 || round > 0)
            CHECK(read(in, &byte, 1) == 1);
        size_t size = MIB << next_random(state) % 6, count = most / size;
        char *blocks[4096];
        for (size_t i = 0; i < count; i++) {
            CHECK((blocks[i] = malloc(size)) != NULL);
            touch(blocks[i], 0, size);
        }
        for (size_t i = 0; i < count; i++)
            free(blocks[i]);
        usleep(wait);
        CHECK(write(out, &byte, 1) == 1);
    }
    if (child == 0)
        _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_OF(status == 0, status);
}

static void taking_turns(uint64_t *state)
{
    take_turns(state, 0);
}

/* What is kept has been idle for some of the helper's ticks when the other process takes. */
static void taking_turns_slowly(uint64_t *state)
{
    take_turns(state, 600 * 1000);
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    most = strtoull(argv[2], NULL, 10) * MIB;
    uint64_t state = seeded(strtoull(argv[3], NULL, 10));
    void (*kinds[])(uint64_t *) = {whole_bursts, kinds_in_turn, growth, taking_turns, taking_turns_slowly};
    const char *names[] = {"whole_bursts", "kinds_in_turn", "growth", "taking_turns", "taking_turns_slowly"};
    for (int k = 0; k < 5; k++)
        if (strcmp(argv[1], names[k]) == 0) {
            kinds[k](&state);
            puts("done");
            return 0;
        }
    return 2;
}
