/* The two kernels that the timing benchmark gives to every tool.
 *
 * One archive is made of this file as vellum-bench is built, and linked into each of the programs that time it, so that they all time the
 * same instructions. What they return depends on every step, so that no compiler may leave one out; callers cannot see into
 * them, so that none may move a call.
 */
#include "kernels.h"

#include <stdlib.h>

enum { PLACES = 256, BYTES_MIN = 16, BYTES_SPREAD = 240 };

/* A shift register with linear feedback (Marsaglia 2003). Its steps cannot be taken together or out of turn, and there is nothing to load or store. */
static inline uint64_t step(uint64_t x) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

static const uint64_t SEED = 88172645463325252u;

uint64_t vellum_timing_cpu(uint64_t turns) {
    uint64_t x = SEED;
    for (uint64_t turn = 0; turn < turns; turn++)
        x = step(x);
    return x;
}

/* Every call does the same: same sizes, same places, in the same order, and leaves nothing behind but what the allocator keeps. */
uint64_t vellum_timing_alloc(uint64_t pairs) {
    unsigned char *places[PLACES] = {0};
    uint64_t x = SEED, sum = 0;
    for (uint64_t pair = 0; pair < pairs; pair++) {
        x = step(x);
        unsigned char **place = &places[x % PLACES];
        if (*place) {
            sum += **place;
            free(*place);
        }
        *place = malloc(BYTES_MIN + (x >> 32) % BYTES_SPREAD);
        if (!*place)
            abort();
        **place = (unsigned char)x;
    }
    for (int i = 0; i < PLACES; i++)
        free(places[i]);
    return sum;
}
