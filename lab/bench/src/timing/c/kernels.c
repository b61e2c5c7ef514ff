/* The two kernels that every tool of the timing benchmark times.
 *
 * The build of vellum-bench makes one archive of this file, which every timing program links: all time the
 * same instructions. A kernel's result depends on every step, so the compiler cannot remove a step. The
 * kernels are compiled apart from their callers, so the compiler cannot move a call.
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
