/* Sort: a merge sort that divides and conquers by futures, on light threads.
 *
 * Cooper, Nettles and Subramanian 1992, section 5.2: each division spawns futures, implemented by a simple
 * threads package. The computation is bound by the processor at its beginning and by paging at its end.
 * The memory live at the end is alone larger than all memory (Figure 5).
 *
 * A thread is a record in the heap of the place where it continues, without a stack, as in the paper's
 * language. The scheduler has a list of runnable threads, the youngest first. A thread that waits for a
 * future is attached to it until the future is set. A merging thread yields after some cells, so that many
 * are in progress at once.
 *
 *     thread:  split ──▶ two futures, two threads ──▶ wait for both ──▶ merge in steps ──▶ set its own future
 *
 * Live memory begins with the list to sort, which the caller keeps. The sorted parts are added, then the
 * result while the last halves still live: three cells an item at the end. Cells are 16 bytes. Live memory
 * at the end exceeds `memory=` (MiB) by a fifth, as in the paper. A smaller scale means fewer items.
 *
 * Merging builds its result in reverse order, so each level sorts in the opposite direction. The result's
 * order, count, sum and sum of squares are checked.
 */
#define HEAP_TELLS_WRITES
#include "heap.h"

enum { MEMORY_MIB = 24, CELLS_AN_ITEM = 3, OVER_PERCENT = 120, STRETCH = 4096, LEAF = 8 };

typedef struct cons {
    intptr_t head;
    const struct cons *tail;
} cons;
HEAP_TYPE(cons, HEAP_POINTER(1));

/* A list that will be there; who waits for it. */
typedef struct future {
    intptr_t is_set;
    const cons *list;
    struct thread *waits;
} future;
HEAP_TYPE(future, HEAP_POINTER(1) | HEAP_POINTER(2));

/* Where a thread goes on. */
enum step { SPLIT, JOIN, MERGE };
typedef struct thread {
    intptr_t step, falling, count;
    const cons *list;          /* SPLIT: what to sort, its first `count` */
    future *result;
    future *left, *right;      /* JOIN: the halves */
    const cons *a, *b, *out;   /* MERGE: the rest of both halves, and the merged part */
    struct thread *next;       /* of those that can run */
} thread;
HEAP_TYPE(thread, HEAP_POINTER(3) | HEAP_POINTER(4) | HEAP_POINTER(5) | HEAP_POINTER(6) | HEAP_POINTER(7) | HEAP_POINTER(8) |
                      HEAP_POINTER(9) | HEAP_POINTER(10));

/* Those that can run, the youngest first. */
static thread *ready;
/* What the caller gave to sort, and keeps. */
static const cons *unsorted;
static uint64_t threads_made, switches;

static inline const cons *push(intptr_t head, const cons *tail) {
    cons *cell = NEW(cons);
    cell->head = head;
    cell->tail = tail;
    return cell;
}

static void can_run(thread *of) {
    SET(of->next, ready);
    ready = of;
}

static void set_future(future *of, const cons *list) {
    SET(of->list, list);
    of->is_set = 1;
    if (of->waits) {
        can_run(of->waits);
        SET(of->waits, NULL);
    }
}

/* A thread that sorts the first `count` of `list`; its future. */
static future *spawn(const cons *list, intptr_t count, intptr_t falling) {
    future *result = NEW(future);
    result->is_set = 0;
    result->list = NULL;
    result->waits = NULL;
    thread *fresh = NEW(thread);
    *fresh = (thread){.step = SPLIT, .falling = falling, .count = count, .list = list, .result = result};
    threads_made++;
    can_run(fresh);
    return result;
}

/* Few items are sorted by inserting, the wanted order's end first. */
static const cons *insert_all(const cons *list, intptr_t count, intptr_t falling) {
    intptr_t item[LEAF];
    for (intptr_t i = 0; i < count; i++, list = list->tail) {
        intptr_t place = i;
        for (; place > 0 && (falling ? item[place - 1] > list->head : item[place - 1] < list->head); place--)
            item[place] = item[place - 1];
        item[place] = list->head;
    }
    const cons *sorted = NULL;
    for (intptr_t i = 0; i < count; i++)
        sorted = push(item[i], sorted);
    return sorted;
}

/* Goes on with a thread until it ends, waits, or has merged its stretch. */
static void go_on(thread *of) {
    switches++;
    switch (of->step) {
    case SPLIT: {
        if (of->count <= LEAF) {
            set_future(of->result, insert_all(of->list, of->count, of->falling));
            return;
        }
        intptr_t half = of->count / 2;
        const cons *rest = of->list;
        for (intptr_t i = 0; i < half; i++)
            rest = rest->tail;
        future *right = spawn(rest, of->count - half, !of->falling);
        SET(of->right, right);
        future *left = spawn(of->list, half, !of->falling);
        SET(of->left, left);
        SET(of->list, NULL);
        of->step = JOIN;
    }
    /* fall through */
    case JOIN: {
        future *late = !of->left->is_set ? of->left : !of->right->is_set ? of->right : NULL;
        if (late) {
            SET(late->waits, of);
            return;
        }
        SET(of->a, of->left->list);
        SET(of->b, of->right->list);
        of->step = MERGE;
    }
    /* fall through */
    case MERGE: {
        const cons *a = of->a, *b = of->b, *out = of->out;
        /* The halves come with the wanted end last, so that the one to take is that which comes first in their order. */
        for (int left = STRETCH; left > 0 && (a || b); left--) {
            const cons **from = !b || (a && (a->head < b->head) == of->falling) ? &a : &b;
            out = push((*from)->head, out);
            *from = (*from)->tail;
        }
        SET(of->a, a);
        SET(of->b, b);
        SET(of->out, out);
        if (a || b)
            can_run(of);
        else
            set_future(of->result, out);
    }
    }
}

static const cons *sorted(const cons *list, intptr_t count) {
    future *whole = spawn(list, count, 0);
    while (ready) {
        thread *next = ready;
        ready = next->next;
        SET(next->next, NULL);
        go_on(next);
    }
    heap_demand(whole->is_set, "sort: every thread waits");
    return whole->list;
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    unsigned long memory = heap_word(argc, argv, "memory", MEMORY_MIB);
    heap_demand(memory >= 1 && memory <= 65536, "sort: memory is from 1 to 65536");
    intptr_t count = (intptr_t)heap_scaled((memory << 20) / 100 * OVER_PERCENT / (CELLS_AN_ITEM * sizeof(cons)));
    uint64_t random = 1, sum = 0, squares = 0, checksum = 0;
    for (intptr_t i = 0; i < count; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsorted = push((intptr_t)(random >> 33), unsorted);
        sum += random >> 33;
        squares += (random >> 33) * (random >> 33);
    }
    const cons *result = sorted(unsorted, count);
    intptr_t seen = 0;
    for (const cons *cell = result; cell; cell = cell->tail, seen++) {
        heap_demand(!cell->tail || cell->head <= cell->tail->head, "sort: the list is not sorted");
        sum -= (uint64_t)cell->head;
        squares -= (uint64_t)cell->head * (uint64_t)cell->head;
        checksum = checksum * 31 + (uint64_t)cell->head;
    }
    heap_demand(seen == count && sum == 0 && squares == 0, "sort: the sorted list has other items");
    heap_tell("threads", (double)threads_made);
    heap_tell("switches", (double)switches);
    return heap_end(checksum);
}
