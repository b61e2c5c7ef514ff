/* vellum.h: a list's nodes, allocated and freed by one call each.
 *
 *     cc batch.c $(pkg-config --cflags --libs vellum)
 */
#include <stdio.h>
#include <vellum.h>

enum { NODES = 100000 };

struct node {
    struct node *next;
    long value;
};

int main(void)
{
    static void *nodes[NODES];
    size_t made = vel_malloc_batch(sizeof(struct node), NODES, nodes);
    if (made < NODES) {
        fprintf(stderr, "out of memory after %zu nodes\n", made);
        vel_free_batch(nodes, made);
        return 1;
    }
    struct node *list = NULL;
    for (size_t i = 0; i < NODES; i++) {
        struct node *node = nodes[i];
        node->next = list;
        node->value = (long)i;
        list = node;
    }
    long sum = 0;
    for (struct node *node = list; node; node = node->next)
        sum += node->value;
    vel_free_batch(nodes, NODES);
    printf("%d nodes, sum %ld\n", NODES, sum);
    return 0;
}
