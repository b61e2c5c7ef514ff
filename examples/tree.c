/* vellum_gc.h: trees that nobody frees.
 *
 *     cc tree.c $(pkg-config --cflags --libs vellum-gc)
 */
#include <stdio.h>
#include <vellum_gc.h>

enum { DEPTH = 14, TREES = 50 };

struct node {
    struct node *left, *right;
    long weight;
};

/* Words 0 and 1 of a node are pointers. */
static const uint64_t POINTERS = 3;
static vel_gc_type node_type;

static struct node *tree(int depth)
{
    struct node *node = vel_gc_new(node_type);
    if (!node)
        return NULL;
    node->weight = 1;
    if (depth > 0) {
        node->left = tree(depth - 1);
        node->right = tree(depth - 1);
    }
    return node;
}

static long weight(const struct node *node)
{
    return node ? node->weight + weight(node->left) + weight(node->right) : 0;
}

int main(void)
{
    node_type = vel_gc_type_of(sizeof(struct node), &POINTERS);
    long sum = 0;
    for (int i = 0; i < TREES; i++)
        sum += weight(tree(DEPTH));
    vel_gc_collect();
    printf("%d trees, %ld nodes\n", TREES, sum);
    return 0;
}
