/* Measures how much memory stays resident when nine tenths of a heap die: ten trees of 25 MB, one of which
 * is kept. After two collections, reports the resident and the live memory. */
#include "heap.h"

/* How much lives is the question, so the work is not scaled, but for trials. */
enum { TREES = 10, DEPTH = 18, DEPTH_MIN = 12, SCALE_MIN = 10, COLLECTIONS = 2 };

typedef struct node {
    struct node *left, *right;
    intptr_t number, spare[3];
} node;
HEAP_TYPE(node, HEAP_POINTER(0) | HEAP_POINTER(1));

static node *tree(int depth) {
    node *left = depth ? tree(depth - 1) : NULL;
    node *right = depth ? tree(depth - 1) : NULL;
    node *fresh = NEW(node);
    fresh->left = left;
    fresh->right = right;
    fresh->number = depth;
    for (int i = 0; i < 3; i++)
        fresh->spare[i] = i;
    return fresh;
}

static uint64_t count(const node *of) {
    return of ? 1 + count(of->left) + count(of->right) : 0;
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    static node *volatile all[TREES];
    int depth = heap_scale < SCALE_MIN ? DEPTH_MIN : DEPTH;
    for (int i = 0; i < TREES; i++)
        all[i] = tree(depth);
    for (int i = 1; i < TREES; i++)
        all[i] = NULL;
    for (int i = 0; i < COLLECTIONS; i++)
        heap_collect();
    uint64_t live = count(all[0]);
    heap_demand(live == ((uint64_t)2 << depth) - 1, "fall: nodes were lost");
    heap_tell("live_bytes", (double)(live * sizeof(node)));
    heap_tell("resident_bytes", (double)heap_resident("VmRSS"));
    return heap_end(live);
}
