/* Checksum: the Internet's checksum (RFC 1071) of a stream of 16-bit values.
 *
 * Smith and Morrisett 1998, Table 1: objects of two and three words in equal number, one array of 4 KB,
 * nearly nothing live. The stream is functional: reading from a cursor returns the value and the next
 * cursor, both new objects. The pair's first word holds the sum and the number of carries, packed, so that
 * it may look like an address. A plain loop over the array checks each sum.
 */
#include "heap.h"

enum { VALUES = 2048, STREAMS = 24000, CARRY_SHIFT = 32 };

typedef uint16_t value;

/* Where a reader is. */
typedef struct cursor {
    const value *values;
    intptr_t at, end;
} cursor;
HEAP_TYPE(cursor, HEAP_POINTER(0));

/* The sum so far, its carries above CARRY_SHIFT, and where to go on. */
typedef struct step {
    uint64_t packed;
    const cursor *rest;
} step;
HEAP_TYPE(step, HEAP_POINTER(1));

static __attribute__((noinline)) const cursor *from(const value *values, intptr_t at, intptr_t end) {
    cursor *fresh = NEW(cursor);
    fresh->values = values;
    fresh->at = at;
    fresh->end = end;
    return fresh;
}

/* Adds the value under the cursor. */
static __attribute__((noinline)) const step *advance(uint64_t packed, const cursor *here) {
    uint32_t sum = (uint16_t)packed + here->values[here->at];
    uint64_t carries = (packed >> CARRY_SHIFT) + (sum >> 16);
    step *fresh = NEW(step);
    fresh->rest = NULL;
    fresh->packed = carries << CARRY_SHIFT | (uint16_t)sum;
    fresh->rest = from(here->values, here->at + 1, here->end);
    return fresh;
}

static uint64_t fold(uint64_t sum) {
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

static uint64_t of_stream(const value *values) {
    const cursor *here = from(values, 0, VALUES);
    uint64_t packed = 0;
    while (here->at < here->end) {
        const step *now = advance(packed, here);
        packed = now->packed;
        here = now->rest;
    }
    return fold((uint16_t)packed + (packed >> CARRY_SHIFT));
}

static uint64_t of_array(const value *values) {
    uint64_t sum = 0;
    for (int i = 0; i < VALUES; i++)
        sum += values[i];
    return fold(sum);
}

int main(int argc, char **argv) {
    heap_begin(argc, argv);
    value *values = NEW_ATOMIC(value, VALUES);
    uint64_t random = 7, checksum = 0;
    for (int i = 0; i < VALUES; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        values[i] = (value)(random >> 48);
    }
    for (unsigned long stream = 0; stream < heap_scaled(STREAMS); stream++) {
        /* As a sender would: each packet has its number. */
        values[0] = (value)stream;
        values[1] = (value)(stream >> 16);
        uint64_t sum = of_stream(values);
        heap_demand(sum == of_array(values), "checksum: the stream has another sum than the array");
        checksum = checksum * 31 + sum;
    }
    return heap_end(checksum);
}
