/* What the programs that use the collector through vellum_gc.h have in common: trees to keep alive, pointers in disguise, and scenarios by name.
 * Each scenario is a process of its own: `PROGRAM NAME` returns 0, or says what was not so and returns 1; without a name it lists them. Compiled as
 * C99, C11 and C++17. */
#ifndef VELLUM_CONFORMANCE_COLLECTOR_H
#define VELLUM_CONFORMANCE_COLLECTOR_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vellum_gc.h>

#define EXPECT(condition)                                                                \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "%s: line %d: not so: %s\n", __FILE__, __LINE__, #condition);   \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

struct node {
    struct node *left, *right;
    size_t number, twice;
};

static vel_gc_type node_type;

static inline struct node *tree(unsigned depth, size_t number)
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

static inline size_t nodes(const struct node *node, size_t number)
{
    if (!node)
        return 0;
    EXPECT(node->number == number && node->twice == ~number);
    return 1 + nodes(node->left, number * 2) + nodes(node->right, number * 2 + 1);
}

static inline void make_type(void)
{
    uint64_t pointers = 3;
    node_type = vel_gc_type_of(sizeof(struct node), &pointers);
    EXPECT(node_type && node_type == vel_gc_type_of(sizeof(struct node), &pointers));
}

/* A pointer in disguise: it holds nothing. */
static inline size_t disguised(const void *object)
{
    return ~(size_t)object;
}

/* Overwrites what calls have left on the stack. */
static inline void wipe(void)
{
    volatile size_t used[1 << 14];
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        used[i] = 0;
}

struct scenario {
    const char *name;
    void (*run)(void);
};

static inline int run_scenario(int argc, char **argv, const struct scenario *scenarios, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (argc < 2)
            puts(scenarios[i].name);
        else if (!strcmp(argv[1], scenarios[i].name)) {
            scenarios[i].run();
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}

#endif
