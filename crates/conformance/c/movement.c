/* A program linked with Vellum that uses its collector through vellum_gc.h: plans under which objects move, and stacks that are known precisely. */
#include "collector.h"

/* Objects move, but for those that the stack and static data lead to, which are counted; fields, precise roots and links go with them. */
static void moving_by(int plan, int after_major)
{
    enum { KEPT = 20000, HELD = 64 };
    struct vel_gc_config config;
    struct vel_gc_stats stats, earlier;
    static struct node *root[1], *volatile held[HELD];
    memset(&config, 0, sizeof config);
    config.config_bytes = sizeof config;
    config.plan = plan;
    config.after_major = after_major;
    config.paranoid = 1;
    EXPECT(vel_gc_init(&config) == 0);
    make_type();
    EXPECT(vel_gc_roots_exclude(root, root + 1) == 0 && vel_gc_roots_add_precise(root, root + 1) == 0);
    void **link = (void **)malloc(sizeof *link);
    size_t before = 0;
    /* A list of which one in eight nodes stays: what survives lies scattered. */
    for (int round = 0; round < 8; round++) {
        struct node *all = NULL, **end = &root[0];
        for (size_t i = 0; i < KEPT * 8; i++) {
            struct node *node = (struct node *)vel_gc_new(node_type);
            node->number = i;
            node->left = all;
            all = node;
        }
        root[0] = NULL;
        for (struct node *at = all; at; at = at->left)
            if (at->number % 8 == 0) {
                struct node *copy = (struct node *)vel_gc_new(node_type);
                copy->number = at->number;
                *end = copy;
                end = &copy->right;
                tree(2, 1);
            }
        size_t place = 0;
        for (struct node *at = root[0]; at; at = at->right, place++)
            if (place % (KEPT / HELD) == 0 && place / (KEPT / HELD) < HELD)
                held[place / (KEPT / HELD)] = at;
        before = disguised(root[0]->right);
        *link = root[0]->right;
        EXPECT(vel_gc_link(link, *link, 0) == 0);
        all = NULL;
        end = NULL;
        wipe();
        vel_gc_get_stats(&earlier, sizeof earlier);
        EXPECT(vel_gc_collect() == 0 && vel_gc_collect() == 0);
        vel_gc_get_stats(&stats, sizeof stats);
        uint64_t found = stats.roots_found - earlier.roots_found, blocks = stats.rooted_blocks - earlier.rooted_blocks;
        EXPECT(found >= 2 * HELD && blocks >= 2 && blocks <= found);
        EXPECT(*link == root[0]->right && held[0] == root[0]);
    }
    EXPECT(stats.copied_bytes > 0 && before);
    EXPECT(stats.promoted_blocks > 0 && stats.promoted_free_bytes > 0);
    size_t count = 0;
    for (struct node *at = root[0]; at; at = at->right)
        count += at->number % 8 == 0;
    EXPECT(count == KEPT);
    EXPECT(!vel_gc_validate());
}

static void moving(void)
{
    moving_by(VEL_GC_MOSTLY_COPYING, 0);
}

static void generations(void)
{
    moving_by(VEL_GC_APPEL, VEL_GC_REUSE);
}

static void staying(void)
{
    moving_by(VEL_GC_APPEL, VEL_GC_STAY);
}

static void drifting(void)
{
    moving_by(VEL_GC_APPEL, VEL_GC_DRIFT);
}

static void copied_back(void)
{
    moving_by(VEL_GC_APPEL, VEL_GC_COPY_BACK);
}

/* A tree whose nodes are known by frames only. */
static struct node *framed(unsigned depth, size_t number)
{
    void *mine[2] = { NULL, NULL };
    struct vel_gc_frame frame;
    vel_gc_push(&frame, mine, 2);
    mine[0] = vel_gc_new(node_type);
    EXPECT(mine[0]);
    ((struct node *)mine[0])->number = number;
    ((struct node *)mine[0])->twice = ~number;
    if (depth) {
        mine[1] = framed(depth - 1, number * 2);
        vel_gc_write(&((struct node *)mine[0])->left, mine[1]);
        mine[1] = framed(depth - 1, number * 2 + 1);
        vel_gc_write(&((struct node *)mine[0])->right, mine[1]);
    }
    vel_gc_pop(&frame);
    return (struct node *)mine[0];
}

/* Stacks are known precisely: a collection at every allocation, and all that lives moves. */
static void frames(void)
{
    struct vel_gc_config config;
    memset(&config, 0, sizeof config);
    config.config_bytes = sizeof config;
    config.plan = VEL_GC_APPEL;
    config.after_major = 4;
    EXPECT(vel_gc_init(&config) == -1);
    config.after_major = VEL_GC_REUSE;
    config.precise_stacks = config.tells_writes = config.eager = config.paranoid = config.poison = 1;
    EXPECT(vel_gc_init(&config) == 0);
    make_type();
    void *mine[2] = { NULL, NULL };
    struct vel_gc_frame frame;
    vel_gc_push(&frame, mine, 2);
    mine[0] = framed(8, 1);
    /* Places that are in no object have no card. */
    static void *elsewhere;
    void *nearby;
    vel_gc_write(&elsewhere, NULL);
    vel_gc_write(&nearby, NULL);
    EXPECT(!elsewhere && !nearby);
    size_t before = disguised(mine[0]);
    for (int round = 0; round < 3; round++)
        framed(6, 1);
    EXPECT(before != disguised(mine[0]));
    EXPECT(nodes((struct node *)mine[0], 1) == (2u << 8) - 1);
    mine[1] = vel_gc_alloc_atomic(3);
    for (size_t bytes = 4; bytes < 2000; bytes += 100) {
        memset(mine[1], 1, 3);
        mine[1] = vel_gc_realloc(mine[1], bytes);
        EXPECT(((char *)mine[1])[0] == 1 && ((char *)mine[1])[2] == 1);
        EXPECT(vel_gc_set_ephemeron(mine[0], mine[1]) == 0 && vel_gc_ephemeron(mine[0]) == mine[1]);
    }
    struct vel_gc_stats stats;
    vel_gc_get_stats(&stats, sizeof stats);
    EXPECT(stats.partial > 500 && stats.copied_bytes > 0);
    vel_gc_pop(&frame);
    EXPECT(!vel_gc_validate());
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        { "moving", moving },
        { "generations", generations },
        { "staying", staying },
        { "drifting", drifting },
        { "copied back", copied_back },
        { "frames", frames },
    };
    return run_scenario(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
