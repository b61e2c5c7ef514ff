/* From text to typed trees: names, the lexer, the parser, and type inference. `main` sets the words and
 * types with which the language begins. */
#ifndef CLIENTS_COMPILER_FRONT_H
#define CLIENTS_COMPILER_FRONT_H

#include "compiler_text.h"

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

#endif
