/* The compiler's data types (types, trees, names, instructions) and their sizes. All its other files use
 * them. */
#ifndef CLIENTS_COMPILER_MADE_H
#define CLIENTS_COMPILER_MADE_H

#define HEAP_TELLS_WRITES
#include "heap.h"

enum { MEMORY_MIB = 24, MODULES = 8, FUNCTIONS_A_MIB = 130, FUNCTIONS_MIN = 8, ROUNDS = 3 };
enum { TEXT_MAX = 1 << 16, WORD_MAX = 15, ARITY_MAX = 3, SMALL_NODES = 14, INLINE_DEPTH = 2, CHECKED_EVERY = 29, SLOTS_MAX = 256 };

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

#endif
