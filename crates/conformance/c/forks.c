/* fork at any moment in a threaded process; the child allocates at once. A child that hangs is ended by its own alarm,
 * which the parent sees. */
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/socket.h>

extern char **environ;

/* Seconds a child may take before it counts as hung. */
#define CHILD_LIMIT_S 60

enum { WORKERS = 3, FORKS = 40, FORKERS = 2 };

static atomic_bool stop;
static _Atomic(char *) shared[64];

static void *worker(void *argument)
{
    uint64_t state = seeded((uintptr_t)argument);
    char *blocks[300] = {0};
    while (!stop) {
        size_t slot = next_random(&state) % 300, size = random_size(&state, next_random(&state) % 50 ? 2000 : 2 * MIB);
        switch (next_random(&state) % 8) {
        case 0:
            blocks[slot] = realloc(blocks[slot], size);
            blocks[slot][size - 1] = 1;
            break;
        case 1:
            free(atomic_exchange(&shared[next_random(&state) % 64], blocks[slot]));
            blocks[slot] = NULL;
            break;
        case 2: {
            size_t length = 64 * KIB + next_random(&state) % (512 * KIB);
            char *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            CHECK(map != MAP_FAILED && map[0] == 0);
            map[0] = 1;
            munmap(map, length);
            break;
        }
        default:
            free(blocks[slot]);
            blocks[slot] = malloc(size);
            blocks[slot][0] = 1;
        }
    }
    for (int i = 0; i < 300; i++)
        free(blocks[i]);
    return NULL;
}

static void *in_child(void *argument)
{
    (void)argument;
    for (size_t size = 1; size < 3 * MIB; size = size * 3 / 2 + 1) {
        char *block = malloc(size);
        memset(block, 1, size);
        free(block);
    }
    return NULL;
}

static void child_work(uint64_t seed, bool deeper)
{
    alarm(CHILD_LIMIT_S);
    uint64_t state = seeded(seed);
    /* Something of every kind at once, and what other threads had made. */
    char *blocks[100];
    for (int i = 0; i < 100; i++) {
        size_t size = random_size(&state, i % 20 ? 3000 : 2 * MIB);
        blocks[i] = i % 3 ? malloc(size) : calloc(1, size);
        if (i % 3 == 0 && !is_zero(blocks[i], size))
            _exit(11);
        memset(blocks[i], 1, size);
    }
    for (int i = 0; i < 64; i++)
        free(atomic_exchange(&shared[i], NULL));
    for (int i = 0; i < 100; i++)
        blocks[i] = realloc(blocks[i], 1 + next_random(&state) % 100000);
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
    char *map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || !is_zero(map, MIB))
        _exit(12);
    memset(map, 1, MIB);
    munmap(map, MIB);
    if (next_random(&state) % 4 == 0) {
        pthread_t threads[2];
        for (int t = 0; t < 2; t++)
            if (pthread_create(&threads[t], NULL, in_child, NULL) != 0)
                _exit(13);
        if (deeper) {
            pid_t grandchild = fork();
            if (grandchild == 0) {
                child_work(seed + 1, false);
                _exit(0);
            }
            int status;
            if (waitpid(grandchild, &status, 0) != grandchild || status != 0)
                _exit(14);
        }
        for (int t = 0; t < 2; t++)
            pthread_join(threads[t], NULL);
    }
}

/* FORKS in the environment says how many. */
static void *forker(void *argument)
{
    const char *asked = getenv("FORKS");
    int forks = asked != NULL ? atoi(asked) : FORKS;
    uint64_t seed = (uintptr_t)argument, state = seeded(seed);
    for (int i = 0; i < forks; i++) {
        for (uint64_t spin = next_random(&state) % 200000; spin > 0; spin--)
            __asm__ volatile("");
        free(malloc(random_size(&state, 10000)));
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            child_work(seed * 1000 + (uint64_t)i, true);
            /* Half of them end with everything that exit runs. */
            if (i % 2)
                exit(0);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_OF(status == 0, status);
    }
    return NULL;
}

static void threads_fork_at_any_moment(void)
{
    pthread_t workers[WORKERS], forkers[FORKERS];
    for (uintptr_t t = 0; t < WORKERS; t++)
        CHECK(pthread_create(&workers[t], NULL, worker, (void *)(t + 1)) == 0);
    for (uintptr_t t = 0; t < FORKERS; t++)
        CHECK(pthread_create(&forkers[t], NULL, forker, (void *)(t + 1)) == 0);
    for (int t = 0; t < FORKERS; t++)
        CHECK(pthread_join(forkers[t], NULL) == 0);
    stop = true;
    for (int t = 0; t < WORKERS; t++)
        CHECK(pthread_join(workers[t], NULL) == 0);
}

/* Programs started beside allocating threads, by vfork's way and by fork's. */
static void programs_are_started_at_any_moment(void)
{
    pthread_t workers[WORKERS];
    for (uintptr_t t = 0; t < WORKERS; t++)
        CHECK(pthread_create(&workers[t], NULL, worker, (void *)(t + 1)) == 0);
    for (int i = 0; i < 60; i++) {
        pid_t child;
        int status;
        char *arguments[] = {"true", NULL};
        CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_OF(status == 0, status);
        child = vfork();
        if (child == 0) {
            execve("/bin/true", arguments, environ);
            _exit(9);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_OF(status == 0, status);
        FILE *stream = popen("echo said", "r");
        char text[10];
        CHECK(stream && fgets(text, sizeof text, stream) && strcmp(text, "said\n") == 0);
        CHECK(pclose(stream) == 0);
    }
    stop = true;
    for (int t = 0; t < WORKERS; t++)
        CHECK(pthread_join(workers[t], NULL) == 0);
}

/* A chain: each child forks the next and goes on allocating what its ancestors left it. */
static void generations(void)
{
    char *blocks[50];
    for (int i = 0; i < 50; i++)
        fill(blocks[i] = malloc(1000 * (size_t)(i + 1)), 1000 * (size_t)(i + 1), (uint64_t)i);
    for (int depth = 0; depth < 12; depth++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child > 0) {
            int status;
            CHECK(waitpid(child, &status, 0) == child);
            CHECK_OF(status == 0, depth);
            for (int i = 0; i < 50; i++) {
                size_t size = 1000 * (size_t)(i + 1);
                CHECK(is_filled(blocks[i], size, size, (uint64_t)i));
                free(blocks[i]);
            }
            _exit(0);
        }
        alarm(CHILD_LIMIT_S);
        for (int i = 0; i < 50; i++) {
            size_t size = 1000 * (size_t)(i + 1);
            CHECK(is_filled(blocks[i], size, size, (uint64_t)i));
            if (i % 12 == depth) {
                free(blocks[i]);
                fill(blocks[i] = malloc(size), size, (uint64_t)i);
            }
        }
    }
    _exit(0);
}

/* A server that forks for each connection, on the loopback. */
static int listener;

static void serve(int connection)
{
    alarm(CHILD_LIMIT_S);
    uint32_t count, sum = 0;
    CHECK(read(connection, &count, sizeof count) == sizeof count);
    uint32_t *numbers = malloc(count * sizeof *numbers);
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = i * i;
    numbers = realloc(numbers, count * sizeof *numbers * 2);
    for (uint32_t i = 0; i < count; i++)
        sum += numbers[i];
    char *text = NULL;
    CHECK(asprintf(&text, "%u", sum) > 0);
    CHECK(write(connection, text, strlen(text) + 1) > 0);
    free(text);
    free(numbers);
}

static void *housekeeping(void *argument)
{
    return worker(argument);
}

static void a_forking_server(void)
{
    enum { REQUESTS = 120 };
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(listener >= 0 && bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 64) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    pid_t server = fork();
    if (server == 0) {
        pthread_t thread;
        for (uintptr_t t = 1; t <= 2; t++)
            CHECK(pthread_create(&thread, NULL, housekeeping, (void *)t) == 0);
        for (int i = 0; i < REQUESTS; i++) {
            int connection = accept(listener, NULL, NULL);
            CHECK(connection >= 0);
            pid_t child = fork();
            CHECK(child >= 0);
            if (child == 0) {
                serve(connection);
                exit(0);
            }
            close(connection);
        }
        int status, bad = 0;
        for (int i = 0; i < REQUESTS; i++)
            bad += wait(&status) < 0 || status != 0;
        _exit(bad ? 1 : 0);
    }
    uint64_t total = 0;
    for (uint32_t i = 0; i < REQUESTS; i++) {
        int connection = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(connect(connection, (struct sockaddr *)&address, sizeof address) == 0);
        uint32_t count = 10 + i * 997;
        CHECK(write(connection, &count, sizeof count) == sizeof count);
        char text[32] = {0};
        CHECK(read(connection, text, sizeof text - 1) > 0);
        total += strtoul(text, NULL, 10);
        close(connection);
    }
    int status;
    CHECK(waitpid(server, &status, 0) == server);
    CHECK_OF(status == 0, status);
    printf("%" PRIu64 "\n", total);
}

/* By the kernel's count, in which threads are that the C library does not know. No memory is asked for. */
static int threads_by_stat(void)
{
    char text[1024];
    int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t length = read(file, text, sizeof text - 1);
    CHECK(length > 0 && close(file) == 0);
    text[length] = 0;
    int threads = 0;
    /* From the end of the name, which may hold anything: the 18th field after it. */
    CHECK(sscanf(strrchr(text, ')') + 1, " %*s%*d%*d%*d%*d%*d%*d%*d%*d%*d%*d%*d%*d%*d%*d%*d%*d%d", &threads) == 1);
    return threads;
}

static void use_and_free(size_t bytes)
{
    char *block = malloc(bytes);
    fill(block, bytes, 1);
    CHECK(is_filled(block, bytes, bytes, 1));
    free(block);
}

/* CPython from 3.12 on counts so in the parent, and warns if there is more than one. */
static void one_thread_forks_as_one(void)
{
    for (int i = 0; i < 40; i++) {
        for (int j = 0; j < 8; j++)
            use_and_free(8 * MIB);
        pid_t child = fork();
        if (child == 0) {
            use_and_free(8 * MIB);
            _exit(0);
        }
        CHECK(child > 0);
        CHECK_OF(threads_by_stat() == 1, threads_by_stat());
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        /* Some forks find a helper that has come back. */
        if (i % 8 == 0)
            usleep(60000);
    }
}

/* What a program caches after it has forked is looked after again. */
static void vellum_memory_goes_back_after_a_fork(void)
{
    use_and_free(8 * MIB);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    CHECK(waitpid(child, NULL, 0) == child);
    for (int i = 0; i < 3000 && threads_by_stat() == 1; i++) {
        use_and_free(8 * MIB);
        usleep(20000);
    }
    CHECK(threads_by_stat() == 2);
}

static const struct scenario scenarios[] = {
    {"one_thread_forks_as_one", one_thread_forks_as_one},
    {"vellum_memory_goes_back_after_a_fork", vellum_memory_goes_back_after_a_fork},
    {"threads_fork_at_any_moment", threads_fork_at_any_moment},
    {"programs_are_started_at_any_moment", programs_are_started_at_any_moment},
    {"generations", generations},
    {"a_forking_server", a_forking_server},
};

int main(int argc, char **argv)
{
    return DISPATCH(argc, argv, scenarios);
}
