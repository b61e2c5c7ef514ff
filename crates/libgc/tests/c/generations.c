/* A test of generations: many long-lived objects beside many short-lived ones, so most collections need not trace old objects. New objects that only
 * old ones refer to must live. */
#include "check.h"
#include <gc.h>

enum { OLD = 1 << 19, TURNS = 60, NEW_A_TURN = 1000, GARBAGE_A_TURN = 100000 };

struct cell {
    struct cell *old, *new;
    long number;
};

static struct cell *table;

static struct cell *make(struct cell *old, long number)
{
    struct cell *cell = GC_MALLOC(sizeof *cell);
    CHECK(cell && !cell->old && !cell->new && !cell->number);
    cell->old = old;
    cell->number = number;
    return cell;
}

int main(void)
{
    GC_INIT();
    long old = is_eager() ? OLD / 64 : OLD;
    for (long i = 0; i < old; i++)
        table = make(table, i);
    for (long turn = 0; turn < many(TURNS); turn++) {
        struct cell *cell = table;
        for (long i = 0; i < NEW_A_TURN; i++) {
            cell->new = make(NULL, turn * NEW_A_TURN + i);
            /* Old cells, far from each other. */
            for (long skipped = 0; cell->old && skipped < old / NEW_A_TURN; skipped++)
                cell = cell->old;
        }
        for (long i = 0; i < many(GARBAGE_A_TURN); i++)
            make(NULL, i);
        cell = table;
        for (long i = 0; i < NEW_A_TURN; i++) {
            CHECK(cell->number >= 0 && cell->number < old);
            if (cell->old)
                CHECK(cell->new->number == turn * NEW_A_TURN + i);
            for (long skipped = 0; cell->old && skipped < old / NEW_A_TURN; skipped++)
                cell = cell->old;
        }
    }
    long count = 0;
    for (struct cell *cell = table; cell; cell = cell->old)
        CHECK(cell->number == old - ++count);
    CHECK(count == old);
    puts("generations: as promised");
    return 0;
}
