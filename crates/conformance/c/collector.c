/* A program linked with Vellum that uses its collector through vellum_gc.h. Each scenario is a process of its own:
 * `collector NAME` returns 0, or says what was not so and returns 1. Compiled as C99, C11 and C++17. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vellum_gc.h>

#define EXPECT(condition)                                                                \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "collector: line %d: not so: %s\n", __LINE__, #condition);   \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

struct node {
    struct node *left, *right;
    size_t number, twice;
};

static vel_gc_type node_type;

static struct node *tree(unsigned depth, size_t number)
{
    struct node *node = (struct node *)vel_gc_new(node_type);
    EXPECT(node && !node->left && !node->number);
    node->number = number;
    node->twice = ~number;
    if (depth) {
        node->left = tree(depth - 1, number * 2);
        node->right = tree(depth - 1, number * 2 + 1);
    }
    return node;
}

static size_t nodes(const struct node *node, size_t number)
{
    if (!node)
        return 0;
    EXPECT(node->number == number && node->twice == ~number);
    return 1 + nodes(node->left, number * 2) + nodes(node->right, number * 2 + 1);
}

/* In the program's own static data. */
static struct node *kept;

static void make_type(void)
{
    uint64_t pointers = 3;
    node_type = vel_gc_type_of(sizeof(struct node), &pointers);
    EXPECT(node_type && node_type == vel_gc_type_of(sizeof(struct node), &pointers));
}

static void typed(void)
{
    make_type();
    kept = tree(14, 1);
    for (int round = 0; round < 40; round++)
        tree(12, 1);
    struct vel_gc_stats stats;
    vel_gc_get_stats(&stats, sizeof stats);
    EXPECT(stats.collections > 0);
    EXPECT(nodes(kept, 1) == (1u << 15) - 1);
    EXPECT(!vel_gc_validate());
    EXPECT(!vel_gc_type_of(0, NULL) && !vel_gc_type_of(VEL_GC_TYPE_MAX + 1, NULL));
}

static void settings(void)
{
    struct vel_gc_config config;
    memset(&config, 0, sizeof config);
    EXPECT(vel_gc_init(&config) == -1);
    config.config_bytes = sizeof config;
    config.plan = 99;
    EXPECT(vel_gc_init(&config) == -1);
    config.plan = VEL_GC_MARK_SWEEP;
    config.limit_bytes = (size_t)8 << 20;
    config.poison = 1;
    EXPECT(vel_gc_init(&config) == 0 && vel_gc_init(&config) == -1);
    for (int round = 0; round < 1000000; round++)
        memset(vel_gc_alloc_atomic(48), 1, 48);
    struct vel_gc_stats stats;
    vel_gc_get_stats(&stats, sizeof stats);
    EXPECT(stats.heap_peak_bytes <= config.limit_bytes && stats.collections > 3);
    EXPECT(!vel_gc_alloc(config.limit_bytes + 1));
}

static void *work(void *argument)
{
    size_t expected = (2u << (size_t)argument) - 1;
    for (int round = 0; round < 60; round++) {
        struct node *mine = tree((unsigned)(size_t)argument, 1);
        tree(8, 1);
        EXPECT(nodes(mine, 1) == expected);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread[4];
    make_type();
    for (size_t i = 0; i < 4; i++)
        EXPECT(!pthread_create(&thread[i], NULL, work, (void *)(8 + i)));
    work((void *)(size_t)10);
    for (size_t i = 0; i < 4; i++)
        EXPECT(!pthread_join(thread[i], NULL));
    EXPECT(!vel_gc_validate());
}

static void forks(void)
{
    pthread_t thread[2];
    make_type();
    kept = tree(10, 1);
    for (size_t i = 0; i < 2; i++)
        EXPECT(!pthread_create(&thread[i], NULL, work, (void *)(size_t)10));
    for (int child = 0; child < 10; child++) {
        pid_t pid = fork();
        EXPECT(pid >= 0);
        if (pid == 0) {
            for (int round = 0; round < 20; round++)
                tree(10, 1);
            EXPECT(vel_gc_collect() == 0 && nodes(kept, 1) == (1u << 11) - 1);
            EXPECT(!vel_gc_validate());
            _exit(0);
        }
        int status;
        EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    }
    for (size_t i = 0; i < 2; i++)
        EXPECT(!pthread_join(thread[i], NULL));
    EXPECT(nodes(kept, 1) == (1u << 11) - 1);
}

static size_t resident(void)
{
    unsigned long all, pages;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(file && fscanf(file, "%lu %lu", &all, &pages) == 2);
    fclose(file);
    return pages * 4096;
}

/* Nine tenths die; within two collections their pages are the system's. */
static void returns(void)
{
    enum { PARTS = 100, LEFT = 10, CELLS = 20000 };
    static void **part[PARTS];
    for (size_t i = 0; i < PARTS; i++) {
        part[i] = (void **)vel_gc_alloc(CELLS * sizeof(void *));
        for (size_t j = 0; j < CELLS; j++)
            part[i][j] = vel_gc_alloc(64);
    }
    size_t before = resident();
    EXPECT(before > (size_t)PARTS * CELLS * 64);
    memset(part + LEFT, 0, sizeof part - LEFT * sizeof *part);
    EXPECT(vel_gc_collect() == 0 && vel_gc_collect() == 0);
    struct vel_gc_stats stats;
    vel_gc_get_stats(&stats, sizeof stats);
    size_t live = stats.live_bytes, bound = live + live / 5 + ((size_t)8 << 20);
    EXPECT(live < (size_t)PARTS * CELLS * 64 / 5);
    EXPECT(resident() <= bound);
}

static size_t due;
static void note(void *object, void *data)
{
    (void)object;
    due += (size_t)data;
}

static void dead(void)
{
    make_type();
    for (int i = 0; i < 1000; i++)
        EXPECT(vel_gc_set_finalizer(tree(2, 1), note, (void *)1, 0) == 0);
    vel_gc_collect();
    vel_gc_collect();
    EXPECT(due > 900 && due <= 1000);
    void *large = vel_gc_alloc(1 << 20);
    EXPECT(vel_gc_base((char *)large + 12345) == large && vel_gc_size(large) >= 1 << 20);
    vel_gc_free(large);
    EXPECT(!vel_gc_base(large));
    void *aligned = vel_gc_alloc_aligned(100, 4096, 0);
    EXPECT(((size_t)aligned & 4095) == 0);
    /* A wrong free ends the process, and only this one. */
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        fclose(stderr);
        vel_gc_free((char *)aligned + 8);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = { { "typed", typed },     { "settings", settings }, { "threads", threads },
                      { "forks", forks },     { "returns", returns },   { "dead", dead } };
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (argc < 2)
            puts(scenarios[i].name);
        else if (!strcmp(argv[1], scenarios[i].name)) {
            scenarios[i].run();
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
