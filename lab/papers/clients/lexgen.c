/* Lexgen: generates a lexer for ML from regular expressions.
 *
 * Smith and Morrisett 1998, Table 1: mostly objects of two words, some of three and of four and more (the
 * nodes of the syntax tree, which differ in size), a quarter without pointers (ranges of characters,
 * tables). The method is that of the Dragon book, section 3.9: a tree of the expression, the nullable,
 * first and last positions of each node, the following positions of each leaf, and then states that are
 * sets of positions. Sets are sorted lists. The lexers of the last turns are kept, as by an editor.
 *
 * Check: each lexer must split a text in the same way as a simulation that keeps the set of positions as
 * bits, without a table of states.
 */
#include "heap.h"

enum { TURNS = 1050, KEPT = 20, CHARACTERS = 128, POSITIONS_MAX = 512, STATES_MAX = 400, SETS_WORDS = POSITIONS_MAX / 64 };

/* A sorted list of numbers. */
typedef struct numbers {
    intptr_t head;
    struct numbers *tail;
} numbers;
HEAP_TYPE(numbers, HEAP_POINTER(1));

/* Characters from one to another. */
typedef struct range {
    intptr_t from, to;
} range;
HEAP_TYPE(range, HEAP_NO_POINTERS);

typedef struct ranges {
    const range *head;
    struct ranges *tail;
} ranges;
HEAP_TYPE(ranges, HEAP_POINTER(0) | HEAP_POINTER(1));

/* Nodes of the tree. They begin alike; how long they are depends on the kind. */
typedef enum kind { LEAF, END, STAR, SEQUENCE, CHOICE } kind;
typedef struct node {
    intptr_t kind;
} node;
/* The position of some characters, or of the end of a rule. */
typedef struct leaf {
    intptr_t kind, position;
    const ranges *characters;
} leaf;
HEAP_TYPE(leaf, HEAP_POINTER(2));
typedef struct star {
    intptr_t kind;
    const node *body;
} star;
HEAP_TYPE(star, HEAP_POINTER(1));
typedef struct pair {
    intptr_t kind;
    const node *left, *right;
} pair;
HEAP_TYPE(pair, HEAP_POINTER(1) | HEAP_POINTER(2));

/* What is known of a node. */
typedef struct facts {
    intptr_t nullable;
    const numbers *first, *last;
    const node *of;
} facts;
HEAP_TYPE(facts, HEAP_POINTER(1) | HEAP_POINTER(2) | HEAP_POINTER(3));

/* A state while states are found. */
typedef struct state {
    const numbers *positions;
    int16_t *next; /* by character; no way on is -1 */
    intptr_t number, rule;
    struct state *later;
} state;
HEAP_TYPE(state, HEAP_POINTER(0) | HEAP_POINTER(1) | HEAP_POINTER(4));

/* A lexer: for each state its row, and the rule it ends, or 0. */
typedef struct lexer {
    int16_t **rows;
    int16_t *rules;
    intptr_t states;
    const node *tree;
} lexer;
HEAP_TYPE(lexer, HEAP_POINTER(0) | HEAP_POINTER(1) | HEAP_POINTER(3));

/* What the generator works on; the tables by position are the heap's. */
static struct {
    const char *at;
    intptr_t positions;
    const numbers **follow;
    leaf **leaves;
    intptr_t *rules;
} now;

static const char *const RULES[] = {
    "abstype|and|andalso|as|case|datatype|do|else|end|eqtype|exception|fn|fun|functor|handle|if|in|include",
    "infix|infixr|let|local|nonfix|of|op|open|orelse|raise|rec|sharing|sig|signature|struct|structure|then|type|val|where|while|with",
    "[a-zA-Z][a-zA-Z0-9_']*",
    "'[a-zA-Z0-9_']+",
    "[!%&$#+\\-/:<=>?@~`^|*\\\\]+",
    "~?[0-9]+",
    "~?0x[0-9a-fA-F]+",
    "~?[0-9]+(\\.[0-9]+)?(E~?[0-9]+)?",
    "\"([ !#-\\[\\]-~]|\\\\([abtnvfr\"\\\\]|[0-9][0-9][0-9]))*\"",
    "[ \\t\\n]+",
    "\\(|\\)|\\[|\\]|\\{|\\}|,|;|_|\\.\\.\\.|\\.",
};
enum { RULE_COUNT = sizeof RULES / sizeof *RULES };

static const char TEXT[] =
    "structure Queue :> sig type 'a queue val empty : 'a queue end = struct datatype 'a queue = Q of 'a list * 'a list\n"
    "  fun snoc (Q (front, back), x) = Q (front, x :: back) val limit = 0x7fE and ratio = ~12.5E~3 val hi = \"a\\tb\\\"c\"\n"
    "  fun head (Q ([], back)) = hd (rev back) | head (Q (x :: _, _)) = x handle Empty => raise Fail \"empty\" ... {a,b} end";

static inline const numbers *push(intptr_t head, const numbers *tail) {
    numbers *fresh = NEW(numbers);
    fresh->head = head;
    fresh->tail = (numbers *)tail;
    return fresh;
}

/* Both sets in one. */
static __attribute__((noinline)) const numbers *both(const numbers *a, const numbers *b) {
    if (!a)
        return b;
    if (!b)
        return a;
    if (a->head < b->head)
        return push(a->head, both(a->tail, b));
    return push(b->head, both(a->head == b->head ? a->tail : a, b->tail));
}

static int same(const numbers *a, const numbers *b) {
    for (; a && b && a->head == b->head; a = a->tail, b = b->tail)
        continue;
    return !a && !b;
}

/* ---- Reading expressions ---- */

static const node *new_leaf(intptr_t kind, const ranges *characters) {
    leaf *fresh = NEW(leaf);
    fresh->kind = kind;
    fresh->position = now.positions;
    fresh->characters = characters;
    heap_demand(now.positions < POSITIONS_MAX, "lexgen: too many positions");
    now.leaves[now.positions++] = fresh;
    return (const node *)fresh;
}

static const node *new_star(const node *body) {
    star *fresh = NEW(star);
    fresh->kind = STAR;
    fresh->body = body;
    return (const node *)fresh;
}

static const node *new_pair(intptr_t kind, const node *left, const node *right) {
    pair *fresh = NEW(pair);
    fresh->kind = kind;
    fresh->left = left;
    fresh->right = right;
    return (const node *)fresh;
}

static const ranges *with(intptr_t from, intptr_t to, const ranges *tail) {
    range *one = NEW(range);
    one->from = from;
    one->to = to;
    ranges *fresh = NEW(ranges);
    fresh->head = one;
    fresh->tail = (ranges *)tail;
    return fresh;
}

static int character(void) {
    int c = *now.at++;
    if (c != '\\')
        return c;
    c = *now.at++;
    return c == 't' ? '\t' : c == 'n' ? '\n' : c;
}

static const node *choice(void);

static const node *atom(void) {
    if (*now.at == '(') {
        now.at++;
        const node *inner = choice();
        heap_demand(*now.at++ == ')', "lexgen: an expression lacks a parenthesis");
        return inner;
    }
    if (*now.at != '[') {
        int c = character();
        return new_leaf(LEAF, with(c, c, NULL));
    }
    const ranges *list = NULL;
    for (now.at++; *now.at != ']';) {
        int from = character(), to = from;
        if (*now.at == '-') {
            now.at++;
            to = character();
        }
        list = with(from, to, list);
    }
    now.at++;
    return new_leaf(LEAF, list);
}

/* A copy with positions of its own: for `+` and `?`, which are short for more. */
static const node *copy(const node *of) {
    if (of->kind == STAR)
        return new_star(copy(((const star *)of)->body));
    if (of->kind == LEAF || of->kind == END)
        return new_leaf(of->kind, ((const leaf *)of)->characters);
    const node *left = copy(((const pair *)of)->left);
    return new_pair(of->kind, left, copy(((const pair *)of)->right));
}

static const node *repeated(void) {
    const node *one = atom();
    for (;; now.at++) {
        if (*now.at == '*')
            one = new_star(one);
        else if (*now.at == '+')
            one = new_pair(SEQUENCE, one, new_star(copy(one)));
        else if (*now.at == '?')
            /* Nothing, or one: a choice with the empty expression, which is no node. */
            one = new_pair(CHOICE, one, NULL);
        else
            return one;
    }
}

static const node *sequence(void) {
    const node *all = repeated();
    while (*now.at && *now.at != '|' && *now.at != ')')
        all = new_pair(SEQUENCE, all, repeated());
    return all;
}

static const node *choice(void) {
    const node *all = sequence();
    while (*now.at == '|') {
        now.at++;
        all = new_pair(CHOICE, all, sequence());
    }
    return all;
}

/* ---- Positions ---- */

static void follows(const numbers *each, const numbers *these) {
    for (; each; each = each->tail)
        now.follow[each->head] = both(now.follow[each->head], these);
}

static const facts *about(const node *of) {
    facts *is = NEW(facts);
    is->nullable = 1;
    is->first = is->last = NULL;
    is->of = of;
    if (!of)
        return is;
    switch (of->kind) {
    case LEAF:
    case END:
        is->nullable = 0;
        is->first = is->last = push(((const leaf *)of)->position, NULL);
        break;
    case STAR: {
        const facts *body = about(((const star *)of)->body);
        is->first = body->first;
        is->last = body->last;
        follows(is->last, is->first);
        break;
    }
    default: {
        const facts *left = about(((const pair *)of)->left), *right = about(((const pair *)of)->right);
        if (of->kind == CHOICE) {
            is->nullable = left->nullable || right->nullable;
            is->first = both(left->first, right->first);
            is->last = both(left->last, right->last);
        } else {
            is->nullable = left->nullable && right->nullable;
            is->first = left->nullable ? both(left->first, right->first) : left->first;
            is->last = right->nullable ? both(left->last, right->last) : right->last;
            follows(left->last, right->first);
        }
    }
    }
    return is;
}

/* ---- States ---- */

static int takes(const leaf *here, int c) {
    if (here->kind != LEAF)
        return 0;
    for (const ranges *list = here->characters; list; list = list->tail)
        if (list->head->from <= c && c <= list->head->to)
            return 1;
    return 0;
}

/* Where one comes by `c`. */
static __attribute__((noinline)) const numbers *by(const numbers *positions, int c) {
    const numbers *to = NULL;
    for (; positions; positions = positions->tail)
        if (takes(now.leaves[positions->head], c))
            to = both(now.follow[positions->head], to);
    return to;
}

static inline ranges *cons(const range *head, const ranges *tail) {
    ranges *fresh = NEW(ranges);
    fresh->head = head;
    fresh->tail = (ranges *)tail;
    return fresh;
}

/* Disjoint sorted ranges, cut where `from` to `to` begins and ends, and with it. */
static const ranges *cut(const ranges *list, intptr_t from, intptr_t to) {
    if (from > to)
        return list;
    if (!list || to < list->head->from)
        return with(from, to, list);
    intptr_t first = list->head->from, last = list->head->to;
    if (from > last)
        return cons(list->head, cut(list->tail, from, to));
    if (from < first)
        return with(from, first - 1, cut(list, first, to));
    if (first < from)
        return with(first, from - 1, cut(with(from, last, list->tail), from, to));
    if (to >= last)
        return cons(list->head, cut(list->tail, last + 1, to));
    return with(from, to, with(to + 1, last, list->tail));
}

/* The ranges within which no position tells characters apart. */
static const ranges *classes(const numbers *positions) {
    const ranges *list = NULL;
    for (; positions; positions = positions->tail) {
        const leaf *here = now.leaves[positions->head];
        for (const ranges *one = here->characters; one; one = one->tail)
            list = cut(list, one->head->from, one->head->to);
    }
    return list;
}

/* The first rule that ends in one of these positions; 0 if none does. */
static intptr_t rule_of(const numbers *positions) {
    for (; positions; positions = positions->tail)
        if (now.leaves[positions->head]->kind == END)
            return now.rules[positions->head];
    return 0;
}

static state *new_state(const numbers *positions, intptr_t number) {
    state *fresh = NEW(state);
    fresh->positions = positions;
    fresh->next = NULL;
    fresh->number = number;
    fresh->rule = rule_of(positions);
    fresh->later = NULL;
    fresh->next = NEW_ATOMIC(int16_t, CHARACTERS);
    memset(fresh->next, -1, CHARACTERS * sizeof(int16_t));
    return fresh;
}

static lexer *generated(void) {
    now.positions = 0;
    now.follow = (const numbers **)NEW_POINTERS(numbers, POSITIONS_MAX);
    now.leaves = NEW_POINTERS(leaf, POSITIONS_MAX);
    now.rules = NEW_ATOMIC(intptr_t, POSITIONS_MAX);
    const node *tree = NULL;
    for (intptr_t rule = 0; rule < RULE_COUNT; rule++) {
        now.at = RULES[rule];
        const node *body = choice();
        const node *end = new_leaf(END, NULL);
        now.rules[now.positions - 1] = rule + 1;
        const node *whole = new_pair(SEQUENCE, body, end);
        tree = tree ? new_pair(CHOICE, tree, whole) : whole;
    }
    const facts *root = about(tree);
    state *first = new_state(root->first, 0), *last = first;
    intptr_t count = 1;
    for (state *here = first; here; here = here->later)
        for (const ranges *class = classes(here->positions); class; class = class->tail) {
            const numbers *to = by(here->positions, (int)class->head->from);
            if (!to)
                continue;
            state *found = first;
            while (found && !same(found->positions, to))
                found = found->later;
            if (!found) {
                heap_demand(count < STATES_MAX, "lexgen: too many states");
                found = last = last->later = new_state(to, count++);
            }
            for (intptr_t c = class->head->from; c <= class->head->to; c++)
                here->next[c] = (int16_t)found->number;
        }
    lexer *made = NEW(lexer);
    made->rows = NULL;
    made->rules = NULL;
    made->states = count;
    made->tree = tree;
    made->rows = NEW_POINTERS(int16_t, (size_t)count);
    made->rules = NEW_ATOMIC(int16_t, (size_t)count);
    for (state *here = first; here; here = here->later) {
        made->rows[here->number] = here->next;
        made->rules[here->number] = (int16_t)here->rule;
    }
    return made;
}

/* ---- Running and checking ---- */

/* The longest token at `text`: its length, or 0, and its rule. */
static size_t token(const lexer *by, const char *text, int *rule) {
    size_t length = 0;
    int at = 0;
    for (size_t i = 0; text[i] && (at = by->rows[at][(unsigned char)text[i]]) >= 0; i++)
        if (by->rules[at]) {
            length = i + 1;
            *rule = by->rules[at];
        }
    return length;
}

/* The same from the positions alone. */
static size_t token_by_positions(const numbers *first, const char *text, int *rule) {
    uint64_t here[SETS_WORDS] = {0}, next[SETS_WORDS];
    size_t length = 0;
    for (; first; first = first->tail)
        here[first->head / 64] |= (uint64_t)1 << first->head % 64;
    for (size_t i = 0; text[i]; i++) {
        memset(next, 0, sizeof next);
        for (intptr_t p = 0; p < now.positions; p++)
            if (here[p / 64] >> p % 64 & 1 && takes(now.leaves[p], (unsigned char)text[i]))
                for (const numbers *to = now.follow[p]; to; to = to->tail)
                    next[to->head / 64] |= (uint64_t)1 << to->head % 64;
        memcpy(here, next, sizeof here);
        for (intptr_t p = 0; p < now.positions; p++)
            if (here[p / 64] >> p % 64 & 1 && now.leaves[p]->kind == END) {
                length = i + 1;
                *rule = (int)now.rules[p];
                break;
            }
    }
    return length;
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    static lexer *kept[KEPT];
    uint64_t checksum = 0;
    for (unsigned long turn = 0; turn < heap_scaled(TURNS); turn++) {
        lexer *made = kept[turn % KEPT] = generated();
        const numbers *first = turn ? NULL : about(made->tree)->first;
        int rule = 0, other = 0;
        for (const char *text = TEXT; *text;) {
            size_t length = token(made, text, &rule);
            heap_demand(length > 0, "lexgen: a text of ML has a part that is no token");
            if (first)
                heap_demand(length == token_by_positions(first, text, &other) && rule == other,
                            "lexgen: the table and the positions cut the text differently");
            checksum = checksum * 31 + length * RULE_COUNT + (unsigned)rule;
            text += length;
        }
        checksum = checksum * 31 + (uint64_t)made->states;
    }
    for (int i = 0; i < KEPT && kept[i]; i++) {
        int rule = 0;
        checksum = checksum * 31 + token(kept[i], TEXT, &rule) + (uint64_t)kept[i]->states;
    }
    return heap_end(checksum);
}
