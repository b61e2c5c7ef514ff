/* Primes: the sieve of Eratosthenes in an interpreter of a small lazy language.
 *
 * Cooper, Nettles and Subramanian 1992, section 5.3: bound by the processor, with little live memory
 * (Figure 9). It shows whether the measures that help paging programs cost other programs anything.
 *
 * The program is text, which is parsed into terms. A machine reduces the terms. Arguments and the parts of
 * pairs are *thunks*, reduced when needed and at most once. Pending reductions are a list of records in
 * the heap, like the activation records of the paper's language. The stack is therefore shallow, and all
 * live objects are typed.
 *
 *     term ::= \x. term | let f = term in term | if term then term else term
 *            | case term of nil -> term or x : y -> term | sum [: term]
 *     sum  ::= factors joined by + - % < ==, from left to right
 *     factor ::= atom atom ...;  atom ::= x | 12 | nil | (term)
 *
 * Each prime is checked against a sieve in an array. `count=` sets the number of primes: live data grow in
 * proportion to it, work with its square.
 */
#define HEAP_TELLS_WRITES
#include "heap.h"

enum { COUNT = 1200, TURNS = 4, SCALE_MIN = 10, COUNT_MAX = 100000, NAME_MAX = 15, SCOPE_MAX = 32 };

static const char PROGRAM[] =
    "let from = \\n. n : from (n + 1) in\n"
    "let filter = \\p. \\list. case list of nil -> nil\n"
    "             or h : t -> if h % p == 0 then filter p t else h : filter p t in\n"
    "let sieve = \\list. case list of nil -> nil or h : t -> h : sieve (filter h t) in\n"
    "sieve (from 2)\n";

/* ---- Terms and what the machine works on ---- */

enum term_kind { NUMBER, NIL, VARIABLE, LAMBDA, APPLY, PAIR, IF, CASE, LET, ADD, SUBTRACT, REMAINDER, LESS, EQUAL };

/* `number` is a value, or how many binders out a variable is bound. */
typedef struct term {
    intptr_t kind, number;
    const struct term *a, *b, *c;
} term;
HEAP_TYPE(term, HEAP_POINTER(2) | HEAP_POINTER(3) | HEAP_POINTER(4));

/* What a term reduces to; all begin with their sort. */
enum value_kind { IS_NUMBER, IS_NIL, IS_PAIR, IS_CLOSURE };
typedef struct value {
    intptr_t kind;
} value;
typedef struct number {
    intptr_t kind, is;
} number;
HEAP_TYPE(number, HEAP_NO_POINTERS);
typedef struct pair {
    intptr_t kind;
    struct thunk *head, *tail;
} pair;
HEAP_TYPE(pair, HEAP_POINTER(1) | HEAP_POINTER(2));
typedef struct closure {
    intptr_t kind;
    const term *body;
    const struct scope *scope;
} closure;
HEAP_TYPE(closure, HEAP_POINTER(1) | HEAP_POINTER(2));
static const value nil = {IS_NIL};

/* The thunks that variables stand for, the innermost first. */
typedef struct scope {
    struct thunk *is;
    const struct scope *next;
} scope;
HEAP_TYPE(scope, HEAP_POINTER(0) | HEAP_POINTER(1));

/* A term to be reduced in a scope, or its value. While it is being reduced it has neither. */
enum thunk_state { DELAYED, BUSY, DONE };
typedef struct thunk {
    intptr_t state;
    const value *is;
    const term *code;
    const scope *scope;
} thunk;
HEAP_TYPE(thunk, HEAP_POINTER(1) | HEAP_POINTER(2) | HEAP_POINTER(3));

/* What waits for a value. */
enum frame_kind { UPDATE, ARGUMENT, CHOOSE, MATCH, LEFT, RIGHT };
typedef struct frame {
    intptr_t kind, number;
    thunk *update;
    const term *code;
    const scope *scope;
    struct frame *next;
} frame;
HEAP_TYPE(frame, HEAP_POINTER(2) | HEAP_POINTER(3) | HEAP_POINTER(4) | HEAP_POINTER(5));

/* ---- The parser ---- */

static const char *rest = PROGRAM;
static char token[NAME_MAX + 1];
static char bound[SCOPE_MAX][NAME_MAX + 1];
static int bounds;

static int is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* The next token: a word, a number, "==", "->", or one character. Empty at the end. */
static void advance(void) {
    int length = 0;
    while (*rest == ' ' || *rest == '\n')
        rest++;
    if (is_letter(*rest) || is_digit(*rest)) {
        while (is_letter(*rest) || is_digit(*rest)) {
            heap_demand(length < NAME_MAX, "primes: a name of the program is too long");
            token[length++] = *rest++;
        }
    } else if (*rest) {
        int two = (rest[0] == '=' && rest[1] == '=') || (rest[0] == '-' && rest[1] == '>');
        token[length++] = *rest++;
        if (two)
            token[length++] = *rest++;
    }
    token[length] = 0;
}

static int at(const char *word) {
    return !strcmp(token, word);
}

static void expect(const char *word) {
    heap_demand(at(word), "primes: the program does not parse");
    advance();
}

static const term *make(enum term_kind kind, intptr_t is, const term *a, const term *b, const term *c) {
    term *fresh = NEW(term);
    fresh->kind = kind;
    fresh->number = is;
    fresh->a = a;
    fresh->b = b;
    fresh->c = c;
    return fresh;
}

/* Binds the name that comes next. */
static void bind(void) {
    heap_demand(bounds < SCOPE_MAX && is_letter(token[0]), "primes: the program does not parse");
    strcpy(bound[bounds++], token);
    advance();
}

static const term *parse(void);

static int begins_atom(void) {
    static const char *const words[] = {"then", "else", "of", "in", "or"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (at(words[i]))
            return 0;
    return is_letter(token[0]) || is_digit(token[0]) || at("(");
}

static const term *parse_atom(void) {
    const term *is = NULL;
    if (at("(")) {
        advance();
        is = parse();
        expect(")");
        return is;
    }
    if (is_digit(token[0]))
        is = make(NUMBER, strtol(token, NULL, 10), NULL, NULL, NULL);
    else if (at("nil"))
        is = make(NIL, 0, NULL, NULL, NULL);
    for (int i = bounds - 1; i >= 0 && !is; i--)
        if (at(bound[i]))
            is = make(VARIABLE, bounds - 1 - i, NULL, NULL, NULL);
    heap_demand(is != NULL, "primes: a name of the program is not bound");
    advance();
    return is;
}

static const term *parse_factor(void) {
    const term *is = parse_atom();
    while (begins_atom())
        is = make(APPLY, 0, is, parse_atom(), NULL);
    return is;
}

static const term *parse_sum(void) {
    static const struct {
        const char *sign;
        enum term_kind kind;
    } signs[] = {{"+", ADD}, {"-", SUBTRACT}, {"%", REMAINDER}, {"<", LESS}, {"==", EQUAL}};
    const term *is = parse_factor();
    for (size_t i = 0; i < sizeof signs / sizeof *signs;) {
        if (at(signs[i].sign)) {
            advance();
            is = make(signs[i].kind, 0, is, parse_factor(), NULL);
            i = 0;
        } else {
            i++;
        }
    }
    return is;
}

static const term *parse(void) {
    const term *a, *b, *c;
    if (at("\\")) {
        advance();
        bind();
        expect(".");
        a = parse();
        bounds--;
        return make(LAMBDA, 0, a, NULL, NULL);
    }
    if (at("let")) {
        advance();
        bind();
        expect("=");
        a = parse();
        expect("in");
        b = parse();
        bounds--;
        return make(LET, 0, a, b, NULL);
    }
    if (at("if")) {
        advance();
        a = parse();
        expect("then");
        b = parse();
        expect("else");
        c = parse();
        return make(IF, 0, a, b, c);
    }
    if (at("case")) {
        advance();
        a = parse();
        expect("of");
        expect("nil");
        expect("->");
        b = parse();
        expect("or");
        bind();
        expect(":");
        bind();
        expect("->");
        c = parse();
        bounds -= 2;
        return make(CASE, 0, a, b, c);
    }
    a = parse_sum();
    if (!at(":"))
        return a;
    advance();
    return make(PAIR, 0, a, parse(), NULL);
}

/* ---- The machine ---- */

static inline const value *box(intptr_t is) {
    number *fresh = NEW(number);
    fresh->kind = IS_NUMBER;
    fresh->is = is;
    return (const value *)fresh;
}

static inline const scope *extend(thunk *is, const scope *next) {
    scope *fresh = NEW(scope);
    fresh->is = is;
    fresh->next = next;
    return fresh;
}

static inline thunk *lookup(const scope *in, intptr_t index) {
    while (index-- > 0)
        in = in->next;
    return in->is;
}

/* The thunk of a term: of a variable the one it stands for. */
static inline thunk *delay(const term *code, const scope *in) {
    if (code->kind == VARIABLE)
        return lookup(in, code->number);
    thunk *fresh = NEW(thunk);
    fresh->state = DELAYED;
    fresh->is = NULL;
    fresh->code = code;
    fresh->scope = in;
    return fresh;
}

static inline frame *push(enum frame_kind kind, intptr_t is, thunk *update, const term *code, const scope *in, frame *next) {
    frame *fresh = NEW(frame);
    fresh->kind = kind;
    fresh->number = is;
    fresh->update = update;
    fresh->code = code;
    fresh->scope = in;
    fresh->next = next;
    return fresh;
}

static inline intptr_t number_of(const value *is) {
    heap_demand(is->kind == IS_NUMBER, "primes: the program computes with what is no number");
    return ((const number *)is)->is;
}

static intptr_t compute(intptr_t kind, intptr_t a, intptr_t b) {
    switch (kind) {
    case ADD:
        return a + b;
    case SUBTRACT:
        return a - b;
    case REMAINDER:
        heap_demand(b != 0, "primes: the program divides by zero");
        return a % b;
    case LESS:
        return a < b;
    default:
        return a == b;
    }
}

/* The value of a thunk. */
static __attribute__((noinline)) const value *force(thunk *of) {
    if (of->state == DONE)
        return of->is;
    frame *waits = push(UPDATE, 0, of, NULL, NULL, NULL);
    const term *code = of->code;
    const scope *in = of->scope;
    of->state = BUSY;
    for (;;) {
        const value *is = NULL;
        switch (code->kind) {
        case NUMBER:
            is = box(code->number);
            break;
        case NIL:
            is = &nil;
            break;
        case VARIABLE: {
            thunk *that = lookup(in, code->number);
            if (that->state == DONE) {
                is = that->is;
                break;
            }
            heap_demand(that->state == DELAYED, "primes: the program waits for itself");
            waits = push(UPDATE, 0, that, NULL, NULL, waits);
            that->state = BUSY;
            code = that->code;
            in = that->scope;
            /* Or all that its scope holds would live as long as it is being reduced. */
            SET(that->code, NULL);
            SET(that->scope, NULL);
            continue;
        }
        case LAMBDA: {
            closure *fresh = NEW(closure);
            fresh->kind = IS_CLOSURE;
            fresh->body = code->a;
            fresh->scope = in;
            is = (const value *)fresh;
            break;
        }
        case PAIR: {
            thunk *head = delay(code->a, in), *tail = delay(code->b, in);
            pair *fresh = NEW(pair);
            fresh->kind = IS_PAIR;
            fresh->head = head;
            fresh->tail = tail;
            is = (const value *)fresh;
            break;
        }
        case LET: {
            thunk *that = NEW(thunk);
            that->state = DELAYED;
            that->is = NULL;
            that->code = code->a;
            that->scope = NULL;
            in = extend(that, in);
            SET(that->scope, in);
            code = code->b;
            continue;
        }
        case APPLY:
            waits = push(ARGUMENT, 0, NULL, code->b, in, waits);
            code = code->a;
            continue;
        case IF:
            waits = push(CHOOSE, 0, NULL, code, in, waits);
            code = code->a;
            continue;
        case CASE:
            waits = push(MATCH, 0, NULL, code, in, waits);
            code = code->a;
            continue;
        default:
            waits = push(LEFT, 0, NULL, code, in, waits);
            code = code->a;
            continue;
        }
        /* There is a value: the frames that wait for it go on. */
        for (code = NULL; !code;) {
            frame *top = waits;
            waits = top->next;
            switch (top->kind) {
            case UPDATE:
                SET(top->update->is, is);
                SET(top->update->code, NULL);
                SET(top->update->scope, NULL);
                top->update->state = DONE;
                if (!waits)
                    return is;
                break;
            case ARGUMENT: {
                heap_demand(is->kind == IS_CLOSURE, "primes: the program applies what is no function");
                const closure *function = (const closure *)is;
                in = extend(delay(top->code, top->scope), function->scope);
                code = function->body;
                break;
            }
            case CHOOSE:
                in = top->scope;
                code = number_of(is) ? top->code->b : top->code->c;
                break;
            case MATCH:
                in = top->scope;
                code = top->code->b;
                if (is->kind == IS_PAIR) {
                    in = extend(((const pair *)is)->head, in);
                    in = extend(((const pair *)is)->tail, in);
                    code = top->code->c;
                } else {
                    heap_demand(is->kind == IS_NIL, "primes: the program takes apart what is no list");
                }
                break;
            case LEFT:
                waits = push(RIGHT, number_of(is), NULL, top->code, NULL, waits);
                in = top->scope;
                code = top->code->b;
                break;
            case RIGHT:
                is = box(compute(top->code->kind, top->number, number_of(is)));
                break;
            }
        }
    }
}

/* ---- The check ---- */

/* The next prime after `last`, by crossing out in an array. */
static intptr_t prime_after(const unsigned char *crossed, size_t limit, intptr_t last) {
    size_t candidate = (size_t)last + 1;
    while (candidate < limit && crossed[candidate])
        candidate++;
    heap_demand(candidate < limit, "primes: the array is too short to check by");
    return (intptr_t)candidate;
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    /* In trials there are fewer, for heaps that never free anything. */
    unsigned long count = heap_word(argc, argv, "count", heap_scale < SCALE_MIN ? COUNT / 8 : COUNT);
    heap_demand(count >= 1 && count <= COUNT_MAX, "primes: count is from 1 to 100000");
    /* The n-th prime is less than 16 n for all of these. */
    size_t limit = count * 16 + 3;
    unsigned char *crossed = calloc(limit, 1);
    heap_demand(crossed != NULL, "primes: no memory for the array");
    crossed[0] = crossed[1] = 1;
    for (size_t i = 2; i * i < limit; i++)
        for (size_t j = i * i; !crossed[i] && j < limit; j += i)
            crossed[j] = 1;
    advance();
    const term *program = parse();
    heap_demand(!*token, "primes: the program goes on after its end");
    uint64_t checksum = 0;
    for (unsigned long turn = 0; turn < heap_scaled(TURNS); turn++) {
        thunk *first = delay(program, NULL), *list = first;
        intptr_t prime = 1;
        for (unsigned long i = 0; i < count; i++) {
            const value *is = force(list);
            heap_demand(is->kind == IS_PAIR, "primes: the list ends too early");
            prime = prime_after(crossed, limit, prime);
            heap_demand(number_of(force(((const pair *)is)->head)) == prime, "primes: a number is not the next prime");
            checksum = checksum * 31 + (uint64_t)prime;
            list = ((const pair *)is)->tail;
        }
        /* The list lives until here, as the source's result does. */
        heap_demand(first->state == DONE, "primes: the list was forgotten");
    }
    free(crossed);
    return heap_end(checksum);
}
