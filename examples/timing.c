/* vellum_measure.h: how long an operation takes, without the time that reading the clock takes.
 *
 *     cc timing.c $(pkg-config --cflags --libs vellum-measure)
 */
#include <stdio.h>
#include <stdlib.h>
#include <vellum_measure.h>

enum { TIMES = 1000, BYTES = 1 << 16 };

static int failed(void)
{
    fprintf(stderr, "%s\n", vel_measure_error());
    return 1;
}

int main(void)
{
    vel_clock clock;
    vel_base base;
    if (vel_clock_open(&clock, VEL_BEST) || vel_measure_base(&clock, TIMES, &base, NULL))
        return failed();
    vel_sample *sample = vel_sample_new(TIMES);
    if (!sample)
        return failed();
    for (int i = 0; i < TIMES; i++) {
        uint64_t before = vel_stamp(&clock);
        char *block = malloc(BYTES);
        if (block)
            block[i] = 1;
        free(block);
        vel_sample_add(sample, vel_between(&clock, before, vel_stamp(&clock)) - base.min);
    }
    vel_stat stat;
    if (vel_sample_stat(sample, &stat))
        return failed();
    printf("%llu times: mean %.1f ns, least %.1f ns\n", (unsigned long long)stat.n, stat.mean, stat.min);
    vel_sample_free(sample);
    return 0;
}
