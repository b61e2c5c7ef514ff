/* Life: ten thousand generations of Conway's game, on lists.
 *
 * Smith and Morrisett 1998, Table 1, after Reade 1989. A generation is a sorted list of coordinates. A
 * coordinate is a pair without pointers, a list element a pair of two pointers. Neighbours are collected
 * in lists and searched by walking these. The automaton is Gosper's gun with the fishhook that eats its
 * gliders: it has period 30 and never more than about sixty cells. The same game on a plain array of bytes
 * must give the same result.
 */
#include "heap.h"

typedef struct place {
    intptr_t row, column;
} place;
HEAP_TYPE(place, HEAP_NO_POINTERS);

typedef struct cells {
    const place *first;
    struct cells *rest;
} cells;
HEAP_TYPE(cells, HEAP_POINTER(0) | HEAP_POINTER(1));

enum { GENERATIONS = 10000, HIGH = 40, WIDE = 64, NEIGHBOURS = 8 };

static const char *const GUN[] = {
    "........................O...........",
    "......................O.O...........",
    "............OO......OO............OO",
    "...........O...O....OO............OO",
    "OO........O.....O...OO..............",
    "OO........O...O.OO....O.O...........",
    "..........O.....O.......O...........",
    "...........O...O....................",
    "............OO......................",
};
enum { GUN_ROWS = sizeof GUN / sizeof *GUN, GUN_ROW = 4, GUN_COLUMN = 4, EATER_ROW = 22, EATER_COLUMN = 36 };
/* The fishhook, turned to meet the gun's gliders. */
static const char *const EATER[] = {"OO..", "O.O.", "..O.", "..OO"};
enum { EATER_ROWS = sizeof EATER / sizeof *EATER };

static inline cells *push(const place *first, cells *rest) {
    cells *cell = NEW(cells);
    cell->first = first;
    cell->rest = rest;
    return cell;
}

static inline const place *at(intptr_t row, intptr_t column) {
    place *fresh = NEW(place);
    fresh->row = row;
    fresh->column = column;
    return fresh;
}

static inline int order(const place *a, const place *b) {
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return a->column < b->column ? -1 : a->column > b->column;
}

static __attribute__((noinline)) int member(const place *sought, const cells *list) {
    for (; list; list = list->rest)
        if (order(sought, list->first) == 0)
            return 1;
    return 0;
}

static __attribute__((noinline)) cells *neighbours(const place *of, cells *onto) {
    for (intptr_t row = -1; row <= 1; row++)
        for (intptr_t column = -1; column <= 1; column++)
            if (row || column)
                onto = push(at(of->row + row, of->column + column), onto);
    return onto;
}

static __attribute__((noinline)) cells *reversed(const cells *list) {
    cells *out = NULL;
    for (; list; list = list->rest)
        out = push(list->first, out);
    return out;
}

/* Those of `list` that occur in it exactly three times, each once.
 * The lists hold those met once, twice, three times, and more often. */
static __attribute__((noinline)) cells *thrice(const cells *list) {
    cells *once = NULL, *twice = NULL, *three = NULL, *more = NULL, *out = NULL;
    for (; list; list = list->rest) {
        const place *here = list->first;
        if (member(here, more))
            continue;
        if (member(here, three))
            more = push(here, more);
        else if (member(here, twice))
            three = push(here, three);
        else if (member(here, once))
            twice = push(here, twice);
        else
            once = push(here, once);
    }
    for (; three; three = three->rest)
        if (!member(three->first, more))
            out = push(three->first, out);
    return out;
}

static __attribute__((noinline)) cells *inserted(const place *one, const cells *sorted) {
    cells *before = NULL;
    for (; sorted && order(sorted->first, one) < 0; sorted = sorted->rest)
        before = push(sorted->first, before);
    cells *out = push(one, (cells *)sorted);
    for (; before; before = before->rest)
        out = push(before->first, out);
    return out;
}

static __attribute__((noinline)) cells *next(const cells *living) {
    cells *survivors = NULL, *empty = NULL;
    for (const cells *cell = living; cell; cell = cell->rest) {
        int count = 0;
        for (cells *near = neighbours(cell->first, NULL); near; near = near->rest)
            count += member(near->first, living);
        for (cells *near = neighbours(cell->first, NULL); near; near = near->rest)
            if (!member(near->first, living))
                empty = push(near->first, empty);
        if (count == 2 || count == 3)
            survivors = push(cell->first, survivors);
    }
    cells *out = reversed(survivors);
    for (cells *born = thrice(empty); born; born = born->rest)
        out = inserted(born->first, out);
    return out;
}

/* The same game on a torus of bytes, large enough that its edges are never reached. */
static void next_board(unsigned char board[HIGH][WIDE]) {
    unsigned char old[HIGH][WIDE];
    memcpy(old, board, sizeof old);
    for (int row = 0; row < HIGH; row++)
        for (int column = 0; column < WIDE; column++) {
            int count = -old[row][column];
            for (int r = HIGH - 1; r <= HIGH + 1; r++)
                for (int c = WIDE - 1; c <= WIDE + 1; c++)
                    count += old[(row + r) % HIGH][(column + c) % WIDE];
            board[row][column] = count == 3 || (count == 2 && old[row][column]);
        }
}

static void stamp(unsigned char board[HIGH][WIDE], const char *const *picture, int rows, int row, int column) {
    for (int r = 0; r < rows; r++)
        for (int c = 0; picture[r][c]; c++)
            board[row + r][column + c] = picture[r][c] == 'O';
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    static unsigned char board[HIGH][WIDE];
    stamp(board, GUN, GUN_ROWS, GUN_ROW, GUN_COLUMN);
    stamp(board, EATER, EATER_ROWS, EATER_ROW, EATER_COLUMN);
    cells *living = NULL;
    for (int row = HIGH - 1; row >= 0; row--)
        for (int column = WIDE - 1; column >= 0; column--)
            if (board[row][column])
                living = push(at(row, column), living);
    uint64_t checksum = 0;
    for (unsigned long generation = 0; generation < heap_scaled(GENERATIONS); generation++) {
        living = next(living);
        next_board(board);
        for (const cells *cell = living; cell; cell = cell->rest)
            checksum = checksum * 31 + (uint64_t)(cell->first->row * WIDE + cell->first->column);
    }
    const cells *cell = living;
    for (int row = 0; row < HIGH; row++)
        for (int column = 0; column < WIDE; column++)
            if (board[row][column]) {
                heap_demand(cell && cell->first->row == row && cell->first->column == column,
                            "life: the list and the array went different ways");
                cell = cell->rest;
            }
    heap_demand(!cell, "life: the list has cells that the array has not");
    return heap_end(checksum);
}
