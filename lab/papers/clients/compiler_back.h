/* From typed trees to code: lowering with inlining, optimisation, assignment of slots
 * to registers, and the emission of code. */
#ifndef CLIENTS_COMPILER_BACK_H
#define CLIENTS_COMPILER_BACK_H

#include "compiler_made.h"

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

#endif
