/* Mergesort: sorts a list of integers again and again.
 *
 * Smith and Morrisett 1998, Table 1: only list elements of two words, a shallow stack, some 27,000 objects
 * live: the list to sort, which is kept, and the sorted parts to be merged. Merging is a loop that builds
 * its result in reverse order. Each level therefore sorts in the opposite direction, and only the halving
 * recurses. `items=` sets another length; the checks hold for any.
 */
#include "heap.h"

typedef struct cons {
    intptr_t head;
    struct cons *tail;
} cons;
HEAP_TYPE(cons, HEAP_POINTER(1));

enum { ITEMS = 12000, SORTS = 243 };

static inline cons *push(intptr_t head, cons *tail) {
    cons *cell = NEW(cons);
    cell->head = head;
    cell->tail = tail;
    return cell;
}

/* The two lists, of which the wanted end comes first in each, as one that ends with it: reversed. */
static __attribute__((noinline)) cons *merge(cons *a, cons *b, int falling) {
    cons *out = NULL;
    while (a && b) {
        if ((a->head < b->head) != falling) {
            out = push(a->head, out);
            a = a->tail;
        } else {
            out = push(b->head, out);
            b = b->tail;
        }
    }
    for (a = a ? a : b; a; a = a->tail)
        out = push(a->head, out);
    return out;
}

/* The first `count` of `list`, sorted: rising, or falling. Leaves in `rest` what follows them. */
static __attribute__((noinline)) cons *sort(cons *list, unsigned long count, int falling, cons **rest) {
    if (count == 1) {
        *rest = list->tail;
        return push(list->head, NULL);
    }
    cons *left = sort(list, count / 2, !falling, &list);
    cons *right = sort(list, count - count / 2, !falling, rest);
    return merge(left, right, !falling);
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    unsigned long items = heap_word(argc, argv, "items", ITEMS), sorts = heap_scaled(heap_word(argc, argv, "sorts", SORTS));
    heap_demand(items >= 1 && sorts >= 1, "items and sorts are at least 1");
    uint64_t random = 1, checksum = 0;
    for (unsigned long turn = 0; turn < sorts; turn++) {
        cons *list = NULL, *rest;
        uint64_t sum = 0;
        for (unsigned long i = 0; i < items; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            list = push((intptr_t)(random >> 33), list);
            sum += random >> 33;
        }
        cons *sorted = sort(list, items, 0, &rest);
        unsigned long count = 0;
        for (cons *cell = sorted; cell; cell = cell->tail, count++) {
            heap_demand(!cell->tail || cell->head <= cell->tail->head, "mergesort: the list is not sorted");
            sum -= (uint64_t)cell->head;
            checksum = checksum * 31 + (uint64_t)cell->head;
        }
        heap_demand(count == items && sum == 0 && !rest, "mergesort: the sorted list has other items");
    }
    return heap_end(checksum);
}
