/* Compiler: a small compiler with a large source.
 *
 * Cooper, Nettles and Subramanian 1992, section 5.1: in the paper the compiler compiles a part of itself.
 * Live memory rises and falls like the teeth of a saw: each module is built up, and dropped once its code
 * has been emitted. For much of the time it is more than half of memory (Figure 1).
 *
 *     text ─ lex, parse ─▶ tree ─ infer types ─▶ typed tree ─ lower, inline ─▶ instructions ─┐
 *     code ◀─ assign slots to registers, emit ◀─ optimise (fold, share, drop ...) ◀──────────┘
 *
 * The language has functions of numbers, truth values and lists of numbers. Types are inferred; a function
 * that does not constrain an argument accepts any type. All functions of a module go through a phase
 * before the next phase begins. Trees are dropped when they have been lowered, instructions when they have
 * been emitted. Of a module only the names, their types and the trees of small functions stay. The small
 * functions are inlined into later modules, and may call no others.
 *
 *     module   ::= { fun name x y ... = term ; }
 *     term     ::= if term then term else term | let x = term in term | compare [:: term]
 *     compare  ::= sum [(< | ==) sum];  sum ::= product {(+ | -) product};  product ::= call {* call}
 *     call     ::= name atom ... | head atom | tail atom | empty atom | atom;  atom ::= x | 12 | nil | (term)
 *
 * A compiler reads files. Here the text of a function is generated when it is read, from the function's
 * number only.
 *
 * Check: some functions of each module are run on the same arguments, their trees by an evaluator and
 * their code by a machine. Their results are the checksum. Numbers wrap; the head of an empty list is 0
 * and its tail is empty.
 *
 * `memory=` (MiB) sets the size of the modules: live memory is at most about nine tenths of it.
 *
 * This file takes a module through the phases. The others: compiler_made.h (data types), compiler_text.h
 * (the source text), compiler_front.h and compiler_back.h (the phases), compiler_check.h (the check).
 */
#include "compiler_back.h"
#include "compiler_check.h"
#include "compiler_front.h"

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
