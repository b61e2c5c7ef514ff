/* Logic: a small theorem prover by unification and backtracking, on two puzzles.
 *
 * Smith and Morrisett 1998, Table 1: objects of one to four words, most of two, little live, a shallow
 * stack. The prover is a machine for Horn clauses that does not recurse: goals and choices are lists in
 * the heap. Bindings are recorded on a trail, from which backtracking undoes them.
 *
 * A term is its functor and its arguments. A variable is a special functor with one argument: the term to
 * which it is bound.
 *
 * The puzzles have known answers: six queens stand on their board in four ways, and a list has one reverse.
 */
#include "heap.h"

enum { TURNS = 190, QUEENS = 6, SOLUTIONS = 4, ITEMS = 80, CLAUSES_MAX = 24, LOCALS_MAX = 8 };

typedef struct functor {
    const char *name;
    int arity;
} functor;

typedef struct term {
    const functor *is;
} term;
typedef struct term1 {
    const functor *is;
    const term *of[1];
} term1;
typedef struct term2 {
    const functor *is;
    const term *of[2];
} term2;
typedef struct term3 {
    const functor *is;
    const term *of[3];
} term3;
/* Functors are static and not the heap's, but a compiler could not tell: the word is a pointer. */
HEAP_TYPE(term, HEAP_POINTER(0));
HEAP_TYPE(term1, HEAP_POINTER(0) | HEAP_POINTER(1));
HEAP_TYPE(term2, HEAP_POINTER(0) | HEAP_POINTER(1) | HEAP_POINTER(2));
HEAP_TYPE(term3, HEAP_POINTER(0) | HEAP_POINTER(1) | HEAP_POINTER(2) | HEAP_POINTER(3));

/* Goals still to be proved. */
typedef struct goals {
    const term *head;
    const struct goals *tail;
} goals;
HEAP_TYPE(goals, HEAP_POINTER(0) | HEAP_POINTER(1));

/* Variables bound, the last one first. */
typedef struct trail {
    term1 *head;
    const struct trail *tail;
} trail;
HEAP_TYPE(trail, HEAP_POINTER(0) | HEAP_POINTER(1));

/* Where to go on when a proof fails: these goals, by the clauses from `next` on, with no more bound than on `bound`. */
typedef struct choice {
    const goals *wanted;
    const trail *bound;
    intptr_t next;
    struct choice *before;
} choice;
HEAP_TYPE(choice, HEAP_POINTER(0) | HEAP_POINTER(1) | HEAP_POINTER(3));

static const functor VARIABLE = {"variable", 1}, NIL = {"nil", 0}, PAIR = {"pair", 2}, ZERO = {"zero", 0}, NEXT = {"next", 1};
static const functor BOTH = {"both", 2}, SELECT = {"select", 3}, PLACE = {"place", 2}, OFF = {"off", 2},
                     SAFE = {"safe", 2}, PLACED = {"queens", 2}, APPEND = {"append", 2}, REVERSE = {"reverse", 2},
                     APART = {"apart", 2}, SUM = {"sum", 2};

/* A clause with its variables numbered: in a pattern, variable n is the n-th of `locals`. */
typedef struct clause {
    const term *head;
    const term *body[3];
} clause;
static clause clauses[CLAUSES_MAX];
static int clause_count;
static functor locals[LOCALS_MAX];
static const trail *bound;

static inline const term *value(const term *of) {
    while (of->is == &VARIABLE && ((const term1 *)of)->of[0])
        of = ((const term1 *)of)->of[0];
    return of;
}

static inline term1 *variable(void) {
    term1 *fresh = NEW(term1);
    fresh->is = &VARIABLE;
    fresh->of[0] = NULL;
    return fresh;
}

static const term *make0(const functor *is) {
    term *fresh = NEW(term);
    fresh->is = is;
    return fresh;
}
static const term *make1(const functor *is, const term *a) {
    term1 *fresh = NEW(term1);
    fresh->is = is;
    fresh->of[0] = a;
    return (const term *)fresh;
}
static const term *make2(const functor *is, const term *a, const term *b) {
    term2 *fresh = NEW(term2);
    fresh->is = is;
    fresh->of[0] = a;
    fresh->of[1] = b;
    return (const term *)fresh;
}
static const term *make3(const functor *is, const term *a, const term *b, const term *c) {
    term3 *fresh = NEW(term3);
    fresh->is = is;
    fresh->of[0] = a;
    fresh->of[1] = b;
    fresh->of[2] = c;
    return (const term *)fresh;
}

static inline const term *part(const term *of, int i) {
    return ((const term3 *)of)->of[i];
}

static inline void bind(const term *which, const term *to) {
    trail *fresh = NEW(trail);
    fresh->head = (term1 *)which;
    fresh->tail = bound;
    bound = fresh;
    fresh->head->of[0] = to;
}

static void undo(const trail *to) {
    for (; bound != to; bound = bound->tail)
        bound->head->of[0] = NULL;
}

/* The pattern with this clause's variables. */
static __attribute__((noinline)) const term *instance(const term *pattern, const term **own) {
    if (pattern->is >= locals && pattern->is < locals + LOCALS_MAX) {
        const term **here = &own[pattern->is - locals];
        if (!*here)
            *here = (const term *)variable();
        return *here;
    }
    const term *a, *b;
    switch (pattern->is->arity) {
    case 0: return make0(pattern->is);
    case 1: return make1(pattern->is, instance(part(pattern, 0), own));
    case 2:
        a = instance(part(pattern, 0), own);
        return make2(pattern->is, a, instance(part(pattern, 1), own));
    default:
        a = instance(part(pattern, 0), own);
        b = instance(part(pattern, 1), own);
        return make3(pattern->is, a, b, instance(part(pattern, 2), own));
    }
}

/* Makes the pattern and the term the same, binding variables of both; of the pattern only what must be is made. */
static __attribute__((noinline)) int unified(const term *pattern, const term *with, const term **own) {
    with = value(with);
    if (pattern->is >= locals && pattern->is < locals + LOCALS_MAX) {
        const term **here = &own[pattern->is - locals];
        if (!*here) {
            *here = with;
            return 1;
        }
        const term *is = value(*here);
        if (is == with)
            return 1;
        if (with->is == &VARIABLE)
            return bind(with, is), 1;
        if (is->is == &VARIABLE)
            return bind(is, with), 1;
        if (is->is != with->is)
            return 0;
        /* Both are terms: the one already held is the pattern, and has no variables of the clause. */
        for (int i = 0; i < is->is->arity; i++)
            if (!unified(value(part(is, i)), part(with, i), own))
                return 0;
        return 1;
    }
    if (pattern == with)
        return 1;
    if (with->is == &VARIABLE)
        return bind(with, instance(pattern, own)), 1;
    if (pattern->is == &VARIABLE)
        return bind(pattern, with), 1;
    if (pattern->is != with->is)
        return 0;
    for (int i = 0; i < pattern->is->arity; i++) {
        const term *piece = part(pattern, i);
        if (!unified(piece->is == &VARIABLE ? value(piece) : piece, part(with, i), own))
            return 0;
    }
    return 1;
}

/* Proves the goal in every way, and returns in how many. `each` sees the goal as each proof has bound it. */
static unsigned long proofs(const term *goal, void (*each)(const term *)) {
    goals *first = NEW(goals);
    first->head = goal;
    first->tail = NULL;
    const goals *wanted = first;
    choice *choices = NULL;
    unsigned long count = 0;
    intptr_t next = 0;
    bound = NULL;
    for (;;) {
        if (!wanted) {
            count++;
            each(goal);
        } else {
            const trail *before = bound;
            const functor *is = wanted->head->is;
            for (; next < clause_count; next++) {
                const term *own[LOCALS_MAX] = {0};
                if (clauses[next].head->is != is)
                    continue;
                if (unified(clauses[next].head, wanted->head, own)) {
                    intptr_t other = next + 1;
                    while (other < clause_count && clauses[other].head->is != is)
                        other++;
                    if (other < clause_count) {
                        choice *fresh = NEW(choice);
                        fresh->wanted = wanted;
                        fresh->bound = before;
                        fresh->next = other;
                        fresh->before = choices;
                        choices = fresh;
                    }
                    wanted = wanted->tail;
                    for (int i = 2; i >= 0; i--)
                        if (clauses[next].body[i]) {
                            const term *goal_here = instance(clauses[next].body[i], own);
                            goals *more = NEW(goals);
                            more->head = goal_here;
                            more->tail = wanted;
                            wanted = more;
                        }
                    break;
                }
                undo(before);
            }
            if (next < clause_count) {
                next = 0;
                continue;
            }
        }
        if (!choices)
            return count;
        undo(choices->bound);
        wanted = choices->wanted;
        next = choices->next;
        choices = choices->before;
    }
}

/* ---- The puzzles ---- */

static const term *v(int number) {
    return make0(&locals[number]);
}

static void clause_is(const term *head, const term *a, const term *b, const term *c) {
    heap_demand(clause_count < CLAUSES_MAX, "logic: too many clauses");
    clauses[clause_count++] = (clause){head, {a, b, c}};
}

static const term *both(const term *a, const term *b) {
    return make2(&BOTH, a, b);
}

/* Numbers are NEXT of NEXT of ... ZERO. */
static const term *number(int n) {
    const term *is = make0(&ZERO);
    while (n-- > 0)
        is = make1(&NEXT, is);
    return is;
}

static void know(void) {
    /* select(X, [X|L], L).  select(X, [Y|L], [Y|M]) :- select(X, L, M). */
    clause_is(make3(&SELECT, v(0), make2(&PAIR, v(0), v(1)), v(1)), NULL, NULL, NULL);
    clause_is(make3(&SELECT, v(0), make2(&PAIR, v(1), v(2)), make2(&PAIR, v(1), v(3))),
              make3(&SELECT, v(0), v(2), v(3)), NULL, NULL);
    /* apart(zero, next(_)).  apart(next(_), zero).  apart(next(X), next(Y)) :- apart(X, Y). */
    clause_is(make2(&APART, make0(&ZERO), make1(&NEXT, v(0))), NULL, NULL, NULL);
    clause_is(make2(&APART, make1(&NEXT, v(0)), make0(&ZERO)), NULL, NULL, NULL);
    clause_is(make2(&APART, make1(&NEXT, v(0)), make1(&NEXT, v(1))), make2(&APART, v(0), v(1)), NULL, NULL);
    /* sum(both(zero, X), X).  sum(both(next(X), Y), next(Z)) :- sum(both(X, Y), Z). */
    clause_is(make2(&SUM, both(make0(&ZERO), v(0)), v(0)), NULL, NULL, NULL);
    clause_is(make2(&SUM, both(make1(&NEXT, v(0)), v(1)), make1(&NEXT, v(2))), make2(&SUM, both(v(0), v(1)), v(2)), NULL, NULL);
    /* safe(both(Q, D), []).  safe(both(Q, D), [P|L]) :- place(both(Q, D), P), safe(both(Q, next(D)), L).
     * Placed queens come with the nearest first, and D is how far the first of them is. */
    clause_is(make2(&SAFE, both(v(0), v(1)), make0(&NIL)), NULL, NULL, NULL);
    clause_is(make2(&SAFE, both(v(0), v(1)), make2(&PAIR, v(2), v(3))), make2(&PLACE, both(v(0), v(1)), v(2)),
              make2(&SAFE, both(v(0), make1(&NEXT, v(1))), v(3)), NULL);
    /* place(both(Q, D), P) :- off(both(Q, D), P), off(both(P, D), Q). */
    clause_is(make2(&PLACE, both(v(0), v(1)), v(2)), make2(&OFF, both(v(0), v(1)), v(2)),
              make2(&OFF, both(v(2), v(1)), v(0)), NULL);
    /* off(both(Q, D), P) :- sum(both(D, Q), S), apart(S, P). */
    clause_is(make2(&OFF, both(v(0), v(1)), v(2)), make2(&SUM, both(v(1), v(0)), v(3)), make2(&APART, v(3), v(2)), NULL);
    /* queens([], Placed).  queens(Free, Placed) :- select(Q, Free, Rest), safe(both(Q, 1), Placed), queens(Rest, [Q|Placed]). */
    clause_is(make2(&PLACED, make0(&NIL), v(0)), NULL, NULL, NULL);
    clause_is(make2(&PLACED, make2(&PAIR, v(0), v(1)), v(2)), make3(&SELECT, v(3), make2(&PAIR, v(0), v(1)), v(4)),
              make2(&SAFE, both(v(3), number(1)), v(2)), make2(&PLACED, v(4), make2(&PAIR, v(3), v(2))));
    /* append(both([], L), L).  append(both([X|L], M), [X|N]) :- append(both(L, M), N). */
    clause_is(make2(&APPEND, both(make0(&NIL), v(0)), v(0)), NULL, NULL, NULL);
    clause_is(make2(&APPEND, both(make2(&PAIR, v(0), v(1)), v(2)), make2(&PAIR, v(0), v(3))),
              make2(&APPEND, both(v(1), v(2)), v(3)), NULL, NULL);
    /* reverse([], []).  reverse([X|L], R) :- reverse(L, M), append(both(M, [X]), R). */
    clause_is(make2(&REVERSE, make0(&NIL), make0(&NIL)), NULL, NULL, NULL);
    clause_is(make2(&REVERSE, make2(&PAIR, v(0), v(1)), v(2)), make2(&REVERSE, v(1), v(3)),
              make2(&APPEND, both(v(3), make2(&PAIR, v(0), make0(&NIL))), v(2)), NULL);
}

static uint64_t told;

static void tell(const term *goal) {
    (void)goal;
    told++;
}

static int the_number(const term *of) {
    int n = 0;
    for (of = value(of); of->is == &NEXT; of = value(part(of, 0)))
        n++;
    return n;
}

static uint64_t list_sum(const term *list) {
    uint64_t sum = 0;
    for (list = value(list); list->is == &PAIR; list = value(part(list, 1)))
        sum = sum * 31 + (uint64_t)the_number(part(list, 0)) + 1;
    return sum;
}

static void tell_list(const term *goal) {
    told = list_sum(part(goal, 1));
}

/* 0 to `count` - 1, or from there down. */
static const term *numbers(int count, int down) {
    const term *list = make0(&NIL);
    for (int i = 0; i < count; i++) {
        const term *one = number(down ? i : count - 1 - i);
        list = make2(&PAIR, one, list);
    }
    return list;
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    for (int i = 0; i < LOCALS_MAX; i++)
        locals[i] = (functor){"local", 0};
    know();
    uint64_t checksum = 0;
    for (unsigned long turn = 0; turn < heap_scaled(TURNS); turn++) {
        const term *free = numbers(QUEENS, 0);
        told = 0;
        unsigned long found = proofs(make2(&PLACED, free, make0(&NIL)), tell);
        heap_demand(found == SOLUTIONS && told == SOLUTIONS, "logic: six queens stand in four ways");
        const term *list = numbers(ITEMS, 0);
        found = proofs(make2(&REVERSE, list, (const term *)variable()), tell_list);
        heap_demand(found == 1, "logic: a list has one reverse");
        heap_demand(told == list_sum(numbers(ITEMS, 1)), "logic: a list's reverse is another");
        checksum = checksum * 31 + told + found;
    }
    return heap_end(checksum);
}
