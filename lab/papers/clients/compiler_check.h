/* Checks the generated code: an evaluator of trees and a machine for code must give the same results for
 * the same arguments. */
#ifndef CLIENTS_COMPILER_CHECK_H
#define CLIENTS_COMPILER_CHECK_H

#include "compiler_back.h"
#include "compiler_front.h"

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

#endif
