/* A program linked with Vellum that uses its collector through vellum_gc.h: what every heap does, whatever its plan. */
#include "collector.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the program's own static data. */
static struct node *kept;

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
    config.sizing = 99;
    EXPECT(vel_gc_init(&config) == -1);
    config.sizing = VEL_GC_ORIGINAL;
    config.ratio = 1;
    EXPECT(vel_gc_init(&config) == -1);
    config.ratio = 3;
    config.min_new_size = (size_t)9 << 20; /* the other strategy's */
    EXPECT(vel_gc_init(&config) == -1);
    config.min_new_size = 0;
    config.mem_limit = (size_t)4 << 20;
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

/* Without pages of files: how many of those are there differs with how a library came into the page cache. */
static size_t resident(void)
{
    unsigned long all, pages, shared;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(file && fscanf(file, "%lu %lu %lu", &all, &pages, &shared) == 3);
    fclose(file);
    return (pages - shared) * 4096;
}

/* Nine tenths die; within two collections their pages are the system's, but for what threads that collect have in hand. */
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

/* Every pointer in the tables below is in disguise, so that nothing but what a scenario is about holds the objects. */
static void *plain(size_t hidden)
{
    return (void *)~hidden;
}

enum { MANY = 200, MOST = MANY * 9 / 10 };
static size_t hidden[MANY];

static size_t left(void)
{
    size_t count = 0;
    wipe();
    vel_gc_collect();
    wipe();
    vel_gc_collect();
    for (size_t i = 0; i < MANY; i++)
        count += vel_gc_base(plain(hidden[i])) == plain(hidden[i]);
    return count;
}

/* Freed by hand; never collected; held by a range of addresses, by one of a thread, and by none any more. */
static void keeping(void)
{
    static void *range[MANY];
    static void **outside;
    EXPECT(left() == 0);
    for (size_t i = 0; i < MANY; i++) {
        void **object = (void **)vel_gc_alloc_uncollectable(40);
        EXPECT(object);
        hidden[i] = disguised(object);
        /* What it refers to stays, too. */
        object[1] = vel_gc_alloc_atomic(24);
        memset(object[1], 7, 24);
    }
    EXPECT(left() == MANY);
    for (size_t i = 0; i < MANY; i++)
        EXPECT(*(char *)((void **)plain(hidden[i]))[1] == 7);
    for (size_t i = 0; i < MANY; i++)
        vel_gc_free(plain(hidden[i]));
    EXPECT(left() == 0);

    /* malloc's memory is no root, until it is said to be. */
    outside = (void **)malloc(sizeof range);
    EXPECT(outside && vel_gc_roots_add(outside, outside + MANY) == 0);
    for (size_t i = 0; i < MANY; i++) {
        outside[i] = vel_gc_alloc(32);
        hidden[i] = disguised(outside[i]);
    }
    EXPECT(left() == MANY);
    EXPECT(vel_gc_roots_remove(outside, outside + MANY) == 1 && vel_gc_roots_remove(outside, outside + MANY) == 0);
    EXPECT(left() < MANY - MOST);
    free(outside);
    vel_gc_free(NULL);

    /* Static data is one, until it is said not to be. */
    for (size_t i = 0; i < MANY; i++) {
        range[i] = vel_gc_alloc(32);
        hidden[i] = disguised(range[i]);
    }
    EXPECT(left() == MANY);
    EXPECT(vel_gc_roots_exclude(range + 10, range + MANY) == 0);
    size_t few = left();
    EXPECT(few >= 10 && few < 10 + MANY - MOST);
    memset(range + 10, 0, sizeof range - 10 * sizeof *range);
    EXPECT(vel_gc_roots_include(range, range + MANY) == 1 && vel_gc_roots_include(range, range + MANY) == 0);
    range[20] = vel_gc_alloc(32);
    hidden[20] = disguised(range[20]);
    left();
    EXPECT(vel_gc_base(range[20]) == range[20]);
}

static void *full_hook_result;
static size_t full_asked;
static void *on_full(size_t bytes)
{
    full_asked = bytes;
    return full_hook_result;
}

/* Running out is a value, or what the hook says; a maximum covers the metadata, and can be changed. */
static void limits(void)
{
    struct vel_gc_config config;
    struct vel_gc_stats stats;
    static char instead[64];
    memset(&config, 0, sizeof config);
    config.config_bytes = sizeof config;
    config.max_bytes = 4096;
    EXPECT(vel_gc_init(&config) == -1);
    config.max_bytes = (size_t)8 << 20;
    config.paranoid = 1;
    EXPECT(vel_gc_init(&config) == 0);
    void **list = NULL, **cell;
    size_t cells = 0;
    while ((cell = (void **)vel_gc_alloc(64))) {
        *cell = list;
        list = cell;
        cells++;
    }
    vel_gc_get_stats(&stats, sizeof stats);
    EXPECT(cells > 50000 && stats.heap_bytes + stats.metadata_bytes <= config.max_bytes);
    EXPECT(!vel_gc_on_full(on_full));
    EXPECT(!vel_gc_alloc(1 << 20) && full_asked == 1 << 20);
    full_hook_result = instead;
    EXPECT(vel_gc_alloc(1 << 20) == instead && vel_gc_alloc_atomic(1 << 20) == instead);
    EXPECT(vel_gc_on_full(NULL) == on_full && !vel_gc_alloc(1 << 20));
    /* A full heap still has room for what is kept about objects. */
    for (int i = 0; i < 1000; i++) {
        EXPECT(vel_gc_set_finalizer(list, NULL, NULL, 0) == 0);
        EXPECT(vel_gc_set_ephemeron(list, list) == 0);
        list = (void **)*list;
    }
    EXPECT(vel_gc_set_max(1000) == -1 && vel_gc_set_max((size_t)32 << 20) == 0);
    EXPECT(vel_gc_alloc(1 << 20));
    EXPECT(vel_gc_set_max(0) == 0);
    EXPECT(!vel_gc_validate());
}

static size_t walked, walked_bytes;
static void visit(void *object, size_t bytes, void *argument)
{
    walked++;
    walked_bytes += bytes;
    *(size_t *)argument += *(char *)object == 'x';
}

/* Every object is visited once. */
static void walking(void)
{
    static char *text[1000];
    size_t found = 0;
    for (size_t i = 0; i < 1000; i++) {
        text[i] = (char *)vel_gc_alloc(100 + i);
        text[i][0] = 'x';
    }
    vel_gc_collect();
    vel_gc_walk(visit, &found);
    EXPECT(found == 1000 && walked >= found && walked_bytes >= 1000 * 600);
    struct vel_gc_stats stats;
    vel_gc_get_stats(&stats, sizeof stats);
    EXPECT(walked_bytes >= stats.live_bytes);
    EXPECT(vel_gc_base(text[3] + 50) == text[3] && vel_gc_size(text[3]) >= 103 && !vel_gc_size(text[3] + 1));
    EXPECT(!vel_gc_base(&found));
}

/* Links follow, are moved, undone and cleared; finalizers are replaced and taken away. */
static void weak(void)
{
    /* Static data is scanned: the links lie in an atomic object, which that holds. */
    static void **places;
    vel_gc_finalizer old = note;
    void *old_data = &places;
    make_type();
    places = (void **)vel_gc_alloc_atomic(MANY * sizeof *places);
    for (size_t i = 0; i < MANY; i++) {
        void *object = tree(0, i);
        hidden[i] = disguised(object);
        places[i] = object;
        EXPECT(vel_gc_link(&places[i], object, 0) == 0);
        EXPECT(vel_gc_set_finalizer(object, note, (void *)100, 1) == 0);
        EXPECT(vel_gc_replace_finalizer(object, i % 2 ? note : NULL, (void *)1, 1, &old, &old_data) == 0);
        EXPECT(old == note && old_data == (void *)100);
    }
    EXPECT(vel_gc_replace_finalizer(plain(hidden[0]), NULL, NULL, 0, &old, NULL) == 0 && !old);
    EXPECT(vel_gc_link(&places[0], &places, 0) == -1);
    EXPECT(vel_gc_unlink(&places[1]) == plain(hidden[1]) && !vel_gc_unlink(&places[1]));
    EXPECT(vel_gc_move_link(&places[2], &places[1]) == 1 && vel_gc_move_link(&places[2], &places[1]) == 0);
    places[1] = places[2];
    places[2] = NULL;
    vel_gc_finalize_on_demand(1);
    EXPECT(left() > 0);
    size_t cleared = 0;
    for (size_t i = 0; i < MANY; i++)
        cleared += !places[i];
    EXPECT(cleared > MOST && due == 0);
    EXPECT(vel_gc_finalize() > MOST / 2 && due > MOST / 2 && due <= MANY / 2);
    EXPECT(left() < MANY - MOST);
}

static volatile int blocked, may_go;
static void *wait_blocked(void *argument)
{
    blocked = 1;
    while (!may_go)
        usleep(100);
    return argument;
}

static void *block(void *argument)
{
    struct node *mine = tree(8, 1);
    EXPECT(vel_gc_blocking(wait_blocked, argument) == argument);
    EXPECT(nodes(mine, 1) == (2u << 8) - 1);
    return NULL;
}

/* A thread in a blocking region is not waited for, and what it holds stays; static and own ranges of a thread. */
static void blocking(void)
{
    pthread_t thread;
    make_type();
    EXPECT(vel_gc_thread_enter() == 0);
    EXPECT(!pthread_create(&thread, NULL, block, hidden));
    while (!blocked)
        usleep(100);
    for (int round = 0; round < 5; round++) {
        tree(12, 1);
        EXPECT(vel_gc_collect() == 0);
    }
    may_go = 1;
    EXPECT(!pthread_join(thread, NULL));
    void **own = (void **)malloc(sizeof *own);
    EXPECT(own && vel_gc_thread_roots_add(own, own + 1) == 0);
    *own = tree(3, 1);
    wipe();
    EXPECT(vel_gc_collect() == 0 && nodes((struct node *)*own, 1) == 15);
    EXPECT(vel_gc_roots_remove(own, own + 1) == 1);
    free(own);
    vel_gc_hold();
    EXPECT(vel_gc_collect() == -1);
    vel_gc_let();
    EXPECT(vel_gc_collect() == 0);
}

/* Every allocation collects, and every invariant is checked each time: what the compiler keeps in registers is enough. */
static void eager(void)
{
    struct vel_gc_config config;
    memset(&config, 0, sizeof config);
    config.config_bytes = sizeof config;
    config.eager = config.paranoid = config.poison = 1;
    EXPECT(vel_gc_init(&config) == 0);
    make_type();
    struct node *mine = tree(8, 1);
    for (int round = 0; round < 3; round++)
        tree(6, 1);
    EXPECT(nodes(mine, 1) == (2u << 8) - 1);
    char *text = (char *)vel_gc_alloc_atomic(3);
    for (size_t bytes = 4; bytes < 2000; bytes += 100) {
        memset(text, 1, 3);
        text = (char *)vel_gc_realloc(text, bytes);
        EXPECT(text[0] == 1 && text[2] == 1);
    }
    struct vel_gc_stats stats;
    vel_gc_get_stats(&stats, sizeof stats);
    EXPECT(stats.collections > 500);
}

static struct vel_gc_stats churn(unsigned collections)
{
    struct vel_gc_stats now, before;
    vel_gc_get_stats(&before, sizeof before);
    do {
        tree(10, 1);
        vel_gc_get_stats(&now, sizeof now);
    } while (now.collections < before.collections + collections);
    return now;
}

/* A heap whose old marks stay from one collection to the next, with a tree in it, after some collections. */
static struct vel_gc_stats keep_marks(void)
{
    struct vel_gc_config config;
    memset(&config, 0, sizeof config);
    config.config_bytes = sizeof config;
    config.sticky_marks = 1;
    /* Next to never at random; but partial collections are tried however little is alive. */
    config.eager = 1u << 31;
    EXPECT(vel_gc_init(&config) == 0);
    make_type();
    kept = tree(16, 1);
    return churn(20);
}

/* Until the program forbids itself what that takes. */
static void filtered(void)
{
    struct vel_gc_stats before = keep_marks();
    if (before.partial == 0)
        fprintf(stderr, "skipped: the kernel does not track writes here\n");
    /* ioctl kills; all else is allowed. */
    struct sock_filter code[4] = {
        { BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr) },
        { BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_ioctl },
        { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL },
        { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW },
    };
    struct sock_fprog program = { 4, code };
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
    struct vel_gc_stats after = churn(20);
    EXPECT(after.partial == before.partial);
    EXPECT(nodes(kept, 1) == (1u << 17) - 1);
}

/* Hangs a new tree above old leaves, far from where those of other turns are. */
static void hang(unsigned turn)
{
    struct node *old = kept;
    for (unsigned depth = 0; depth < 10; depth++)
        old = (turn >> depth & 1) ? old->left : old->right;
    struct node *left = old->left;
    struct node *fresh = tree(1, left->number);
    fresh->left->left = left->left->left;
    fresh->left->right = left->left->right;
    fresh->right->left = left->right->left;
    fresh->right->right = left->right->right;
    old->left = fresh;
}

/* A child that the library does not know of has the descriptors of its parent, but not its memory: the
   parent's writes are not its own, and it must not take the parent's for seen. */
static void forked_behind(void)
{
    keep_marks();
    int ready[2];
    EXPECT(pipe(ready) == 0);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    EXPECT(child >= 0);
    if (child == 0) {
        char byte;
        EXPECT(read(ready[0], &byte, 1) == 1);
    } else {
        for (unsigned turn = 500; turn < 560; turn++)
            hang(turn);
        EXPECT(write(ready[1], "", 1) == 1);
        int status;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
    }
    for (unsigned turn = 0; turn < 60; turn++) {
        churn(1);
        EXPECT(nodes(kept, 1) == (1u << 17) - 1);
        hang(turn);
    }
    churn(4);
    EXPECT(nodes(kept, 1) == (1u << 17) - 1);
    if (child == 0)
        _exit(0);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        { "typed", typed },
        { "settings", settings },
        { "threads", threads },
        { "forks", forks },
        { "returns", returns },
        { "dead", dead },
        { "keeping", keeping },
        { "limits", limits },
        { "walking", walking },
        { "weak", weak },
        { "blocking", blocking },
        { "eager", eager },
        { "filtered", filtered },
        { "forked_behind", forked_behind },
    };
    return run_scenario(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
