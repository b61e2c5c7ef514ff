/* Pia: perspective inversion. Finds the position of an object from its picture.
 *
 * Smith and Morrisett 1998, Table 1: mostly floating-point numbers of two words, without pointers; closures
 * of three words and list elements of two; a stack that swings between a hundred frames and a thousand. A
 * number is its value and its derivative by one of the pose's parameters. Newton's method is therefore exact,
 * and numbers have two words also where a double has one. Residuals are computed by recursion over the
 * object's points, a stack frame each. The small systems of equations in between need no depth.
 *
 * Check: the pose is known, and must be found.
 */
#include "heap.h"

#include <math.h>

enum { POSES = 62, POINTS = 700, PARAMETERS = 6, STEPS_MAX = 12 };
#define FAR 12.0
#define CLOSE_ENOUGH 1e-7

typedef struct number {
    double value, slope;
} number;
HEAP_TYPE(number, HEAP_NO_POINTERS);

typedef struct list {
    const number *head;
    const struct list *tail;
} list;
HEAP_TYPE(list, HEAP_POINTER(0) | HEAP_POINTER(1));

/* A point of the object, or of its picture. */
typedef struct triple {
    const number *x, *y, *z;
} triple;
HEAP_TYPE(triple, HEAP_POINTER(0) | HEAP_POINTER(1) | HEAP_POINTER(2));

typedef struct points {
    const triple *head;
    const struct points *tail;
} points;
HEAP_TYPE(points, HEAP_POINTER(0) | HEAP_POINTER(1));

/* "Where would this point be seen": a function and what it is to be called with. */
typedef struct closure {
    const list *(*code)(const struct closure *, const list *);
    const triple *point;
    const triple *seen;
} closure;
HEAP_TYPE(closure, HEAP_POINTER(1) | HEAP_POINTER(2));

static inline const number *num(double value, double slope) {
    number *fresh = NEW(number);
    fresh->value = value;
    fresh->slope = slope;
    return fresh;
}
static inline const number *minus(const number *a, const number *b) {
    return num(a->value - b->value, a->slope - b->slope);
}
static inline const number *plus(const number *a, const number *b) {
    return num(a->value + b->value, a->slope + b->slope);
}
/* a b + c d */
static inline const number *sum_of(const number *a, const number *b, const number *c, const number *d) {
    return num(a->value * b->value + c->value * d->value,
               a->value * b->slope + a->slope * b->value + c->value * d->slope + c->slope * d->value);
}
/* a b - c d */
static inline const number *difference_of(const number *a, const number *b, const number *c, const number *d) {
    return num(a->value * b->value - c->value * d->value,
               a->value * b->slope + a->slope * b->value - c->value * d->slope - c->slope * d->value);
}
static inline const number *over(const number *a, const number *b) {
    double value = a->value / b->value;
    return num(value, (a->slope - value * b->slope) / b->value);
}
static inline const number *sine(const number *a) {
    return num(sin(a->value), cos(a->value) * a->slope);
}
static inline const number *cosine(const number *a) {
    return num(cos(a->value), -sin(a->value) * a->slope);
}

static inline const list *push(const number *head, const list *tail) {
    list *fresh = NEW(list);
    fresh->head = head;
    fresh->tail = tail;
    return fresh;
}

static inline const triple *three(const number *x, const number *y, const number *z) {
    triple *fresh = NEW(triple);
    fresh->x = x;
    fresh->y = y;
    fresh->z = z;
    return fresh;
}

/* What the pose does to points, worked out once a turn: sines and cosines of the angles, then the place. */
static const triple *sines, *cosines, *shift;

static const triple *turned(const triple *p) {
    /* About x, about y, about z. */
    const number *y1 = difference_of(cosines->x, p->y, sines->x, p->z);
    const number *z1 = sum_of(sines->x, p->y, cosines->x, p->z);
    const number *x2 = sum_of(cosines->y, p->x, sines->y, z1);
    const number *z2 = difference_of(cosines->y, z1, sines->y, p->x);
    const number *x3 = difference_of(cosines->z, x2, sines->z, y1);
    const number *y3 = sum_of(sines->z, x2, cosines->z, y1);
    return three(plus(x3, shift->x), plus(y3, shift->y), plus(z2, shift->z));
}

static const triple *projected(const triple *p) {
    const triple *there = turned(p);
    return three(over(there->x, there->z), over(there->y, there->z), there->z);
}

/* The two residuals of a point, in front of those of the points behind it. */
static __attribute__((noinline)) const list *residual(const closure *of, const list *rest) {
    const triple *here = projected(of->point);
    return push(minus(here->x, of->seen->x), push(minus(here->y, of->seen->y), rest));
}

/* Not a loop: the source's compiler could not make one of it either. Each frame keeps its closure. */
static __attribute__((noinline)) const list *residuals(const points *object, const points *picture) {
    if (!object)
        return NULL;
    closure *later = NEW(closure);
    later->code = residual;
    later->point = object->head;
    later->seen = picture->head;
    const list *rest = residuals(object->tail, picture->tail);
    return later->code(later, rest);
}

static void pose(const double *is, int by) {
    const number *p[PARAMETERS];
    for (int i = 0; i < PARAMETERS; i++)
        p[i] = num(is[i], i == by);
    sines = three(sine(p[0]), sine(p[1]), sine(p[2]));
    cosines = three(cosine(p[0]), cosine(p[1]), cosine(p[2]));
    shift = three(p[3], p[4], p[5]);
}

static __attribute__((noinline)) const points *seen(const points *object) {
    if (!object)
        return NULL;
    const triple *here = projected(object->head);
    points *fresh = NEW(points);
    fresh->head = here;
    fresh->tail = NULL;
    fresh->tail = seen(object->tail);
    return fresh;
}

static const list *reversed(const list *of) {
    const list *out = NULL;
    for (; of; of = of->tail)
        out = push(of->head, out);
    return out;
}

/* What Newton's method needs of the residuals, which come with the last point's first: their slopes or values in an array. */
static __attribute__((noinline)) double *column(const list *errors, int of_slopes) {
    double *out = NEW_ATOMIC(double, 2 * POINTS);
    double *end = out;
    for (const list *one = reversed(errors); one; one = one->tail)
        *end++ = of_slopes ? one->head->slope : one->head->value;
    return out;
}

static double product(const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < 2 * POINTS; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Solves the system in place; the solution is left in `right`. */
static void solve(double matrix[PARAMETERS][PARAMETERS], double *right) {
    for (int i = 0; i < PARAMETERS; i++) {
        int best = i;
        for (int row = i + 1; row < PARAMETERS; row++)
            if (fabs(matrix[row][i]) > fabs(matrix[best][i]))
                best = row;
        heap_demand(fabs(matrix[best][i]) > 1e-12, "pia: the picture does not tell the pose");
        for (int column = 0; column < PARAMETERS; column++) {
            double kept = matrix[i][column];
            matrix[i][column] = matrix[best][column];
            matrix[best][column] = kept;
        }
        double kept = right[i];
        right[i] = right[best];
        right[best] = kept;
        for (int row = 0; row < PARAMETERS; row++) {
            if (row == i)
                continue;
            double factor = matrix[row][i] / matrix[i][i];
            for (int column = i; column < PARAMETERS; column++)
                matrix[row][column] -= factor * matrix[i][column];
            right[row] -= factor * right[i];
        }
    }
    for (int i = 0; i < PARAMETERS; i++)
        right[i] /= matrix[i][i];
}

/* Newton's method, as Gauss has it. Returns the steps it took. */
static int invert(const points *object, const points *picture, double *is) {
    for (int step = 0; step < STEPS_MAX; step++) {
        double *columns[PARAMETERS], *errors = NULL;
        for (int by = 0; by < PARAMETERS; by++) {
            pose(is, by);
            const list *all = residuals(object, picture);
            columns[by] = column(all, 1);
            errors = by ? errors : column(all, 0);
        }
        double matrix[PARAMETERS][PARAMETERS], right[PARAMETERS], far = 0;
        for (int i = 0; i < PARAMETERS; i++) {
            for (int j = 0; j <= i; j++)
                matrix[i][j] = matrix[j][i] = product(columns[i], columns[j]);
            right[i] = -product(columns[i], errors);
        }
        solve(matrix, right);
        for (int i = 0; i < PARAMETERS; i++) {
            is[i] += right[i];
            far += fabs(right[i]);
        }
        if (far < CLOSE_ENOUGH)
            return step + 1;
    }
    heap_fail("pia: the pose is not found");
    return 0;
}

static uint64_t random_state = 11;
static double uniform(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) / 9007199254740992.0 * 2 - 1;
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    const points *object = NULL;
    for (int i = 0; i < POINTS; i++) {
        const number *x = num(uniform(), 0), *y = num(uniform(), 0), *z = num(uniform(), 0);
        points *fresh = NEW(points);
        fresh->head = NULL;
        fresh->tail = object;
        fresh->head = three(x, y, z);
        object = fresh;
    }
    uint64_t checksum = 0;
    for (unsigned long turn = 0; turn < heap_scaled(POSES); turn++) {
        double truth[PARAMETERS], is[PARAMETERS];
        for (int i = 0; i < PARAMETERS; i++) {
            truth[i] = uniform() + (i == PARAMETERS - 1 ? FAR : 0);
            is[i] = truth[i] + 0.3 * uniform();
        }
        pose(truth, -1);
        const points *picture = seen(object);
        int steps = invert(object, picture, is);
        for (int i = 0; i < PARAMETERS; i++) {
            heap_demand(fabs(is[i] - truth[i]) < CLOSE_ENOUGH, "pia: another pose is found");
            checksum = checksum * 31 + (uint64_t)(int64_t)llround(is[i] * 1e4);
        }
        checksum = checksum * 31 + (uint64_t)steps;
    }
    return heap_end(checksum);
}
