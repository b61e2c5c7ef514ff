/* Objects of the collector's, of which it is known how many are allocated and live at each marked line: `collected PLAN THREADS`. Each thread keeps a
 * list, drops a lot, resizes, frees, and has large objects; a child does the same again. Built with `-O1`, so that the lines are kept apart. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vellum_gc.h>

#define EXPECT(condition)                                                                       \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "collected.c: line %d: not so: %s\n", __LINE__, #condition);        \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)
#define APART __attribute__((noinline, noclone))

struct node {
    struct node *next;
    size_t number, more[4];
};

static vel_gc_type node_type;
/* By thread; static data is a root. */
static struct node *lists[16];
static void **larges[16];

APART static void keep(size_t me, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct node *node = (struct node *)vel_gc_new(node_type); /* kept */
        node->number = i;
        node->next = lists[me];
        lists[me] = node;
    }
}

APART static void drop(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct node *volatile node = (struct node *)vel_gc_new(node_type); /* dropped */
        node->number = i;
    }
}

APART static void release(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *volatile object = vel_gc_alloc(208); /* freed */
        vel_gc_free(object);
    }
}

APART static void large(size_t me, size_t count)
{
    larges[me] = (void **)vel_gc_alloc(count * sizeof(void *));
    for (size_t i = 0; i < count; i++)
        larges[me][i] = vel_gc_alloc_atomic(100000); /* large */
}

static void *work(void *argument)
{
    size_t me = (size_t)argument;
    keep(me, 100000);
    drop(600000);
    release(100000);
    large(me, 50);
    drop(200000);
    return NULL;
}

static void check(size_t threads)
{
    for (size_t me = 0; me < threads; me++) {
        size_t count = 0;
        for (struct node *node = lists[me]; node; node = node->next)
            EXPECT(node->number == 100000 - ++count);
        EXPECT(count == 100000);
    }
}

int main(int argc, char **argv)
{
    EXPECT(argc == 3);
    size_t threads = (size_t)atoi(argv[2]);
    struct vel_gc_config config;
    memset(&config, 0, sizeof config);
    config.config_bytes = sizeof config;
    config.plan = (unsigned)atoi(argv[1]);
    config.paranoid = 1;
    EXPECT(vel_gc_init(&config) == 0);
    uint64_t pointers = 1;
    node_type = vel_gc_type_of(sizeof(struct node), &pointers);
    pthread_t thread[16];
    for (size_t i = 1; i < threads; i++)
        EXPECT(!pthread_create(&thread[i], NULL, work, (void *)i));
    work((void *)0);
    for (size_t i = 1; i < threads; i++)
        EXPECT(!pthread_join(thread[i], NULL));
    EXPECT(vel_gc_collect() == 0);
    check(threads);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        lists[0] = NULL;
        larges[0] = NULL;
        work((void *)0);
        EXPECT(vel_gc_collect() == 0);
        check(threads);
        exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    puts("whole");
    return 0;
}
