/* Measures the collection of a whole live heap: 128 MB of nodes of 32 bytes, in a tree or (`list=1`) a list.
 * The figure is the time of a collection divided by the number of live objects, without lazy sweeping. */
#include "heap.h"

/* How much lives is the question, so the work is not scaled, but for trials. */
enum { DEPTH = 21, DEPTH_MIN = 15, SCALE_MIN = 10, COLLECTIONS = 10 };

typedef struct node {
    struct node *left, *right;
    intptr_t number, mark;
} node;
HEAP_TYPE(node, HEAP_POINTER(0) | HEAP_POINTER(1));

static uint64_t made;

static inline node *make(node *left, node *right) {
    node *fresh = NEW(node);
    fresh->left = left;
    fresh->right = right;
    fresh->number = (intptr_t)made++;
    fresh->mark = ~fresh->number;
    return fresh;
}

static node *tree(int depth) {
    if (depth == 0)
        return make(NULL, NULL);
    node *left = tree(depth - 1);
    return make(left, tree(depth - 1));
}

static uint64_t sum(const node *of) {
    uint64_t is = 0;
    for (; of; of = of->right) {
        heap_demand(of->mark == ~of->number, "mark: a live node was overwritten");
        is += (uint64_t)of->number + sum(of->left);
    }
    return is;
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    int depth = heap_scale < SCALE_MIN ? DEPTH_MIN : DEPTH;
    uint64_t objects = ((uint64_t)2 << depth) - 1;
    node *all = NULL;
    if (heap_word(argc, argv, "list", 0))
        for (uint64_t i = 0; i < objects; i++)
            all = make(NULL, all);
    else
        all = tree(depth);
    heap_collect();
    uint64_t begun = heap_now(CLOCK_PROCESS_CPUTIME_ID), begun_wall = heap_now(CLOCK_MONOTONIC);
    for (int i = 0; i < COLLECTIONS; i++)
        heap_collect();
    uint64_t took = heap_now(CLOCK_PROCESS_CPUTIME_ID) - begun, took_wall = heap_now(CLOCK_MONOTONIC) - begun_wall;
    heap_tell("live_object_ns", (double)took / COLLECTIONS / (double)objects);
    heap_tell("live_object_wall_ns", (double)took_wall / COLLECTIONS / (double)objects);
    uint64_t total = sum(all);
    heap_demand(total == objects * (objects - 1) / 2, "mark: nodes were lost");
    return heap_end(total);
}
