/* Compiler: a small compiler with a large source.
 *
 * Cooper, Nettles and Subramanian 1992, section 5.1: their compiler compiles a part of itself; what lives goes up and down like the teeth of
 * a saw, as each module is built up and forgotten once its code is out, and for much of the time is more than half of memory (Figure 1).
 *
 *     text ─ lex, parse ─▶ tree ─ infer types ─▶ typed tree ─ lower, inline ─▶ registers ─ fold, share, drop ... ─▶ assign ─ emit ─▶ code
 *
 * The language has functions of numbers, truth values and lists of numbers; their types are inferred, and a function that says nothing of
 * an argument takes any. All functions of a module go through a phase before the next begins; trees go as they have been lowered, and
 * instructions as they have been emitted. What stays of a module is its names, their types, and the small functions with their trees,
 * which are put in place of calls to them in later modules; those may call no others.
 *
 *     module   ::= { fun name x y ... = term ; }
 *     term     ::= if term then term else term | let x = term in term | compare [:: term]
 *     compare  ::= sum [(< | ==) sum];  sum ::= product {(+ | -) product};  product ::= call {* call}
 *     call     ::= name atom ... | head atom | tail atom | empty atom | atom;  atom ::= x | 12 | nil | (term)
 *
 * A compiler reads files: here the text of a function is made when it is read, from the number of the function and nothing else.
 *
 * Checked: some functions of each module are run, their trees by an evaluator and their code by a machine, on the same arguments; what
 * comes out is the checksum. Numbers wrap; the head of an empty list is 0 and its tail is empty.
 *
 * `memory=` MiB is the memory that what lives shall be about nine tenths of at most: modules have as many functions as that takes.
 */
#define HEAP_TELLS_WRITES
#include "heap.h"

enum { MEMORY_MIB = 24, MODULES = 8, FUNCTIONS_A_MIB = 130, FUNCTIONS_MIN = 8, ROUNDS = 3 };
enum { TEXT_MAX = 1 << 16, WORD_MAX = 15, ARITY_MAX = 3, SMALL_NODES = 14, INLINE_DEPTH = 2, CHECKED_EVERY = 29, SLOTS_MAX = 256 };

/* ---- What the compiler makes ---- */

/* GENERIC is a variable of a scheme: `number` of them. */
enum type_kind { NUMBERS, TRUTHS, LIST, OPEN, GENERIC };
typedef struct type {
    intptr_t kind, number;
    struct type *of; /* LIST: of what; OPEN: what it turned out to be, or null */
} type;
HEAP_TYPE(type, HEAP_POINTER(2));

typedef struct types {
    type *is;
    struct types *next;
} types;
HEAP_TYPE(types, HEAP_POINTER(0) | HEAP_POINTER(1));

enum node_kind { CONSTANT, EMPTY, NAME, CALL, PASSED, HEAD, TAIL, IS_EMPTY, ADD, SUBTRACT, MULTIPLY, LESS, EQUAL, JOIN, IF, LET };
typedef struct node {
    intptr_t kind, number; /* CONSTANT: its value; NAME, LET: which local variable, from 0 */
    struct node *a, *b, *c;
    struct symbol *name;   /* CALL: the function; NAME, LET: the variable */
    type *is;
} node;
HEAP_TYPE(node, HEAP_POINTER(2) | HEAP_POINTER(3) | HEAP_POINTER(4) | HEAP_POINTER(5) | HEAP_POINTER(6));

/* A name; if it is a function's, all that is known of it. */
typedef struct symbol {
    intptr_t hash, arity, variables, slots;
    char *text;
    types *passed;     /* the scheme */
    type *result;
    node *body;        /* while its module is compiled; later if it is small */
    int32_t *code;
    struct symbol *next;
} symbol;
HEAP_TYPE(symbol, HEAP_POINTER(4) | HEAP_POINTER(5) | HEAP_POINTER(6) | HEAP_POINTER(7) | HEAP_POINTER(8) | HEAP_POINTER(9));

/* Registers of an instruction, or of a call. */
typedef struct registers {
    intptr_t is;
    struct registers *next;
} registers;
HEAP_TYPE(registers, HEAP_POINTER(1));

/* An instruction: its kind is that of the node it came from. */
enum { COPY = LET, JUMP, RETURN, NOTHING = -1 };
typedef struct instruction {
    intptr_t kind, to, x, y; /* registers; CONSTANT: x is the value */
    symbol *function;
    registers *passed;
    struct instruction *yes, *no; /* IF: each ends with a COPY to the same register */
    struct instruction *next;
} instruction;
HEAP_TYPE(instruction, HEAP_POINTER(4) | HEAP_POINTER(5) | HEAP_POINTER(6) | HEAP_POINTER(7) | HEAP_POINTER(8));

/* A function between lowering and emitting. */
typedef struct work {
    symbol *function;
    instruction *first;
    intptr_t result, count; /* the register of the result; how many there are */
    struct work *next;
} work;
HEAP_TYPE(work, HEAP_POINTER(0) | HEAP_POINTER(1) | HEAP_POINTER(4));

/* ---- The text ---- */

static uint64_t mixed(uint64_t a, uint64_t b) {
    uint64_t x = (a + 1) * 0x9e3779b97f4a7c15u ^ (b + 1) * 0xc2b2ae3d27d4eb4fu;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

/* What is known of function `n` without reading it. Functions of a rank call those of lower ranks only, so that every call ends. */
enum { RANKS = 4, SMALL_EVERY = 5, WANTS_NUMBER = 0, WANTS_TRUTH = 1, WANTS_LIST = 2 };
/* The first function of the module. */
static unsigned module_first;
static int is_small(unsigned n) {
    return mixed(n, 9) % SMALL_EVERY == 0;
}
static unsigned rank_of(unsigned n) {
    return n % RANKS;
}
static unsigned arity_of(unsigned n) {
    return 1 + (unsigned)(mixed(n, 1) % ARITY_MAX);
}
static int result_of(unsigned n) {
    return mixed(n, 2) % 4 == 0 ? WANTS_LIST : WANTS_NUMBER;
}
static int argument_of(unsigned n, unsigned i) {
    return mixed(n, 3 + i) % 3 == 0 ? WANTS_LIST : WANTS_NUMBER;
}

/* Not static: those are looked through for pointers. */
static char *text;
static size_t text_length;
static uint64_t text_random;
/* What may be named where we are: arguments and what is bound by let. */
static struct {
    char name[WORD_MAX + 1];
    int wants;
} visible[ARITY_MAX + 32];
static int visibles;

static void write_text(const char *word) {
    size_t length = strlen(word);
    heap_demand(text_length + length + 1 < TEXT_MAX, "compiler: the text of a function is too long");
    memcpy(text + text_length, word, length + 1);
    text_length += length;
}

static unsigned draw(unsigned below) {
    text_random = text_random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((text_random >> 33) % below);
}

/* A variable, a number, or an empty list. */
static void write_leaf(int wants) {
    char number[WORD_MAX + 1];
    unsigned from = draw(8);
    for (int i = 0; i < visibles; i++) {
        int at = (int)(from + (unsigned)i) % visibles;
        if (visible[at].wants == wants && draw(8) > 0) {
            write_text(visible[at].name);
            return;
        }
    }
    snprintf(number, sizeof number, "%u", draw(100));
    write_text(wants == WANTS_LIST ? "nil" : number);
}

static void write_term(unsigned n, int wants, int depth, int calls);

static void write_two(const char *sign, unsigned n, int wants, int wants_right, int depth) {
    write_text("(");
    write_term(n, wants, depth - 1, 0);
    write_text(sign);
    write_term(n, wants_right, depth - 1, 0);
    write_text(")");
}

static void write_call(unsigned n, int wants, int depth) {
    enum { TRIES = 24, NEAR = 4000 };
    for (int i = 0; i < TRIES && n > 0; i++) {
        unsigned callee = n - 1 - draw(n < NEAR ? n : NEAR);
        if (rank_of(callee) >= rank_of(n) || result_of(callee) != wants || (callee < module_first && !is_small(callee)))
            continue;
        char name[WORD_MAX + 1];
        snprintf(name, sizeof name, "(f%u", callee);
        write_text(name);
        for (unsigned j = 0; j < arity_of(callee); j++) {
            write_text(" ");
            write_term(n, argument_of(callee, j), depth > 1 ? 1 : 0, 0);
        }
        write_text(")");
        return;
    }
    write_leaf(wants);
}

/* A term of a type, in parentheses unless it is a leaf. It may call so many functions in a row. */
static void write_term(unsigned n, int wants, int depth, int calls) {
    if (depth <= 0 && wants != WANTS_TRUTH) {
        write_leaf(wants);
        return;
    }
    if (wants == WANTS_TRUTH) {
        switch (draw(3)) {
        case 0:
            write_two(" < ", n, WANTS_NUMBER, WANTS_NUMBER, depth);
            return;
        case 1:
            write_two(" == ", n, WANTS_NUMBER, WANTS_NUMBER, depth);
            return;
        default:
            write_text("(empty ");
            write_term(n, WANTS_LIST, depth - 1, 0);
            write_text(")");
            return;
        }
    }
    unsigned what = draw(10);
    if (calls > 0) {
        /* The spine: bindings one in the other, each of which may call. */
        int kind = draw(3) == 0 ? WANTS_LIST : WANTS_NUMBER;
        char name[WORD_MAX + 1];
        snprintf(name, sizeof name, "v%d", visibles);
        write_text("(let ");
        write_text(name);
        write_text(" = ");
        if (draw(2) == 0)
            write_call(n, kind, depth);
        else
            write_term(n, kind, depth, 0);
        write_text("\n  in ");
        strcpy(visible[visibles].name, name);
        visible[visibles++].wants = kind;
        write_term(n, wants, depth, calls - 1);
        visibles--;
        write_text(")");
    } else if (what < 2) {
        write_text("(if ");
        write_term(n, WANTS_TRUTH, depth - 1, 0);
        write_text(" then ");
        write_term(n, wants, depth - 1, 0);
        write_text(" else ");
        write_term(n, wants, depth - 1, 0);
        write_text(")");
    } else if (wants == WANTS_LIST) {
        if (what < 4) {
            write_text("(tail ");
            write_term(n, WANTS_LIST, depth - 1, 0);
            write_text(")");
        } else {
            write_two(" :: ", n, WANTS_NUMBER, WANTS_LIST, depth);
        }
    } else if (what < 3) {
        write_text("(head ");
        write_term(n, WANTS_LIST, depth - 1, 0);
        write_text(")");
    } else {
        write_two(what < 6 ? " + " : what < 8 ? " - " : " * ", n, WANTS_NUMBER, WANTS_NUMBER, depth);
    }
}

/* The text of function `n`. */
static void write_function(unsigned n) {
    enum { SPINE = 5, DEPTH = 3 };
    char name[WORD_MAX + 1];
    text_length = 0;
    text_random = mixed(n, 0);
    visibles = 0;
    snprintf(name, sizeof name, "fun f%u", n);
    write_text(name);
    for (unsigned i = 0; i < arity_of(n); i++) {
        snprintf(name, sizeof name, "x%u", i);
        write_text(" ");
        write_text(name);
        strcpy(visible[visibles].name, name);
        visible[visibles++].wants = argument_of(n, i);
    }
    write_text(" =\n  ");
    if (is_small(n))
        write_term(n, result_of(n), 2, 0);
    else
        write_term(n, result_of(n), DEPTH, SPINE);
    write_text(" ;\n");
}

/* ---- Names ---- */

enum { BUCKETS = 1 << 12 };
static symbol **names;

static symbol *intern(const char *word, size_t length) {
    uint64_t hash = length;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)word[i]) * 0x100000001b3u;
    intptr_t kept = (intptr_t)(hash >> 8);
    for (symbol *each = names[kept % BUCKETS]; each; each = each->next)
        if (each->hash == kept && !strncmp(each->text, word, length) && !each->text[length])
            return each;
    char *copy = NEW_ATOMIC(char, length + 1);
    memcpy(copy, word, length);
    copy[length] = 0;
    symbol *fresh = NEW(symbol);
    *fresh = (symbol){.hash = kept, .text = copy, .next = names[kept % BUCKETS]};
    SET(names[kept % BUCKETS], fresh);
    return fresh;
}

/* ---- The lexer: a list of tokens, the text of one function ---- */

enum token_kind { WORD, FIGURES, SIGN, END };
typedef struct token {
    intptr_t kind, number; /* FIGURES: their value; SIGN: its characters */
    symbol *word;
    struct token *next;
} token;
HEAP_TYPE(token, HEAP_POINTER(2) | HEAP_POINTER(3));

static int is_letter(char c) {
    return c >= 'a' && c <= 'z';
}
static int is_digit(char c) {
    return c >= '0' && c <= '9';
}

static token *lex(void) {
    token *first = NULL, *last = NULL;
    for (const char *at = text;;) {
        while (*at == ' ' || *at == '\n')
            at++;
        const char *begin = at;
        intptr_t kind = SIGN, value = 0;
        symbol *word = NULL;
        if (is_letter(*at)) {
            while (is_letter(*at) || is_digit(*at))
                at++;
            kind = WORD;
            word = intern(begin, (size_t)(at - begin));
        } else if (is_digit(*at)) {
            for (; is_digit(*at); at++)
                value = value * 10 + (*at - '0');
            kind = FIGURES;
        } else if (!*at) {
            kind = END;
        } else {
            value = *at++;
            if ((value == ':' && *at == ':') || (value == '=' && *at == '='))
                value = value << 8 | *at++;
        }
        token *fresh = NEW(token);
        *fresh = (token){.kind = kind, .number = value, .word = word};
        if (last)
            SET(last->next, fresh);
        else
            first = fresh;
        last = fresh;
        if (kind == END)
            return first;
    }
}

/* ---- The parser ---- */

static symbol *word_fun, *word_if, *word_then, *word_else, *word_let, *word_in, *word_nil, *word_head, *word_tail, *word_empty;
static const token *next_token;
/* Variables that are bound, the innermost first. */
typedef struct binding {
    symbol *name;
    intptr_t number;
    const struct binding *next;
} binding;
HEAP_TYPE(binding, HEAP_POINTER(0) | HEAP_POINTER(2));
static intptr_t variables_made;

static const binding *bind(symbol *name, const binding *next) {
    binding *fresh = NEW(binding);
    *fresh = (binding){name, variables_made++, next};
    return fresh;
}

static node *make(intptr_t kind, intptr_t number, node *a, node *b, node *c, symbol *name) {
    node *fresh = NEW(node);
    *fresh = (node){kind, number, a, b, c, name, NULL};
    return fresh;
}

static int at_word(const symbol *word) {
    return next_token->kind == WORD && next_token->word == word;
}

static int at_sign(intptr_t sign) {
    return next_token->kind == SIGN && next_token->number == sign;
}

static void expect(int holds) {
    heap_demand(holds, "compiler: the text does not parse");
    next_token = next_token->next;
}

static symbol *expect_name(void) {
    symbol *name = next_token->word;
    expect(next_token->kind == WORD);
    return name;
}

static node *parse_term(const binding *bound);

static const binding *find(const binding *in, const symbol *name) {
    while (in && in->name != name)
        in = in->next;
    return in;
}

static node *parse_atom(const binding *bound) {
    node *is;
    if (at_sign('(')) {
        expect(1);
        is = parse_term(bound);
        expect(at_sign(')'));
        return is;
    }
    if (next_token->kind == FIGURES) {
        is = make(CONSTANT, next_token->number, NULL, NULL, NULL, NULL);
        expect(1);
        return is;
    }
    if (at_word(word_nil)) {
        expect(1);
        return make(EMPTY, 0, NULL, NULL, NULL, NULL);
    }
    symbol *name = expect_name();
    const binding *variable = find(bound, name);
    heap_demand(variable != NULL, "compiler: a name is not bound");
    return make(NAME, variable->number, NULL, NULL, NULL, name);
}

/* What is passed in a call, as a list of PASSED nodes. */
static node *parse_passed(intptr_t count, const binding *bound) {
    if (count == 0)
        return NULL;
    node *first = parse_atom(bound);
    return make(PASSED, 0, first, parse_passed(count - 1, bound), NULL, NULL);
}

static node *parse_call(const binding *bound) {
    intptr_t kind = at_word(word_head) ? HEAD : at_word(word_tail) ? TAIL : at_word(word_empty) ? IS_EMPTY : NOTHING;
    if (kind != NOTHING) {
        expect(1);
        return make(kind, 0, parse_atom(bound), NULL, NULL, NULL);
    }
    symbol *name = next_token->kind == WORD ? next_token->word : NULL;
    if (!name || !name->arity || find(bound, name))
        return parse_atom(bound);
    expect(1);
    return make(CALL, 0, parse_passed(name->arity, bound), NULL, NULL, name);
}

static node *parse_product(const binding *bound) {
    node *is = parse_call(bound);
    while (at_sign('*')) {
        expect(1);
        is = make(MULTIPLY, 0, is, parse_call(bound), NULL, NULL);
    }
    return is;
}

static node *parse_sum(const binding *bound) {
    node *is = parse_product(bound);
    while (at_sign('+') || at_sign('-')) {
        intptr_t kind = at_sign('+') ? ADD : SUBTRACT;
        expect(1);
        is = make(kind, 0, is, parse_product(bound), NULL, NULL);
    }
    return is;
}

static node *parse_term(const binding *bound) {
    if (at_word(word_if)) {
        expect(1);
        node *a = parse_term(bound);
        expect(at_word(word_then));
        node *b = parse_term(bound);
        expect(at_word(word_else));
        return make(IF, 0, a, b, parse_term(bound), NULL);
    }
    if (at_word(word_let)) {
        expect(1);
        symbol *name = expect_name();
        expect(at_sign('='));
        node *a = parse_term(bound);
        expect(at_word(word_in));
        const binding *inner = bind(name, bound);
        intptr_t number = inner->number;
        return make(LET, number, a, parse_term(inner), NULL, name);
    }
    node *is = parse_sum(bound);
    if (at_sign('<') || at_sign('=' << 8 | '=')) {
        intptr_t kind = at_sign('<') ? LESS : EQUAL;
        expect(1);
        is = make(kind, 0, is, parse_sum(bound), NULL, NULL);
    }
    if (at_sign(':' << 8 | ':')) {
        expect(1);
        is = make(JOIN, 0, is, parse_term(bound), NULL, NULL);
    }
    return is;
}

/* A function; its symbol has its tree then. */
static symbol *parse_function(void) {
    next_token = lex();
    expect(at_word(word_fun));
    symbol *function = expect_name();
    heap_demand(!function->arity, "compiler: a function is there twice");
    const binding *bound = NULL;
    variables_made = 0;
    while (next_token->kind == WORD)
        bound = bind(expect_name(), bound);
    intptr_t arity = variables_made;
    expect(at_sign('='));
    node *body = parse_term(bound);
    expect(at_sign(';'));
    heap_demand(next_token->kind == END, "compiler: the text does not end with its function");
    next_token = NULL;
    function->arity = arity;
    function->variables = variables_made;
    SET(function->body, body);
    return function;
}

/* ---- Types ---- */

static intptr_t generics;
static type *type_numbers, *type_truths;

static type *make_type(intptr_t kind, type *of) {
    type *fresh = NEW(type);
    *fresh = (type){kind, 0, of};
    return fresh;
}

static type *resolved(type *of) {
    while (of->kind == OPEN && of->of)
        of = of->of;
    return of;
}

static int occurs(const type *in, type *where) {
    where = resolved(where);
    return where == in || (where->kind == LIST && occurs(in, where->of));
}

static void unify(type *a, type *b) {
    a = resolved(a);
    b = resolved(b);
    if (a == b)
        return;
    if (a->kind == OPEN || b->kind == OPEN) {
        type *open = a->kind == OPEN ? a : b, *other = open == a ? b : a;
        heap_demand(!occurs(open, other), "compiler: a type would hold itself");
        SET(open->of, other);
        return;
    }
    heap_demand(a->kind == b->kind, "compiler: types do not agree");
    if (a->kind == LIST)
        unify(a->of, b->of);
}

/* A scheme's type with new open ones in place of its generic ones. */
enum { GENERICS_MAX = 8 };
static type *instance(type *of, type **fresh) {
    of = resolved(of);
    if (of->kind == GENERIC) {
        if (!fresh[of->number])
            fresh[of->number] = make_type(OPEN, NULL);
        return fresh[of->number];
    }
    return of->kind == LIST ? make_type(LIST, instance(of->of, fresh)) : of;
}

/* What nothing was said of is generic. */
static void generalise(type *of) {
    of = resolved(of);
    if (of->kind == OPEN) {
        heap_demand(generics < GENERICS_MAX, "compiler: a function has too many generic types");
        of->kind = GENERIC;
        of->number = generics++;
    } else if (of->kind == LIST) {
        generalise(of->of);
    }
}

/* The types of a function's variables, by number. */
static type *infer(node *of, type **variable) {
    type *is = NULL;
    switch (of->kind) {
    case CONSTANT:
        is = type_numbers;
        break;
    case EMPTY:
        is = make_type(LIST, make_type(OPEN, NULL));
        break;
    case NAME:
        is = variable[of->number];
        break;
    case CALL: {
        type *fresh[GENERICS_MAX] = {NULL};
        const types *scheme = of->name->passed;
        for (const node *each = of->a; each; each = each->b, scheme = scheme->next) {
            type *passed = infer(each->a, variable);
            unify(passed, instance(scheme->is, fresh));
        }
        is = instance(of->name->result, fresh);
        break;
    }
    case HEAD:
    case TAIL:
    case IS_EMPTY: {
        type *list = make_type(LIST, make_type(OPEN, NULL));
        unify(infer(of->a, variable), list);
        is = of->kind == HEAD ? list->of : of->kind == TAIL ? list : type_truths;
        break;
    }
    case ADD:
    case SUBTRACT:
    case MULTIPLY:
    case LESS:
    case EQUAL:
        unify(infer(of->a, variable), type_numbers);
        unify(infer(of->b, variable), type_numbers);
        is = of->kind == LESS || of->kind == EQUAL ? type_truths : type_numbers;
        break;
    case JOIN: {
        type *head = infer(of->a, variable);
        is = infer(of->b, variable);
        unify(is, make_type(LIST, head));
        break;
    }
    case IF: {
        unify(infer(of->a, variable), type_truths);
        is = infer(of->b, variable);
        unify(is, infer(of->c, variable));
        break;
    }
    default: {
        type *value = infer(of->a, variable);
        SET(variable[of->number], value);
        is = infer(of->b, variable);
    }
    }
    SET(of->is, is);
    return is;
}

static void infer_function(symbol *function) {
    type **variable = NEW_POINTERS(type, (size_t)function->variables);
    for (intptr_t i = 0; i < function->arity; i++) {
        type *open = make_type(OPEN, NULL);
        SET(variable[i], open);
    }
    type *result = infer(function->body, variable);
    generics = 0;
    generalise(result);
    types *passed = NULL;
    for (intptr_t i = function->arity - 1; i >= 0; i--) {
        generalise(variable[i]);
        types *cell = NEW(types);
        *cell = (types){variable[i], passed};
        passed = cell;
    }
    SET(function->passed, passed);
    SET(function->result, result);
}

/* ---- Lowering ---- */

/* A list of instructions while it is written. */
typedef struct block {
    instruction *first, *last;
} block;

static intptr_t next_register;

static void append(block *to, instruction *fresh) {
    if (to->last)
        SET(to->last->next, fresh);
    else
        to->first = fresh;
    to->last = fresh;
}

static instruction *add(block *to, intptr_t kind, intptr_t into, intptr_t x, intptr_t y) {
    instruction *fresh = NEW(instruction);
    *fresh = (instruction){.kind = kind, .to = into, .x = x, .y = y};
    append(to, fresh);
    return fresh;
}

static intptr_t count_nodes(const node *of) {
    return of ? 1 + count_nodes(of->a) + count_nodes(of->b) + count_nodes(of->c) : 0;
}

static registers *list_of(intptr_t is, registers *next) {
    registers *fresh = NEW(registers);
    *fresh = (registers){is, next};
    return fresh;
}

static intptr_t lower(const node *of, block *to, intptr_t *variable, int depth);

static registers *lower_passed(const node *of, block *to, intptr_t *variable, int depth) {
    if (!of)
        return NULL;
    intptr_t first = lower(of->a, to, variable, depth);
    return list_of(first, lower_passed(of->b, to, variable, depth));
}

/* A small function's tree in place of a call to it, its variables in registers of their own. */
static intptr_t lower_inline(const symbol *function, const registers *passed, block *to, int depth) {
    intptr_t *variable = NEW_ATOMIC(intptr_t, (size_t)function->variables);
    for (intptr_t i = 0; passed; passed = passed->next)
        variable[i++] = passed->is;
    return lower(function->body, to, variable, depth + 1);
}

/* Appends what computes `of`; the register that has it then. */
static intptr_t lower(const node *of, block *to, intptr_t *variable, int depth) {
    intptr_t x = 0, y = 0;
    switch (of->kind) {
    case NAME:
        return variable[of->number];
    case LET:
        x = lower(of->a, to, variable, depth);
        variable[of->number] = x;
        return lower(of->b, to, variable, depth);
    case CONSTANT:
        x = of->number;
        break;
    case EMPTY:
        break;
    case CALL: {
        registers *passed = lower_passed(of->a, to, variable, depth);
        if (of->name->body && depth < INLINE_DEPTH && count_nodes(of->name->body) <= SMALL_NODES)
            return lower_inline(of->name, passed, to, depth);
        instruction *call = add(to, CALL, next_register++, 0, 0);
        SET(call->function, of->name);
        SET(call->passed, passed);
        return call->to;
    }
    case IF: {
        x = lower(of->a, to, variable, depth);
        block yes = {NULL, NULL}, no = {NULL, NULL};
        intptr_t into = next_register++, from = lower(of->b, &yes, variable, depth);
        add(&yes, COPY, into, from, 0);
        from = lower(of->c, &no, variable, depth);
        add(&no, COPY, into, from, 0);
        instruction *choice = add(to, IF, into, x, 0);
        SET(choice->yes, yes.first);
        SET(choice->no, no.first);
        return into;
    }
    default:
        x = lower(of->a, to, variable, depth);
        if (of->b)
            y = lower(of->b, to, variable, depth);
    }
    return add(to, of->kind, next_register++, x, y)->to;
}

static work *lower_function(symbol *function, work *next) {
    intptr_t *variable = NEW_ATOMIC(intptr_t, (size_t)function->variables);
    block whole = {NULL, NULL};
    next_register = function->arity;
    for (intptr_t i = 0; i < function->arity; i++)
        variable[i] = i;
    intptr_t result = lower(function->body, &whole, variable, 0);
    work *fresh = NEW(work);
    *fresh = (work){function, whole.first, result, next_register, next};
    return fresh;
}

/* ---- Optimising: each pass writes the instructions anew ---- */

static int has_y(intptr_t kind) {
    return kind >= ADD && kind <= JOIN;
}

static intptr_t compute(intptr_t kind, intptr_t x, intptr_t y) {
    switch (kind) {
    case ADD:
        return (intptr_t)((uintptr_t)x + (uintptr_t)y);
    case SUBTRACT:
        return (intptr_t)((uintptr_t)x - (uintptr_t)y);
    case MULTIPLY:
        return (intptr_t)((uintptr_t)x * (uintptr_t)y);
    case LESS:
        return x < y;
    default:
        return x == y;
    }
}

/* What is known of each register: the one it is a copy of, and whether it is a constant. */
typedef struct known {
    intptr_t same, is_constant, value;
} known;

static registers *renamed(const registers *of, const known *all) {
    return of ? list_of(all[of->is].same, renamed(of->next, all)) : NULL;
}

static void rewrite_into(const instruction *of, block *to, known *all, int is_last_copy_kept);

static instruction *rewritten(const instruction *of, known *all) {
    block fresh = {NULL, NULL};
    rewrite_into(of, &fresh, all, 1);
    return fresh.first;
}

/* Folds constants, renames copies, and takes the branch that is known. The COPY that ends a branch is what joins it to the other and
 * stays, unless the branch is taken. */
static void rewrite_into(const instruction *of, block *to, known *all, int is_last_copy_kept) {
    for (; of; of = of->next) {
        known *result = &all[of->to];
        *result = (known){of->to, 0, 0};
        const known *x = of->kind == CONSTANT || of->kind == CALL ? NULL : &all[all[of->x].same];
        const known *y = has_y(of->kind) ? &all[all[of->y].same] : NULL;
        switch (of->kind) {
        case CONSTANT:
            *result = (known){of->to, 1, of->x};
            break;
        case COPY:
            if (of->next || !is_last_copy_kept) {
                *result = (known){all[of->x].same, x->is_constant, x->value};
                continue;
            }
            break;
        case IF:
            if (x->is_constant) {
                rewrite_into(x->value ? of->yes : of->no, to, all, 0);
                continue;
            }
            break;
        case ADD:
        case SUBTRACT:
        case MULTIPLY:
        case LESS:
        case EQUAL:
            if (x->is_constant && y->is_constant) {
                intptr_t value = compute(of->kind, x->value, y->value);
                *result = (known){of->to, 1, value};
                add(to, CONSTANT, of->to, value, 0);
                continue;
            }
            if (of->kind != LESS && of->kind != EQUAL && y->is_constant && y->value == (of->kind == MULTIPLY)) {
                *result = (known){all[of->x].same, 0, 0};
                continue;
            }
            break;
        }
        instruction *fresh = add(to, of->kind, of->to, of->kind == CONSTANT ? of->x : all[of->x].same, y ? all[of->y].same : 0);
        if (of->kind == CALL) {
            SET(fresh->function, of->function);
            registers *passed = renamed(of->passed, all);
            SET(fresh->passed, passed);
        } else if (of->kind == IF) {
            instruction *yes = rewritten(of->yes, all);
            SET(fresh->yes, yes);
            instruction *no = rewritten(of->no, all);
            SET(fresh->no, no);
            /* What the branches left there is not known behind them. */
            *result = (known){of->to, 0, 0};
        }
    }
}

/* What has been computed on the way to here, the latest first. */
typedef struct available {
    intptr_t kind, x, y, to;
    const struct available *next;
} available;
HEAP_TYPE(available, HEAP_POINTER(4));
enum { LOOKED_AT = 24 };

static const available *share(instruction *of, const available *so_far) {
    for (; of; of = of->next) {
        if (of->kind == IF) {
            share(of->yes, so_far);
            share(of->no, so_far);
        }
        if (of->kind == IF || of->kind == CALL || of->kind == COPY)
            continue;
        const available *same = so_far;
        for (int i = 0; same && i < LOOKED_AT; i++, same = same->next)
            if (same->kind == of->kind && same->x == of->x && same->y == of->y)
                break;
        if (same && same->kind == of->kind && same->x == of->x && same->y == of->y) {
            of->kind = COPY;
            of->x = same->to;
            of->y = 0;
        } else {
            available *fresh = NEW(available);
            *fresh = (available){of->kind, of->x, of->y, of->to, so_far};
            so_far = fresh;
        }
    }
    return so_far;
}

/* Drops what nobody reads, from the end on; `read` says of each register whether somebody does. Nothing but calls could be missed, and
 * functions do nothing but compute. */
static instruction *needed(const instruction *of, unsigned char *read) {
    if (!of)
        return NULL;
    instruction *rest = needed(of->next, read);
    if (!read[of->to])
        return rest;
    instruction *fresh = NEW(instruction);
    *fresh = *of;
    fresh->next = rest;
    if (of->kind == IF) {
        instruction *branch = needed(of->yes, read);
        SET(fresh->yes, branch);
        branch = needed(of->no, read);
        SET(fresh->no, branch);
    }
    if (of->kind != CONSTANT && of->kind != EMPTY && of->kind != CALL)
        read[of->x] = 1;
    if (has_y(of->kind))
        read[of->y] = 1;
    for (const registers *each = of->passed; each; each = each->next)
        read[each->is] = 1;
    return fresh;
}

static void optimise(work *of) {
    known *all = NEW_ATOMIC(known, (size_t)of->count);
    for (intptr_t i = 0; i < of->count; i++)
        all[i] = (known){i, 0, 0};
    instruction *fresh = rewritten(of->first, all);
    SET(of->first, fresh);
    of->result = all[of->result].same;
    share(of->first, NULL);
    unsigned char *read = NEW_ATOMIC(unsigned char, (size_t)of->count);
    memset(read, 0, (size_t)of->count);
    read[of->result] = 1;
    fresh = needed(of->first, read);
    SET(of->first, fresh);
}

/* ---- Registers to slots, and out ---- */

/* The number of the last instruction that reads each register. Numbers go through branches in order. */
static intptr_t last_uses(const instruction *of, intptr_t at, intptr_t *last) {
    for (; of; of = of->next) {
        if (of->kind != CONSTANT && of->kind != EMPTY && of->kind != CALL)
            last[of->x] = at;
        if (has_y(of->kind))
            last[of->y] = at;
        for (const registers *each = of->passed; each; each = each->next)
            last[each->is] = at;
        at++;
        if (of->kind == IF)
            at = last_uses(of->no, last_uses(of->yes, at, last), last);
    }
    return at;
}

/* Where the code of a function is written, and the slots that are taken, each until an instruction. */
static struct {
    int32_t *code; /* not the heap's */
    intptr_t length, at, slots, until[SLOTS_MAX];
    intptr_t *slot, *last;
} out;

static void emit(intptr_t word) {
    heap_demand(out.length < TEXT_MAX, "compiler: the code of a function is too long");
    out.code[out.length++] = (int32_t)word;
}

/* A slot for a register that is written now. */
static intptr_t assign(intptr_t to) {
    if (out.slot[to] != NOTHING)
        return out.slot[to];
    intptr_t free = 0;
    while (free < out.slots && out.until[free] >= out.at)
        free++;
    heap_demand(free < SLOTS_MAX, "compiler: a function has too many slots");
    out.slots = free == out.slots ? free + 1 : out.slots;
    out.until[free] = out.last[to] > out.at ? out.last[to] : out.at;
    return out.slot[to] = free;
}

static void emit_all(const instruction *of) {
    for (; of; of = of->next) {
        intptr_t x = of->kind == CONSTANT || of->kind == EMPTY || of->kind == CALL ? of->x : out.slot[of->x];
        intptr_t y = has_y(of->kind) ? out.slot[of->y] : 0;
        if (of->kind == IF) {
            emit(IF);
            emit(x);
            intptr_t to_no = out.length;
            emit(0);
            /* Both branches write it, so it has its slot before them. */
            out.at++;
            assign(of->to);
            emit_all(of->yes);
            emit(JUMP);
            intptr_t to_end = out.length;
            emit(0);
            out.code[to_no] = (int32_t)out.length;
            emit_all(of->no);
            out.code[to_end] = (int32_t)out.length;
            continue;
        }
        emit(of->kind);
        if (of->kind == CALL) {
            intptr_t number = strtol(of->function->text + 1, NULL, 10), count = 0;
            for (const registers *each = of->passed; each; each = each->next)
                count++;
            emit(number);
            emit(count);
            for (const registers *each = of->passed; each; each = each->next)
                emit(out.slot[each->is]);
        } else if (of->kind == CONSTANT) {
            emit((int32_t)((uint64_t)x >> 32));
            emit((int32_t)(uint32_t)x);
        } else {
            emit(x);
            emit(y);
        }
        emit(assign(of->to));
        out.at++;
    }
}

static void emit_function(const work *of) {
    out.slot = NEW_ATOMIC(intptr_t, (size_t)of->count);
    out.last = NEW_ATOMIC(intptr_t, (size_t)of->count);
    for (intptr_t i = 0; i < of->count; i++)
        out.slot[i] = out.last[i] = NOTHING;
    out.at = out.length = out.slots = 0;
    last_uses(of->first, 0, out.last);
    out.last[of->result] = INTPTR_MAX;
    for (intptr_t i = 0; i < of->function->arity; i++) {
        /* Arguments come in the first slots, and are there before the first instruction. */
        out.slot[i] = i;
        out.until[i] = out.last[i];
        out.slots = i + 1;
    }
    emit_all(of->first);
    emit(RETURN);
    emit(out.slot[of->result]);
    int32_t *code = NEW_ATOMIC(int32_t, (size_t)out.length);
    memcpy(code, out.code, (size_t)out.length * sizeof *code);
    SET(of->function->code, code);
    of->function->slots = out.slots;
    out.slot = out.last = NULL;
}

/* ---- Running: the check ---- */

/* A list of numbers of a program that runs. */
typedef struct cell {
    intptr_t head;
    const struct cell *tail;
} cell;
HEAP_TYPE(cell, HEAP_POINTER(1));

typedef union value {
    intptr_t number;
    const cell *list;
} value;

static const cell *join(intptr_t head, const cell *tail) {
    cell *fresh = NEW(cell);
    *fresh = (cell){head, tail};
    return fresh;
}

static symbol *function_of(intptr_t number) {
    char name[WORD_MAX + 1];
    int length = snprintf(name, sizeof name, "f%ld", (long)number);
    return intern(name, (size_t)length);
}

static value run(const symbol *function, const value *passed) {
    value slot[SLOTS_MAX] = {{0}};
    heap_demand(function->code && function->slots <= SLOTS_MAX, "compiler: a function that is called has no code");
    memcpy(slot, passed, (size_t)function->arity * sizeof *slot);
    for (intptr_t pc = 0;;) {
        /* The code may have moved in the last call. */
        const int32_t *code = function->code + pc;
        switch (code[0]) {
        case CONSTANT:
            slot[code[3]].number = (intptr_t)((uint64_t)(uint32_t)code[1] << 32 | (uint32_t)code[2]);
            pc += 4;
            break;
        case IF:
            pc = slot[code[1]].number ? pc + 3 : code[2];
            break;
        case JUMP:
            pc = code[1];
            break;
        case RETURN:
            return slot[code[1]];
        case CALL: {
            value given[ARITY_MAX];
            int count = code[2];
            heap_demand(count <= ARITY_MAX, "compiler: the code is damaged");
            for (int i = 0; i < count; i++)
                given[i] = slot[code[3 + i]];
            value result = run(function_of(code[1]), given);
            slot[function->code[pc + 3 + count]] = result;
            pc += 4 + count;
            break;
        }
        default: {
            value x = slot[code[1]], y = slot[code[2]], result = x;
            intptr_t to = code[3];
            switch (code[0]) {
            case COPY:
                break;
            case EMPTY:
                result.list = NULL;
                break;
            case HEAD:
                result.number = x.list ? x.list->head : 0;
                break;
            case TAIL:
                result.list = x.list ? x.list->tail : NULL;
                break;
            case IS_EMPTY:
                result.number = !x.list;
                break;
            case JOIN:
                result.list = join(x.number, y.list);
                break;
            default:
                result.number = compute(code[0], x.number, y.number);
            }
            slot[to] = result;
            pc += 4;
        }
        }
    }
}

static value evaluate(const node *of, value *variable) {
    value a = {0}, b = {0};
    switch (of->kind) {
    case CONSTANT:
        a.number = of->number;
        return a;
    case EMPTY:
        a.list = NULL;
        return a;
    case NAME:
        return variable[of->number];
    case LET:
        variable[of->number] = evaluate(of->a, variable);
        return evaluate(of->b, variable);
    case IF:
        return evaluate(evaluate(of->a, variable).number ? of->b : of->c, variable);
    case CALL: {
        value given[ARITY_MAX];
        int count = 0;
        for (const node *each = of->a; each; each = each->b)
            given[count++] = evaluate(each->a, variable);
        /* What it calls is checked for itself. */
        return run(of->name, given);
    }
    }
    a = evaluate(of->a, variable);
    if (of->b)
        b = evaluate(of->b, variable);
    switch (of->kind) {
    case HEAD:
        a.number = a.list ? a.list->head : 0;
        return a;
    case TAIL:
        a.list = a.list ? a.list->tail : NULL;
        return a;
    case IS_EMPTY:
        a.number = !a.list;
        return a;
    case JOIN:
        a.list = join(a.number, b.list);
        return a;
    default:
        a.number = compute(of->kind, a.number, b.number);
        return a;
    }
}

/* Runs a function both ways; what came out as a number. */
static uint64_t check(symbol *function, unsigned number) {
    enum { VARIABLES_MAX = 128 };
    value variable[VARIABLES_MAX] = {{0}}, given[ARITY_MAX] = {{0}};
    heap_demand(function->variables <= VARIABLES_MAX, "compiler: the evaluator has too few variables");
    for (unsigned i = 0; i < arity_of(number); i++) {
        if (argument_of(number, i) == WANTS_LIST)
            given[i].list = join(3, join(1, join((intptr_t)number, NULL)));
        else
            given[i].number = (intptr_t)(number % 100 + i);
        variable[i] = given[i];
    }
    value by_code = run(function, given), by_tree = evaluate(function->body, variable);
    if (result_of(number) == WANTS_NUMBER) {
        heap_demand(by_code.number == by_tree.number, "compiler: a function's code does not compute what its tree does");
        return (uint64_t)by_code.number;
    }
    uint64_t sum = 0;
    const cell *x = by_code.list, *y = by_tree.list;
    for (; x && y && x->head == y->head; x = x->tail, y = y->tail)
        sum = sum * 31 + (uint64_t)x->head;
    heap_demand(!x && !y, "compiler: a function's code does not make the list that its tree makes");
    return sum;
}

/* ---- A module ---- */

/* Functions in the order in which they were read. */
typedef struct functions {
    symbol *is;
    struct functions *next;
} functions;
HEAP_TYPE(functions, HEAP_POINTER(0) | HEAP_POINTER(1));

static int is_kept(const symbol *function) {
    return count_nodes(function->body) <= SMALL_NODES;
}

static __attribute__((noinline)) uint64_t compile(unsigned first, unsigned count) {
    module_first = first;
    functions *all = NULL, *last = NULL;
    for (unsigned n = first; n < first + count; n++) {
        write_function(n);
        symbol *function = parse_function();
        functions *fresh = NEW(functions);
        *fresh = (functions){function, NULL};
        if (last)
            SET(last->next, fresh);
        else
            all = fresh;
        last = fresh;
        /* Calls that follow need its type. */
        infer_function(function);
    }
    work *works = NULL;
    unsigned n = first;
    for (functions *each = all; each; each = each->next, n++) {
        works = lower_function(each->is, works);
        if (!is_kept(each->is) && n % CHECKED_EVERY != 0)
            SET(each->is->body, NULL);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (work *each = works; each; each = each->next)
            optimise(each);
    for (; works; works = works->next)
        emit_function(works);
    uint64_t checksum = 0;
    n = first;
    for (functions *each = all; each; each = each->next, n++)
        if (n % CHECKED_EVERY == 0)
            checksum = checksum * 31 + check(each->is, n);
    n = first;
    for (functions *each = all; each; each = each->next, n++)
        if (!is_small(n)) {
            SET(each->is->body, NULL);
            SET(each->is->code, NULL);
        }
    return checksum;
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    unsigned long memory = heap_word(argc, argv, "memory", MEMORY_MIB);
    heap_demand(memory >= 1 && memory <= 65536, "compiler: memory is from 1 to 65536");
    unsigned count = (unsigned)(memory * FUNCTIONS_A_MIB);
    count = count < FUNCTIONS_MIN ? FUNCTIONS_MIN : count;
    text = malloc(TEXT_MAX);
    out.code = malloc(TEXT_MAX * sizeof *out.code);
    heap_demand(text && out.code, "compiler: no memory for the text of a function and its code");
    names = NEW_POINTERS(symbol, BUCKETS);
    const struct {
        symbol **is;
        const char *text;
    } words[] = {{&word_fun, "fun"},   {&word_if, "if"},   {&word_then, "then"}, {&word_else, "else"}, {&word_let, "let"},
                 {&word_in, "in"},     {&word_nil, "nil"}, {&word_head, "head"}, {&word_tail, "tail"}, {&word_empty, "empty"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        *words[i].is = intern(words[i].text, strlen(words[i].text));
    type_numbers = make_type(NUMBERS, NULL);
    type_truths = make_type(TRUTHS, NULL);
    uint64_t checksum = 0;
    for (unsigned module = 0; module < heap_scaled(MODULES); module++)
        checksum = checksum * 31 + compile(module * count, count);
    free(text);
    free(out.code);
    return heap_end(checksum);
}
