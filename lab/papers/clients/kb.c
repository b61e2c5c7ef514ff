/* Knuth-Bendix: completes the axioms of groups to a system of rewriting rules, and decides equations by it.
 *
 * Smith and Morrisett 1998, Table 1: objects of one, two and three words about equally often, a large live
 * set (some 85,000 objects) and a very deep stack. In the paper the stack is deep because exception
 * handlers keep the compiler from turning calls into loops. Here the pass over some thousands of equations
 * recurses, and each stack frame holds one equation.
 *
 * A term is its symbol and its arguments: a constant or a variable has one word, an inverse two, a product
 * three. A match, or a simpler term, is returned in a box of one word, like SOME in an ML program.
 *
 * Check: the ten rules found must be the known ones, and each equation is decided again by reducing words
 * of the free group.
 */
#include "heap.h"

enum { TURNS = 6, EQUATIONS = 4200, VARIABLES = 24, GENERATORS = 4, RULES_MAX = 64, ROUNDS_MAX = 60, PAIRS_MAX = 400, WORD_MAX = 4096 };
enum { RULES_EXPECTED = 10, DEPTH = 4 };

/* How many arguments, and its rank among symbols. Variables have an index from 0, others -1. */
typedef struct symbol {
    int arity, rank, variable;
} symbol;

typedef struct term {
    const symbol *head;
} term;
typedef struct unary {
    const symbol *head;
    const term *argument;
} unary;
typedef struct binary {
    const symbol *head;
    const term *left, *right;
} binary;
/* Symbols are static and not the heap's, but a compiler could not tell: the word is a pointer. */
HEAP_TYPE(term, HEAP_POINTER(0));
HEAP_TYPE(unary, HEAP_POINTER(0) | HEAP_POINTER(1));
HEAP_TYPE(binary, HEAP_POINTER(0) | HEAP_POINTER(1) | HEAP_POINTER(2));

/* What a variable stands for, in a list. */
typedef struct binding {
    intptr_t variable;
    const term *is;
    struct binding *next;
} binding;
HEAP_TYPE(binding, HEAP_POINTER(1) | HEAP_POINTER(2));

/* SOME of a term, or of a list of bindings. */
typedef struct some_term {
    const term *is;
} some_term;
HEAP_TYPE(some_term, HEAP_POINTER(0));
typedef struct some_bindings {
    const binding *are;
} some_bindings;
HEAP_TYPE(some_bindings, HEAP_POINTER(0));

typedef struct sides {
    const term *left, *right;
} sides;
HEAP_TYPE(sides, HEAP_POINTER(0) | HEAP_POINTER(1));

/* A rule to be tried on a term: what an ML program would hand to an exception handler as a function without arguments. */
typedef struct attempt {
    const sides *rule;
    const term *of;
} attempt;
HEAP_TYPE(attempt, HEAP_POINTER(0) | HEAP_POINTER(1));

typedef struct equations {
    const sides *head;
    struct equations *tail;
} equations;
HEAP_TYPE(equations, HEAP_POINTER(0) | HEAP_POINTER(1));

typedef struct verdicts {
    intptr_t holds;
    struct verdicts *tail;
} verdicts;
HEAP_TYPE(verdicts, HEAP_POINTER(1));

static symbol UNIT = {0, 0, -1}, PRODUCT = {2, 1, -1}, INVERSE = {1, 2, -1};
static symbol generators[GENERATORS], variables[VARIABLES];

static struct {
    const sides *rules[RULES_MAX];
    int count;
} system_;

static inline const term *leaf(const symbol *head) {
    term *fresh = NEW(term);
    fresh->head = head;
    return fresh;
}

static inline const term *inverse(const term *argument) {
    unary *fresh = NEW(unary);
    fresh->head = &INVERSE;
    fresh->argument = argument;
    return (const term *)fresh;
}

static inline const term *product(const term *left, const term *right) {
    binary *fresh = NEW(binary);
    fresh->head = &PRODUCT;
    fresh->left = left;
    fresh->right = right;
    return (const term *)fresh;
}

static inline const term *argument(const term *of) {
    return ((const unary *)of)->argument;
}
static inline const term *left(const term *of) {
    return ((const binary *)of)->left;
}
static inline const term *right(const term *of) {
    return ((const binary *)of)->right;
}

static inline const some_term *some(const term *is) {
    some_term *fresh = NEW(some_term);
    fresh->is = is;
    return fresh;
}

static inline const some_bindings *some_list(const binding *are) {
    some_bindings *fresh = NEW(some_bindings);
    fresh->are = are;
    return fresh;
}

static inline const sides *equation(const term *l, const term *r) {
    sides *fresh = NEW(sides);
    fresh->left = l;
    fresh->right = r;
    return fresh;
}

static inline const equations *push(const sides *head, const equations *tail) {
    equations *fresh = NEW(equations);
    fresh->head = head;
    fresh->tail = (equations *)tail;
    return fresh;
}

static const term *looked_up(const binding *list, intptr_t variable) {
    for (; list; list = list->next)
        if (list->variable == variable)
            return list->is;
    return NULL;
}

static const binding *bound(intptr_t variable, const term *is, const binding *next) {
    binding *fresh = NEW(binding);
    fresh->variable = variable;
    fresh->is = is;
    fresh->next = (binding *)next;
    return fresh;
}

static int equal(const term *a, const term *b) {
    if (a == b)
        return 1;
    if (a->head != b->head)
        return 0;
    switch (a->head->arity) {
    case 0: return 1;
    case 1: return equal(argument(a), argument(b));
    default: return equal(left(a), left(b)) && equal(right(a), right(b));
    }
}

static __attribute__((noinline)) const term *substituted(const term *of, const binding *by) {
    switch (of->head->arity) {
    case 0: {
        const term *is = of->head->variable < 0 ? NULL : looked_up(by, of->head->variable);
        return is ? is : of;
    }
    case 1: return inverse(substituted(argument(of), by));
    default: {
        const term *l = substituted(left(of), by);
        return product(l, substituted(right(of), by));
    }
    }
}

/* What makes `pattern` the term, beyond `so_far`; NULL if nothing does. */
static __attribute__((noinline)) const some_bindings *matched(const term *pattern, const term *of, const binding *so_far) {
    if (pattern->head->variable >= 0) {
        const term *is = looked_up(so_far, pattern->head->variable);
        if (!is)
            return some_list(bound(pattern->head->variable, of, so_far));
        return equal(is, of) ? some_list(so_far) : NULL;
    }
    if (pattern->head != of->head)
        return NULL;
    switch (pattern->head->arity) {
    case 0: return some_list(so_far);
    case 1: return matched(argument(pattern), argument(of), so_far);
    default: {
        const some_bindings *first = matched(left(pattern), left(of), so_far);
        return first ? matched(right(pattern), right(of), first->are) : NULL;
    }
    }
}

static __attribute__((noinline)) const some_term *tried(const attempt *now) {
    const some_bindings *by = matched(now->rule->left, now->of, NULL);
    return by ? some(substituted(now->rule->right, by->are)) : NULL;
}

/* The term after one rule at its root, all but the rule `but`. */
static __attribute__((noinline)) const some_term *at_root(const term *of, int but) {
    for (int i = 0; i < system_.count; i++) {
        if (i == but || !system_.rules[i] || system_.rules[i]->left->head != of->head)
            continue;
        attempt *now = NEW(attempt);
        now->rule = system_.rules[i];
        now->of = of;
        const some_term *found = tried(now);
        if (found)
            return found;
    }
    return NULL;
}

static __attribute__((noinline)) const term *simplest(const term *of, int but) {
    for (;;) {
        if (of->head->arity == 1) {
            const term *inner = simplest(argument(of), but);
            of = inner == argument(of) ? of : inverse(inner);
        } else if (of->head->arity == 2) {
            const term *l = simplest(left(of), but), *r = simplest(right(of), but);
            of = l == left(of) && r == right(of) ? of : product(l, r);
        }
        const some_term *next = at_root(of, but);
        if (!next)
            return of;
        of = next->is;
    }
}

/* ---- The order: the recursive path order with status from the left, inverse above product above the unit ---- */

static int contains(const term *of, const symbol *variable) {
    switch (of->head->arity) {
    case 0: return of->head == variable;
    case 1: return contains(argument(of), variable);
    default: return contains(left(of), variable) || contains(right(of), variable);
    }
}

static int above(const term *a, const term *b);

static int not_below(const term *a, const term *b) {
    return equal(a, b) || above(a, b);
}

static int above_arguments(const term *a, const term *b) {
    switch (b->head->arity) {
    case 0: return 1;
    case 1: return above(a, argument(b));
    default: return above(a, left(b)) && above(a, right(b));
    }
}

static int above(const term *a, const term *b) {
    if (a->head->variable >= 0)
        return 0;
    if (b->head->variable >= 0)
        return contains(a, b->head);
    if (a->head->arity == 1 && not_below(argument(a), b))
        return 1;
    if (a->head->arity == 2 && (not_below(left(a), b) || not_below(right(a), b)))
        return 1;
    if (a->head != b->head)
        return a->head->rank > b->head->rank && above_arguments(a, b);
    switch (a->head->arity) {
    case 0: return 0;
    case 1: return above(argument(a), argument(b));
    default:
        if (equal(left(a), left(b)))
            return above(right(a), right(b)) && above_arguments(a, b);
        return above(left(a), left(b)) && above_arguments(a, b);
    }
}

/* ---- Completion ---- */

static const binding *followed(const binding *by, const term *of, const term **end) {
    const term *next;
    while (of->head->variable >= 0 && (next = looked_up(by, of->head->variable)))
        of = next;
    *end = of;
    return by;
}

static int occurs(const symbol *variable, const term *in, const binding *by) {
    followed(by, in, &in);
    switch (in->head->arity) {
    case 0: return in->head == variable;
    case 1: return occurs(variable, argument(in), by);
    default: return occurs(variable, left(in), by) || occurs(variable, right(in), by);
    }
}

static const some_bindings *unified(const term *a, const term *b, const binding *by) {
    followed(by, a, &a);
    followed(by, b, &b);
    if (a->head == b->head && a->head->arity == 0)
        return some_list(by);
    if (a->head->variable >= 0)
        return occurs(a->head, b, by) ? NULL : some_list(bound(a->head->variable, b, by));
    if (b->head->variable >= 0)
        return unified(b, a, by);
    if (a->head != b->head)
        return NULL;
    if (a->head->arity == 1)
        return unified(argument(a), argument(b), by);
    const some_bindings *first = unified(left(a), left(b), by);
    return first ? unified(right(a), right(b), first->are) : NULL;
}

/* All of a unifier's bindings at once. */
static const term *resolved(const term *of, const binding *by) {
    followed(by, of, &of);
    switch (of->head->arity) {
    case 0: return of;
    case 1: return inverse(resolved(argument(of), by));
    default: {
        const term *l = resolved(left(of), by);
        return product(l, resolved(right(of), by));
    }
    }
}

/* Variables from 0 up, in the order they are met; `shift` more for each. */
static const term *renamed(const term *of, int *map, int *count, int shift) {
    switch (of->head->arity) {
    case 0:
        if (of->head->variable < 0)
            return of;
        if (map[of->head->variable] < 0)
            map[of->head->variable] = (*count)++;
        heap_demand(map[of->head->variable] + shift < VARIABLES, "kb: too many variables in an equation");
        return leaf(&variables[map[of->head->variable] + shift]);
    case 1: return inverse(renamed(argument(of), map, count, shift));
    default: {
        const term *l = renamed(left(of), map, count, shift);
        return product(l, renamed(right(of), map, count, shift));
    }
    }
}

static const sides *normal(const term *l, const term *r, int shift) {
    int map[VARIABLES], count = 0;
    memset(map, -1, sizeof map);
    const term *first = renamed(l, map, &count, shift);
    return equation(first, renamed(r, map, &count, shift));
}

/* `whole` with what is at the place the walk is at replaced: the places are the subterms of a rule's left side that are no
 * variables. Each that unifies with the other rule's left side gives a pair. */
typedef struct context {
    const struct context *outer;
    const term *at;
    int from_left;
} context;

static const term *plugged(const context *in, const term *with) {
    for (; in; in = in->outer)
        with = in->at->head->arity == 1 ? inverse(with)
               : in->from_left          ? product(with, right(in->at))
                                        : product(left(in->at), with);
    return with;
}

static const equations *overlaps(const sides *one, const sides *other, const term *at, const context *in,
                                 const equations *onto) {
    if (at->head->variable >= 0)
        return onto;
    const some_bindings *by = unified(at, other->left, NULL);
    if (by) {
        const term *a = resolved(plugged(in, other->right), by->are), *b = resolved(one->right, by->are);
        onto = push(equation(a, b), onto);
    }
    context here = {in, at, 1};
    if (at->head->arity == 1)
        return overlaps(one, other, argument(at), &here, onto);
    if (at->head->arity == 2) {
        onto = overlaps(one, other, left(at), &here, onto);
        here.from_left = 0;
        return overlaps(one, other, right(at), &here, onto);
    }
    return onto;
}

static int size(const term *of) {
    switch (of->head->arity) {
    case 0: return 1;
    case 1: return 1 + size(argument(of));
    default: return 1 + size(left(of)) + size(right(of));
    }
}

/* Takes the smallest equation out of the list. */
static const sides *smallest(const equations **list) {
    const sides *best = NULL;
    int least = 0;
    for (const equations *one = *list; one; one = one->tail) {
        int is = size(one->head->left) + size(one->head->right);
        if (!best || is < least) {
            best = one->head;
            least = is;
        }
    }
    const equations *rest = NULL;
    int taken = 0;
    for (const equations *one = *list; one; one = one->tail) {
        if (one->head == best && !taken)
            taken = 1;
        else
            rest = push(one->head, rest);
    }
    *list = rest;
    return best;
}

/* Completes what follows from `open`; leaves the rules in the system. */
static void complete(const equations *open) {
    system_.count = 0;
    while (open) {
        const sides *next = smallest(&open);
        const term *l = simplest(next->left, -1), *r = simplest(next->right, -1);
        if (equal(l, r))
            continue;
        const sides *rule = above(l, r) ? normal(l, r, 0) : above(r, l) ? normal(r, l, 0) : NULL;
        heap_demand(rule != NULL, "kb: an equation cannot be made a rule");
        heap_demand(system_.count < RULES_MAX, "kb: too many rules");
        int added = system_.count;
        system_.rules[system_.count++] = rule;
        /* Rules that the new one simplifies: on the left they are equations again, on the right they are rules still. */
        for (int i = 0; i < added; i++) {
            const sides *old = system_.rules[i];
            if (!old)
                continue;
            if (simplest(old->left, i) != old->left) {
                open = push(old, open);
                system_.rules[i] = NULL;
            } else {
                system_.rules[i] = equation(old->left, simplest(old->right, -1));
            }
        }
        for (int i = 0; i < system_.count; i++) {
            if (!system_.rules[i])
                continue;
            const sides *other = normal(system_.rules[i]->left, system_.rules[i]->right, VARIABLES / 2);
            open = overlaps(rule, other, rule->left, NULL, open);
            open = overlaps(other, rule, other->left, NULL, open);
        }
    }
    int kept = 0;
    for (int i = 0; i < system_.count; i++)
        if (system_.rules[i])
            system_.rules[kept++] = system_.rules[i];
    system_.count = kept;
}

/* ---- Deciding ---- */

static uint64_t random_state = 3;
static unsigned pick(unsigned below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((random_state >> 33) % below);
}

/* A random term over the generators. */
static const term *any(int depth) {
    unsigned what = pick(9);
    if (depth == 0 || what < 2)
        return leaf(pick(6) ? &generators[pick(GENERATORS)] : &UNIT);
    if (what < 4)
        return inverse(any(depth - 1));
    const term *l = any(depth - 1);
    return product(l, any(depth - 1));
}

/* The same element said otherwise, by axioms used backwards here and there. */
static const term *disguised(const term *of) {
    switch (of->head->arity) {
    case 0: return pick(4) ? of : product(leaf(&UNIT), of);
    case 1: return inverse(disguised(argument(of)));
    default: {
        const term *l = disguised(left(of)), *r = disguised(right(of));
        if (l->head == &PRODUCT && pick(2))
            return product(left(l), product(right(l), r));
        return product(l, r);
    }
    }
}

/* Equations, of which every third should not hold. */
static const equations *questions(unsigned long count) {
    const equations *list = NULL;
    for (unsigned long i = 0; i < count; i++) {
        const term *l = any(DEPTH), *r = disguised(l);
        list = push(equation(l, i % 3 ? r : product(r, leaf(&generators[pick(GENERATORS)]))), list);
    }
    return list;
}

/* Decides all of them. Not a loop: each frame holds its equation's simplest sides until those behind it are decided. */
static __attribute__((noinline)) const verdicts *decided(const equations *list) {
    if (!list)
        return NULL;
    const term *l = simplest(list->head->left, -1), *r = simplest(list->head->right, -1);
    const verdicts *rest = decided(list->tail);
    verdicts *fresh = NEW(verdicts);
    fresh->tail = (verdicts *)rest;
    fresh->holds = equal(l, r);
    return fresh;
}

/* A term as a reduced word: letters are generators from 1, inverses negative. */
static int letters(const term *of, int sign, int *word, int length) {
    switch (of->head->arity) {
    case 0: {
        if (of->head == &UNIT)
            return length;
        int letter = sign * (int)(of->head - generators + 1);
        if (length > 0 && word[length - 1] == -letter)
            return length - 1;
        heap_demand(length < WORD_MAX, "kb: a word is too long");
        word[length] = letter;
        return length + 1;
    }
    case 1: return letters(argument(of), -sign, word, length);
    default: {
        const term *first = sign > 0 ? left(of) : right(of), *second = sign > 0 ? right(of) : left(of);
        return letters(second, sign, word, letters(first, sign, word, length));
    }
    }
}

static int holds(const sides *of) {
    static int a[WORD_MAX], b[WORD_MAX];
    int n = letters(of->left, 1, a, 0), m = letters(of->right, 1, b, 0);
    return n == m && !memcmp(a, b, (size_t)n * sizeof *a);
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    for (int i = 0; i < GENERATORS; i++)
        generators[i] = (symbol){0, 3 + i, -1};
    for (int i = 0; i < VARIABLES; i++)
        variables[i] = (symbol){0, -1, i};
    const equations *asked = questions(EQUATIONS);
    uint64_t checksum = 0;
    for (unsigned long turn = 0; turn < heap_scaled(TURNS); turn++) {
        const term *x = leaf(&variables[0]), *y = leaf(&variables[1]), *z = leaf(&variables[2]);
        const equations *axioms = push(equation(product(leaf(&UNIT), x), x), NULL);
        axioms = push(equation(product(inverse(x), x), leaf(&UNIT)), axioms);
        axioms = push(equation(product(product(x, y), z), product(x, product(y, z))), axioms);
        complete(axioms);
        heap_demand(system_.count == RULES_EXPECTED, "kb: the axioms of groups complete to ten rules");
        const verdicts *found = decided(asked);
        const equations *one = asked;
        for (; one && found; one = one->tail, found = found->tail) {
            heap_demand(found->holds == holds(one->head), "kb: the rules and the free group disagree");
            checksum = checksum * 31 + (uint64_t)found->holds;
        }
        heap_demand(!one && !found, "kb: not every equation was decided");
    }
    return heap_end(checksum);
}
