/* Generates the text to compile. A function's text depends only on its number, and is generated when it is
 * read, like a file. */
#ifndef CLIENTS_COMPILER_TEXT_H
#define CLIENTS_COMPILER_TEXT_H

#include "compiler_made.h"

static uint64_t mixed(uint64_t a, uint64_t b) {
    uint64_t x = (a + 1) * 0x9e3779b97f4a7c15u ^ (b + 1) * 0xc2b2ae3d27d4eb4fu;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

/* Facts about function `n` without its text. Functions of a rank call only those of lower ranks, so that calls end. */
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

/* Not static: the collector scans static variables for pointers. */
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

/* A term of a type, in parentheses unless it is a leaf. It may call `calls` functions in a row. */
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

#endif
