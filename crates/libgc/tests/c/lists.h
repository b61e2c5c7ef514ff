/* Lists of LENGTH cells that only the list's head keeps alive, numbered from a seed on. The including file defines LENGTH and includes gc.h first. */
#ifndef LISTS_H
#define LISTS_H
#include "check.h"
#include <stddef.h>

struct cell {
    struct cell *next;
    long number;
};

static struct cell *list_of(long seed)
{
    struct cell *list = NULL;
    for (long i = 0; i < LENGTH; i++) {
        struct cell *cell = GC_NEW(struct cell);
        cell->next = list;
        cell->number = seed + i;
        list = cell;
    }
    return list;
}

static void check(struct cell *list, long seed)
{
    long i = LENGTH;
    for (; list; list = list->next)
        CHECK(list->number == seed + --i);
    CHECK(i == 0);
}
#endif
