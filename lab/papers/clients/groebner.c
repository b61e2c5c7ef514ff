/* Groebner: Buchberger's algorithm over a prime field.
 *
 * Smith and Morrisett 1998, Table 1: only objects of two words, the largest live set of all, and at any
 * time some hundreds of untyped objects, whose type the paper's compiler could not find. Here the untyped
 * objects are the queue of pairs, which would be polymorphic. A monomial is the list of its degree and its
 * exponents. A term is a coefficient and a monomial, a polynomial a list of terms, the largest first. The
 * order is by degree, then lexicographic.
 *
 * The ideal is the cyclic one of six roots. This is more work than in the paper, so the run ends after a
 * number of pairs. At the end, every generator and a sample of the processed S-polynomials must reduce to
 * nothing. If all pairs were processed (roots=5, or a scale of 500), the number of irreducible monomials
 * must be the number of the ideal's solutions, which is known.
 */
#include "heap.h"

enum { PAIRS = 450, ROOTS = 6, ROOTS_MAX = 8, PRIME = 32003, BASIS_MAX = 400, SAMPLE = 61 };

/* The number of solutions of the cyclic ideal, by roots; 0 where there is no end of them, or it is not known. */
static const unsigned long SOLUTIONS[ROOTS_MAX + 1] = {0, 0, 0, 6, 0, 70, 156, 924, 0};

typedef struct exponents {
    intptr_t head;
    const struct exponents *tail;
} exponents;
HEAP_TYPE(exponents, HEAP_POINTER(1));

typedef struct term {
    intptr_t coefficient;
    const exponents *of;
} term;
HEAP_TYPE(term, HEAP_POINTER(1));

typedef struct polynomial {
    const term *head;
    struct polynomial *tail;
} polynomial;
HEAP_TYPE(polynomial, HEAP_POINTER(0) | HEAP_POINTER(1));

/* What the queue is made of: two of anything. */
typedef struct both {
    const void *first, *second;
} both;
HEAP_TYPE(both, HEAP_POINTER(0) | HEAP_POINTER(1));

/* Which two elements of the basis. */
typedef struct places {
    intptr_t a, b;
} places;
HEAP_TYPE(places, HEAP_NO_POINTERS);

static const polynomial *basis[BASIS_MAX];
static int basis_count;

static inline const exponents *push(intptr_t head, const exponents *tail) {
    exponents *fresh = NEW(exponents);
    fresh->head = head;
    fresh->tail = tail;
    return fresh;
}

static inline const term *times_of(intptr_t coefficient, const exponents *of) {
    term *fresh = NEW(term);
    fresh->coefficient = coefficient;
    fresh->of = of;
    return fresh;
}

static inline polynomial *cell(const term *head, polynomial *tail) {
    polynomial *fresh = NEW(polynomial);
    fresh->head = head;
    fresh->tail = tail;
    return fresh;
}

/* An untyped pair, as a polymorphic function makes it. */
static inline const both *pair(const void *first, const void *second) {
    both *fresh = NEW_UNTYPED(both);
    fresh->first = first;
    fresh->second = second;
    return fresh;
}

/* ---- Monomials: the degree, then the exponents ---- */

static int order(const exponents *a, const exponents *b) {
    for (; a; a = a->tail, b = b->tail)
        if (a->head != b->head)
            return a->head < b->head ? -1 : 1;
    return 0;
}

static const exponents *product(const exponents *a, const exponents *b) {
    return a ? push(a->head + b->head, product(a->tail, b->tail)) : NULL;
}

static const exponents *quotient(const exponents *a, const exponents *b) {
    return a ? push(a->head - b->head, quotient(a->tail, b->tail)) : NULL;
}

/* Whether `a` divides `b`; degrees do too then. */
static int divides(const exponents *a, const exponents *b) {
    for (; a; a = a->tail, b = b->tail)
        if (a->head > b->head)
            return 0;
    return 1;
}

static const exponents *larger(const exponents *a, const exponents *b) {
    return a ? push(a->head > b->head ? a->head : b->head, larger(a->tail, b->tail)) : NULL;
}

static const exponents *common_multiple(const exponents *a, const exponents *b) {
    const exponents *of = larger(a->tail, b->tail);
    intptr_t degree = 0;
    for (const exponents *one = of; one; one = one->tail)
        degree += one->head;
    return push(degree, of);
}

/* ---- Polynomials ---- */

static intptr_t inverse(intptr_t of) {
    intptr_t result = 1;
    for (intptr_t power = PRIME - 2; power; power >>= 1, of = of * of % PRIME)
        if (power & 1)
            result = result * of % PRIME;
    return result;
}

static polynomial *reversed(polynomial *of, polynomial *onto) {
    for (; of; of = of->tail)
        onto = cell(of->head, onto);
    return onto;
}

/* a - c m b, merged term by term. */
static __attribute__((noinline)) polynomial *less(polynomial *a, intptr_t c, const exponents *m, polynomial *b) {
    polynomial *out = NULL;
    const exponents *next = b ? product(m, b->head->of) : NULL;
    while (b) {
        int is = a ? order(a->head->of, next) : -1;
        if (is > 0) {
            out = cell(a->head, out);
            a = a->tail;
            continue;
        }
        intptr_t coefficient = (PRIME - c * b->head->coefficient % PRIME) % PRIME;
        if (is == 0) {
            coefficient = (coefficient + a->head->coefficient) % PRIME;
            a = a->tail;
        }
        if (coefficient)
            out = cell(times_of(coefficient, next), out);
        b = b->tail;
        next = b ? product(m, b->head->of) : NULL;
    }
    return reversed(out, a);
}

static polynomial *monic(polynomial *of) {
    intptr_t by = inverse(of->head->coefficient);
    polynomial *out = NULL;
    for (; of; of = of->tail)
        out = cell(times_of(of->head->coefficient * by % PRIME, of->head->of), out);
    return reversed(out, NULL);
}

/* What is left when the basis (but its element `but`) has been subtracted wherever it can be. */
static __attribute__((noinline)) polynomial *remainder_of(polynomial *of, int but) {
    polynomial *out = NULL;
    while (of) {
        const polynomial *by = NULL;
        for (int i = 0; i < basis_count && !by; i++)
            if (i != but && basis[i] && divides(basis[i]->head->of, of->head->of))
                by = basis[i];
        if (by) {
            /* All of the basis is monic, so the leading terms go. */
            of = less(of->tail, of->head->coefficient, quotient(of->head->of, by->head->of), by->tail);
        } else {
            out = cell(of->head, out);
            of = of->tail;
        }
    }
    return reversed(out, NULL);
}

static polynomial *s_polynomial(const polynomial *a, const polynomial *b) {
    const exponents *multiple = common_multiple(a->head->of, b->head->of);
    polynomial *first = less(NULL, PRIME - 1, quotient(multiple, a->head->of), a->tail);
    return less(first, 1, quotient(multiple, b->head->of), b->tail);
}

/* ---- The queue: (common multiple, places) pairs in a list, smallest first ---- */

static const both *inserted(const exponents *multiple, const places *which, const both *queue) {
    const both *before = NULL;
    while (queue && order(((const both *)queue->first)->first, multiple) <= 0) {
        before = pair(queue->first, before);
        queue = queue->second;
    }
    queue = pair(pair(multiple, which), queue);
    for (; before; before = before->second)
        queue = pair(before->first, queue);
    return queue;
}

/* Of each two elements, whether they need no more be looked at, and whether that is because their S-polynomial was reduced. */
enum { NEEDLESS = 1, REDUCED = 2 };
static unsigned char done[BASIS_MAX][BASIS_MAX];

/* Whether some third element's leading monomial divides the multiple, and its pairs with both are done with: Buchberger's
 * chain criterion. */
static int is_chained(const exponents *multiple, intptr_t a, intptr_t b) {
    for (int i = 0; i < basis_count; i++)
        if (i != a && i != b && done[a][i] && done[b][i] && divides(basis[i]->head->of, multiple))
            return 1;
    return 0;
}

static const both *added(polynomial *of, const both *queue) {
    heap_demand(basis_count < BASIS_MAX, "groebner: the basis is too large");
    basis[basis_count] = of;
    for (int i = 0; i < basis_count; i++) {
        const exponents *multiple = common_multiple(basis[i]->head->of, of->head->of);
        /* Without a common factor the S-polynomial is known to vanish. */
        if (multiple->head == basis[i]->head->of->head + of->head->of->head) {
            done[i][basis_count] = done[basis_count][i] = NEEDLESS;
            continue;
        }
        places *which = NEW(places);
        which->a = i;
        which->b = basis_count;
        queue = inserted(multiple, which, queue);
    }
    basis_count++;
    return queue;
}

/* ---- The ideal ---- */

static const exponents *monomial(unsigned roots, unsigned from, unsigned count) {
    const exponents *of = NULL;
    for (unsigned i = roots; i-- > 0;)
        of = push((i + roots - from) % roots < count, of);
    return push(count, of);
}

static polynomial *summed(polynomial *a, const term *b) {
    return less(a, PRIME - b->coefficient, b->of, cell(times_of(1, monomial(ROOTS_MAX, 0, 0)), NULL));
}

/* The sum of all products of `count` neighbouring variables; of all of them there is one, less 1. */
static polynomial *generator(unsigned roots, unsigned count) {
    polynomial *sum = NULL;
    for (unsigned from = 0; from < (count == roots ? 1 : roots); from++)
        sum = summed(sum, times_of(1, monomial(roots, from, count)));
    return count == roots ? summed(sum, times_of(PRIME - 1, monomial(roots, 0, 0))) : sum;
}

/* Whether some leading monomial divides this one, given by its exponents. */
static int is_reducible(const intptr_t *of, unsigned roots) {
    for (int i = 0; i < basis_count; i++) {
        if (!basis[i])
            continue;
        const exponents *one = basis[i]->head->of->tail;
        unsigned at = 0;
        while (at < roots && one->head <= of[at]) {
            at++;
            one = one->tail;
        }
        if (at == roots)
            return 1;
    }
    return 0;
}

/* How many irreducible monomials there are whose exponents before `at` are these. */
static unsigned long irreducible(intptr_t *of, unsigned roots, unsigned at) {
    if (at == roots)
        return 1;
    unsigned long count = 0;
    for (of[at] = 0; !is_reducible(of, roots); of[at]++)
        count += irreducible(of, roots, at + 1);
    of[at] = 0;
    return count;
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    unsigned roots = (unsigned)heap_word(argc, argv, "roots", ROOTS);
    heap_demand(roots >= 3 && roots <= ROOTS_MAX, "groebner: roots= is from 3 to 8");
    unsigned long left = heap_scaled(PAIRS);
    const both *queue = NULL;
    for (unsigned count = 1; count <= roots; count++) {
        polynomial *rest = remainder_of(generator(roots, count), -1);
        queue = added(monic(rest), queue);
    }
    while (queue && left > 0) {
        const both *next = queue->first;
        const places *which = next->second;
        queue = queue->second;
        int is = NEEDLESS;
        if (!is_chained(next->first, which->a, which->b)) {
            is = REDUCED;
            left--;
            polynomial *rest = remainder_of(s_polynomial(basis[which->a], basis[which->b]), -1);
            if (rest)
                queue = added(monic(rest), queue);
        }
        done[which->a][which->b] = done[which->b][which->a] = (unsigned char)is;
    }
    for (unsigned count = 1; count <= roots; count++)
        heap_demand(!remainder_of(generator(roots, count), -1), "groebner: a generator is not in the ideal");
    for (int i = 0; i < basis_count; i++)
        for (int j = 0; j < i; j++)
            if (done[i][j] == REDUCED && (i * basis_count + j) % SAMPLE == 0)
                heap_demand(!remainder_of(s_polynomial(basis[i], basis[j]), -1), "groebner: not a basis");
    uint64_t checksum = 0;
    for (int i = 0; i < basis_count; i++)
        for (const polynomial *one = basis[i]; one; one = one->tail)
            checksum = checksum * 31 + (uint64_t)one->head->coefficient;
    if (!queue && SOLUTIONS[roots]) {
        intptr_t of[ROOTS_MAX] = {0};
        heap_demand(irreducible(of, roots, 0) == SOLUTIONS[roots], "groebner: the ideal has other solutions");
    }
    return heap_end(checksum);
}
