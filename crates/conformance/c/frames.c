/* A program all of whose memory has few frames: small blocks, mappings, what the C library keeps in them.
   Scenarios by name; without one, their names. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { printf("line %d: %s: errno %d\n", __LINE__, #what, errno); exit(1); } } while (0)
#define BLOCKS 60000
#define PAGE 4096

static uint64_t mixed(uint64_t x) { x *= 0x9e3779b97f4a7c15u; return x ^ x >> 29; }

/* Blocks of all sizes, 30 MB together: each begins with its seed, and holds what follows from it. */
struct block { uint64_t seed; size_t words; uint64_t word[]; };
static struct block *blocks[BLOCKS];
static size_t words_of(uint64_t seed) { size_t most = seed % 50 ? 100 : 6000; return mixed(seed) % most; }
static struct block *make(uint64_t seed) {
    size_t words = words_of(seed);
    struct block *block = malloc(sizeof *block + words * 8);
    CHECK(block);
    block->seed = seed;
    block->words = words;
    for (size_t i = 0; i < words; i++) block->word[i] = mixed(seed + i);
    return block;
}
static void check(const struct block *block, uint64_t seed) {
    CHECK(block->seed == seed && block->words == words_of(seed));
    for (size_t i = 0; i < block->words; i++) CHECK(block->word[i] == mixed(seed + i));
}
static void make_all(void) { for (size_t i = 0; i < BLOCKS; i++) blocks[i] = make(i); }
static void check_all(void) { for (size_t i = 0; i < BLOCKS; i++) check(blocks[i], i); }

static void small(void) {
    make_all();
    check_all();
    uint64_t x = 1;
    for (int i = 0; i < 3000; i++) {
        x = mixed(x + 1);
        size_t which = x % BLOCKS;
        check(blocks[which], which);
        if (x >> 40 & 1) {
            free(blocks[which]);
            blocks[which] = make(which);
        } else {
            struct block *block = realloc(blocks[which], sizeof *block + words_of(which) * 8 + x % 5000);
            CHECK(block);
            blocks[which] = block;
        }
    }
    check_all();
    for (size_t i = 0; i < BLOCKS; i += 2) free(blocks[i]);
    for (size_t i = 1; i < BLOCKS; i += 2) check(blocks[i], i);
    for (size_t i = 0; i < BLOCKS; i += 2) {
        size_t bytes = 16 + mixed(i) % 3000;
        char *zeros = calloc(1, bytes);
        CHECK(zeros);
        for (size_t at = 0; at < bytes; at++) CHECK(!zeros[at]);
        memset(zeros, 1, bytes);
        if (i % 4) free(zeros);
    }
    for (size_t i = 1; i < BLOCKS; i += 2) check(blocks[i], i);
}

static void *free_odd(void *unused) {
    (void)unused;
    for (size_t i = 1; i < BLOCKS; i += 2) { check(blocks[i], i); free(blocks[i]); blocks[i] = NULL; }
    return NULL;
}
static void *make_some(void *first) {
    struct block *own[4000];
    for (size_t i = 0; i < 4000; i++) own[i] = make((uintptr_t)first + i);
    for (size_t i = 0; i < 4000; i++) { check(own[i], (uintptr_t)first + i); free(own[i]); }
    return NULL;
}
static void threads(void) {
    pthread_t ids[4];
    make_all();
    CHECK(!pthread_create(&ids[0], NULL, free_odd, NULL));
    for (uintptr_t i = 1; i < 4; i++) CHECK(!pthread_create(&ids[i], NULL, make_some, (void *)(i * 1000000)));
    for (size_t i = 0; i < BLOCKS; i += 2) check(blocks[i], i);
    for (int i = 0; i < 4; i++) CHECK(!pthread_join(ids[i], NULL));
    for (size_t i = 1; i < BLOCKS; i += 2) blocks[i] = make(i);
    check_all();
}

#define MAPS 32
#define MAP_BYTES (1u << 20)
static void fill_map(unsigned char *map, int seed) { for (size_t i = 0; i < MAP_BYTES; i += 8) *(uint64_t *)(map + i) = mixed(seed * MAP_BYTES + i); }
static void check_part(const unsigned char *map, int seed, size_t from, size_t to) {
    for (size_t i = from; i < to; i += 8) CHECK(*(uint64_t *)(map + i) == mixed(seed * MAP_BYTES + i));
}
static void *anonymous(size_t bytes) { return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static void mappings(void) {
    unsigned char *maps[MAPS];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MAPS; i++) {
            maps[i] = anonymous(MAP_BYTES);
            CHECK(maps[i] != MAP_FAILED);
            for (size_t at = 0; at < MAP_BYTES; at += PAGE) CHECK(!maps[i][at] && !maps[i][at + PAGE - 1]);
            fill_map(maps[i], i);
        }
        for (int i = 0; i < MAPS; i++) check_part(maps[i], i, 0, MAP_BYTES);
        for (int i = 0; i < MAPS; i++) {
            unsigned char *map = maps[i];
            switch (i % 8) {
            case 0: /* its ends */
                CHECK(!munmap(map, 10 * PAGE) && !munmap(map + MAP_BYTES - 20 * PAGE, 20 * PAGE));
                check_part(map, i, 10 * PAGE, MAP_BYTES - 20 * PAGE);
                CHECK(!munmap(map + 10 * PAGE, MAP_BYTES - 30 * PAGE));
                break;
            case 1: /* its middle */
                CHECK(!munmap(map + 50 * PAGE, 100 * PAGE));
                check_part(map, i, 0, 50 * PAGE);
                check_part(map, i, 150 * PAGE, MAP_BYTES);
                CHECK(!munmap(map, 50 * PAGE) && !munmap(map + 150 * PAGE, MAP_BYTES - 150 * PAGE));
                break;
            case 2: /* protected, in part, and given back so */
                CHECK(!mprotect(map, 16 * PAGE, PROT_READ) && !mprotect(map + 32 * PAGE, PAGE, PROT_NONE));
                check_part(map, i, 0, 32 * PAGE);
                check_part(map, i, 33 * PAGE, MAP_BYTES);
                if (round) {
                    CHECK(!mprotect(map + 32 * PAGE, PAGE, PROT_READ | PROT_WRITE));
                    check_part(map, i, 32 * PAGE, 33 * PAGE);
                }
                CHECK(!munmap(map, MAP_BYTES));
                break;
            case 3: /* replaced, in part */
                CHECK(mmap(map + 8 * PAGE, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == map + 8 * PAGE);
                for (size_t at = 8 * PAGE; at < 16 * PAGE; at++) CHECK(!map[at]);
                check_part(map, i, 0, 8 * PAGE);
                check_part(map, i, 16 * PAGE, MAP_BYTES);
                CHECK(!munmap(map, MAP_BYTES));
                break;
            case 4: /* longer, and shorter */
                map = mremap(map, MAP_BYTES, 2 * MAP_BYTES, MREMAP_MAYMOVE);
                CHECK(map != MAP_FAILED);
                check_part(map, i, 0, MAP_BYTES);
                for (size_t at = MAP_BYTES; at < 2 * MAP_BYTES; at++) CHECK(!map[at]);
                map[2 * MAP_BYTES - 1] = 1;
                CHECK(mremap(map, 2 * MAP_BYTES, MAP_BYTES / 2, 0) == map);
                check_part(map, i, 0, MAP_BYTES / 2);
                CHECK(!munmap(map, MAP_BYTES / 2));
                break;
            case 5: /* dropped */
                CHECK(!madvise(map + PAGE, 3 * PAGE, MADV_DONTNEED));
                for (size_t at = PAGE; at < 4 * PAGE; at++) CHECK(!map[at]);
                check_part(map, i, 4 * PAGE, MAP_BYTES);
                CHECK(!munmap(map, MAP_BYTES));
                break;
            case 6: /* locked */
                if (!mlock(map, 4 * PAGE)) check_part(map, i, 0, 4 * PAGE);
                CHECK(!munmap(map, MAP_BYTES));
                break;
            default: /* with what follows it, if that is its own */
                CHECK(!munmap(map, MAP_BYTES));
            }
        }
    }
}

/* Structures in small blocks whose pages are out, handed to the kernel. */
static void calls(void) {
    struct { char path[64]; struct stat stat; struct pollfd poll; struct sigaction action; struct timespec time; cpu_set_t set; int ends[2]; char text[300]; } *here[200];
    make_all();
    for (int i = 0; i < 200; i++) {
        CHECK(here[i] = malloc(sizeof *here[i]));
        strcpy(here[i]->path, "/dev/null");
        for (int j = 0; j < 300; j++) here[i]->text[j] = mixed(i + j);
    }
    check_all();
    for (int i = 0; i < 200; i++) {
        CHECK(!stat(here[i]->path, &here[i]->stat) && S_ISCHR(here[i]->stat.st_mode));
        CHECK(!pipe(here[i]->ends));
        check(blocks[i * 250], i * 250);
    }
    check_all();
    for (int i = 0; i < 200; i++) {
        here[i]->poll = (struct pollfd){.fd = here[i]->ends[0], .events = POLLIN};
        CHECK(write(here[i]->ends[1], here[i]->text, 300) == 300 && poll(&here[i]->poll, 1, -1) == 1);
    }
    check_all();
    for (int i = 0; i < 200; i++) {
        int *ends = here[i]->ends;
        CHECK(read(ends[0], here[(i + 1) % 200]->text, 300) == 300 && !close(ends[0]) && !close(ends[1]));
        CHECK(!sigaction(SIGUSR1, NULL, &here[i]->action) && !clock_gettime(CLOCK_MONOTONIC, &here[i]->time));
        CHECK(!sched_getaffinity(0, sizeof here[i]->set, &here[i]->set));
    }
    check_all();
    for (int i = 0; i < 200; i++) for (int j = 0; j < 300; j++) CHECK(here[(i + 1) % 200]->text[j] == (char)mixed(i + j));
}

/* Signal handlers on a stack in a block, while memory goes. */
static volatile sig_atomic_t handled;
static void handler(int signal) {
    char room[3000];
    memset(room, signal, sizeof room);
    CHECK(room[handled % 3000] == signal);
    handled++;
}
static void signals(void) {
    stack_t stack = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    CHECK(stack.ss_sp && !sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &action, NULL));
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = make(i);
        if (i % 200 == 0) raise(SIGUSR1);
    }
    check_all();
    CHECK(handled == BLOCKS / 200);
    struct sigaction usual = {.sa_handler = SIG_DFL};
    stack.ss_flags = SS_DISABLE;
    CHECK(!sigaction(SIGUSR1, &usual, NULL) && !sigaltstack(&stack, NULL));
}

/* Children see every block, also in a process of several threads, where glibc goes through its open files. */
static volatile int is_over;
static void *allocate_on(void *first) {
    while (!is_over) make_some(first);
    return NULL;
}
/* Has what glibc writes in the child of several threads before it runs handlers: a lock of an open file, values of more keys than fit into a thread's own memory. */
static FILE *locked;
static _Atomic int is_ready;
static void *keep_state(void *argument) {
    pthread_key_t keys[40];
    for (int i = 0; i < 40; i++) CHECK(!pthread_key_create(&keys[i], NULL) && !pthread_setspecific(keys[i], &keys[i]));
    flockfile(locked);
    is_ready = 1;
    while (!is_over) usleep(1000);
    funlockfile(locked);
    for (int i = 0; i < 40; i++) CHECK(pthread_getspecific(keys[i]) == &keys[i]);
    return argument;
}
static void forks(void) {
    FILE *files[20];
    pthread_t id, keeper;
    int status;
    make_all();
    for (int i = 0; i < 20; i++) CHECK(files[i] = fopen("/dev/null", "w"));
    CHECK(locked = fopen("/dev/null", "w"));
    /* The state of name services is a block. */
    CHECK(getpwuid(0));
    CHECK(!pthread_create(&keeper, NULL, keep_state, NULL));
    while (!is_ready) usleep(1000);
    CHECK(!pthread_create(&id, NULL, allocate_on, (void *)5000000));
    check_all();
    for (int round = 0; round < 4; round++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            check_all();
            for (int i = 0; i < 20; i++) CHECK(fprintf(files[i], "%d\n", i) > 0 && !fflush(files[i]));
#ifdef __GLIBC__
            CHECK(fprintf(locked, "child\n") > 0 && !fflush(locked));
#endif
            CHECK(getpwuid(0));
            for (size_t i = 0; i < BLOCKS; i += 3) { free(blocks[i]); blocks[i] = make(i); }
            check_all();
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        check(blocks[round], round);
        for (int i = 0; i < 20; i++) CHECK(fprintf(files[i], "%d\n", i) > 0);
    }
    is_over = 1;
    CHECK(!pthread_join(id, NULL) && !pthread_join(keeper, NULL));
    CHECK(system("true") == 0);
    check_all();
    for (int i = 0; i < 20; i++) CHECK(!fclose(files[i]));
}

static const struct { const char *name; void (*run)(void); } scenarios[] = {
    {"small", small}, {"threads", threads}, {"mappings", mappings}, {"calls", calls}, {"signals", signals}, {"forks", forks},
};

int main(int count, char **arguments) {
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (count < 2) puts(scenarios[i].name);
        else if (!strcmp(arguments[1], scenarios[i].name)) { scenarios[i].run(); puts("right"); }
    }
    return 0;
}
