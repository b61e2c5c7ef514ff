/* Binary trees, like the well-known GCBench: a tree of 64 MiB stays, small ones come and go. Nodes have
 * four words, two of them pointers. Small trees have every depth from 4 up, and are built top-down and
 * bottom-up in turn. Every tree is counted. */
#include "heap.h"

enum { LASTING_DEPTH = 20, TURNS = 256, DEPTH_MIN = 4, DEPTH_MAX = 16, NODES_A_TURN = 1 << 18 };

typedef struct node {
    struct node *left, *right;
    intptr_t depth, mark;
} node;
HEAP_TYPE(node, HEAP_POINTER(0) | HEAP_POINTER(1));

static inline node *make(node *left, node *right, intptr_t depth) {
    node *fresh = NEW(node);
    fresh->left = left;
    fresh->right = right;
    fresh->depth = depth;
    fresh->mark = depth;
    return fresh;
}

static __attribute__((noinline)) node *from_below(int depth) {
    if (depth == 0)
        return make(NULL, NULL, 0);
    node *left = from_below(depth - 1);
    return make(left, from_below(depth - 1), depth);
}

static __attribute__((noinline)) void from_above(node *of, int depth) {
    if (depth == 0)
        return;
    of->left = make(NULL, NULL, depth - 1);
    of->right = make(NULL, NULL, depth - 1);
    from_above(of->left, depth - 1);
    from_above(of->right, depth - 1);
}

static uint64_t count(const node *of) {
    return of ? 1 + count(of->left) + count(of->right) : 0;
}

static uint64_t nodes(int depth) {
    return ((uint64_t)2 << depth) - 1;
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    node *lasting = from_below(LASTING_DEPTH);
    uint64_t checksum = 0;
    int depth = DEPTH_MIN;
    for (unsigned long turn = 0; turn < heap_scaled(TURNS); turn++) {
        for (uint64_t made = 0; made < NODES_A_TURN; made += nodes(depth)) {
            node *tree;
            if (made % 2) {
                tree = from_below(depth);
            } else {
                tree = make(NULL, NULL, depth);
                from_above(tree, depth);
            }
            heap_demand(count(tree) == nodes(depth), "trees: a tree has another number of nodes");
            checksum = checksum * 31 + (uint64_t)tree->mark;
        }
        depth = depth + 2 > DEPTH_MAX ? DEPTH_MIN : depth + 2;
    }
    heap_demand(count(lasting) == nodes(LASTING_DEPTH), "trees: the lasting tree has another number of nodes");
    return heap_end(checksum);
}
