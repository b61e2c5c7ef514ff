/* Timings that can be trusted, for C and C++.
 *
 * Link with -lvelmeasure. (The static library also needs -lpthread -ldl -lm.)
 *
 * The source's way, stamp by stamp:
 *
 *     vel_clock clock;
 *     vel_clock_open(&clock, VEL_BEST);
 *     vel_base base;
 *     vel_measure_base(&clock, 1000, &base, NULL);
 *     vel_sample *sample = vel_sample_new(1000);
 *     for (int i = 0; i < 1000; i++) {
 *         uint64_t t = vel_stamp(&clock);
 *         operation();
 *         vel_sample_add(sample, vel_between(&clock, t, vel_stamp(&clock)) - base.min);
 *     }
 *     vel_stat stat;
 *     vel_sample_stat(sample, &stat);          n, mean, min, max, std
 *
 * A recorder also keeps, for each observation, what else happened inside it. A suite runs many cases and refuses those
 * too short for the clock. A duel compares two operations by turns in random order, with a control. Marks show when a
 * collector was at work.
 *
 * All times are nanoseconds, as double where they are measured and as uint64_t where they are instants of CLOCK_MONOTONIC.
 * Functions that return int return 0, or -1; those that return a pointer return it, or NULL. What went wrong, and what to
 * do about it, is said by vel_measure_error(). Every object has a function that frees it; freeing NULL does nothing.
 * An object is used by one thread at a time, a recorder only by the thread that made it.
 * Marks, and holding collectors, are for any thread at any time.
 */
#ifndef VELLUM_MEASURE_H
#define VELLUM_MEASURE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the calling thread's last failed call failed for, and the cure. Never NULL; valid until its next failure. */
const char *vel_measure_error(void);

/* ---- Clocks ---------------------------------------------------------------------------------------------------------- */

enum vel_clock_kind {
    VEL_BEST = -1,      /* the fenced counter where it can be trusted, else CLOCK_MONOTONIC_RAW */
    VEL_TSC = 0,        /* the time-stamp counter */
    VEL_TSC_FENCED = 1, /* the same, once everything before it has finished */
    VEL_MONOTONIC = 2,
    VEL_MONOTONIC_RAW = 3,
    VEL_THREAD_CPU = 4
};

typedef struct vel_clock {
    double ns_per_tick;
    double ppm;     /* how far that may be off from CLOCK_MONOTONIC_RAW's, parts per million */
    double step_ns; /* the least by which two readings differ if they differ */
    int kind;       /* never VEL_BEST */
    int reserved;
} vel_clock;

/* Opens a clock, or says why it cannot be trusted here. The first on the counter takes 30 ms, to calibrate it. */
int vel_clock_open(vel_clock *clock, int kind);

/* Now, in the ticks of a clock of the kernel's. For vel_stamp, where <time.h> has no clock_gettime (-std=c99, c11). */
uint64_t vel_stamp_call(const vel_clock *clock);

/* Now, in the clock's ticks. */
static inline uint64_t vel_stamp(const vel_clock *clock) {
#ifdef CLOCK_MONOTONIC_RAW
    struct timespec t;
    clockid_t id;
#endif
#if defined(__x86_64__)
    if (clock->kind == VEL_TSC || clock->kind == VEL_TSC_FENCED) {
        uint32_t low, high;
        if (clock->kind == VEL_TSC) {
            __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
        } else {
            __asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high) : : "memory");
        }
        return (uint64_t)high << 32 | low;
    }
#endif
#ifdef CLOCK_MONOTONIC_RAW
    id = clock->kind == VEL_MONOTONIC   ? CLOCK_MONOTONIC
         : clock->kind == VEL_THREAD_CPU ? CLOCK_THREAD_CPUTIME_ID
                                         : CLOCK_MONOTONIC_RAW;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#else
    return vel_stamp_call(clock);
#endif
}

/* The nanoseconds between two stamps; 0 if the second is the smaller. */
static inline double vel_between(const vel_clock *clock, uint64_t first, uint64_t second) {
    return second > first ? (double)(second - first) * clock->ns_per_tick : 0.0;
}

/* Keeps the compiler from leaving out the computation of *value, or from knowing what it is. */
static inline void vel_keep(const void *value) {
    __asm__ volatile("" : : "g"(value) : "memory");
}

/* ---- Samples and the base -------------------------------------------------------------------------------------------- */

typedef struct vel_stat {
    uint64_t n;
    double mean, min, max, std;
} vel_stat;

typedef struct vel_base {
    uint64_t n;
    double mean, min, max, std;
    double step; /* the clock's */
} vel_base;

typedef struct vel_sample vel_sample;

/* An empty sample; adding up to `capacity` values allocates nothing. */
vel_sample *vel_sample_new(size_t capacity);
void vel_sample_add(vel_sample *sample, double value);
/* Its values in the order in which they were added, `*count` of them; valid until the next is added. */
const double *vel_sample_values(const vel_sample *sample, size_t *count);
/* Fails for a sample without values, or with one that is no finite number. */
int vel_sample_stat(const vel_sample *sample, vel_stat *stat);
void vel_sample_free(vel_sample *sample);

/* Times nothing `n` times (10 to 10^7). The minimum is what to subtract. If `timings` is not NULL it gets the timings. */
int vel_measure_base(const vel_clock *clock, size_t n, vel_base *base, vel_sample **timings);
/* How many operations of `operation_ns` must be timed at once: 1 if it is long enough for the clock by itself. */
uint64_t vel_batch_for(const vel_base *base, double operation_ns);

/* ---- Series: observations of one thing, in order --------------------------------------------------------------------- */

typedef struct vel_observation {
    uint64_t start_ns; /* on CLOCK_MONOTONIC */
    double wall_ns;    /* base included, of a whole batch */
    double cpu_ns;     /* thread time, its own base included; NaN if not recorded */
    double steal_ns;   /* taken by the machine below; NaN if not known */
    uint32_t minor_faults, major_faults;
    uint32_t voluntary_switches, involuntary_switches;
} vel_observation;

typedef struct vel_series vel_series;

enum vel_format { VEL_LINES = 0, VEL_JSON = 1 };

const char *vel_series_name(const vel_series *series);
size_t vel_series_count(const vel_series *series);
/* Observation `index`, from 0. */
int vel_series_get(const vel_series *series, size_t index, vel_observation *observation);
/* Operations in each observation. */
uint64_t vel_series_batch(const vel_series *series);
/* What timing nothing cost by the clock of the walls. */
int vel_series_base(const vel_series *series, vel_base *base);
/* Of the wall times of one operation, base subtracted. */
int vel_series_stat(const vel_series *series, vel_stat *stat);
size_t vel_series_mark_count(const vel_series *series);
/* Writes it to a file, which is made anew or, with `append`, added to (lines only); to standard output if `path` is NULL. */
int vel_series_write(const vel_series *series, const char *path, int format, int append);
void vel_series_free(vel_series *series);

/* ---- The recorder ---------------------------------------------------------------------------------------------------- */

enum vel_detail {
    VEL_STAMPS = 0, /* start and wall time: no system call beside an observation */
    VEL_FULL = 1    /* also thread time, faults, switches, steal, and what Vellum's allocator did */
};

typedef struct vel_recorder vel_recorder;
typedef void (*vel_operation)(void *context);

/* A recorder with room for `capacity` observations. Its base is measured here. */
vel_recorder *vel_recorder_new(int clock_kind, int detail, size_t capacity);
/* From now on an observation is `batch` operations. Forgets what was observed. */
int vel_recorder_batch(vel_recorder *recorder, uint64_t batch);
/* Begins and ends an observation. Between them, the caller runs the operation `batch` times, and nothing else. */
void vel_recorder_begin(vel_recorder *recorder);
void vel_recorder_end(vel_recorder *recorder);
/* Makes `times` observations of an operation. */
int vel_recorder_repeat(vel_recorder *recorder, size_t times, vel_operation operation, void *context);
/* Observations so far, and how many found no room. */
size_t vel_recorder_count(const vel_recorder *recorder);
uint64_t vel_recorder_lost(const vel_recorder *recorder);
/* Makes a series of that name of what was observed, and frees the recorder. */
vel_series *vel_recorder_finish(vel_recorder *recorder, const char *name);
void vel_recorder_free(vel_recorder *recorder);

/* ---- Suites ---------------------------------------------------------------------------------------------------------- */

enum vel_batching {
    VEL_REFUSE = 0, /* an operation too short for the clock is refused, with the batch that would do */
    VEL_AUTO = -1   /* it is timed in such a batch; a positive number is a batch for every case */
};

typedef struct vel_suite_options {
    int clock_kind;
    int detail;
    size_t observations;
    double seconds; /* a case ends after so long, with the observations it has */
    double warm_up_seconds;
    int64_t batching;
    const char *only; /* cases whose names contain this; all, if NULL */
    int hold_collectors;
    int reserved;
} vel_suite_options;

#define VEL_SUITE_OPTIONS {VEL_BEST, VEL_FULL, 1000, 3.0, 0.05, VEL_REFUSE, NULL, 0, 0}

typedef struct vel_suite vel_suite;
typedef struct vel_ran vel_ran;

vel_suite *vel_suite_new(const char *name);
/* Adds a case. `context` must live as long as the suite. */
int vel_suite_case(vel_suite *suite, const char *name, vel_operation operation, void *context);
/* Runs it: first the base, then each case. `options` may be NULL. */
vel_ran *vel_suite_run(vel_suite *suite, const vel_suite_options *options);
void vel_suite_free(vel_suite *suite);
/* The timings of nothing, and the cases that ran; series belong to `ran` and are not freed by themselves. */
const vel_series *vel_ran_base(const vel_ran *ran);
size_t vel_ran_count(const vel_ran *ran);
/* Case `index`'s series, or NULL if it was refused. */
const vel_series *vel_ran_series(const vel_ran *ran, size_t index);
/* Why case `index` was refused, or NULL if it was not. */
const char *vel_ran_refusal(const vel_ran *ran, size_t index);
void vel_ran_free(vel_ran *ran);

/* ---- Duels ----------------------------------------------------------------------------------------------------------- */

enum vel_order { VEL_RANDOM = 0, VEL_FIXED = 1, VEL_MIRRORED = 2 };
enum vel_arm { VEL_A = 0, VEL_A_AGAIN = 1, VEL_B = 2 };

typedef struct vel_duel_options {
    int clock_kind;
    int order;
    double seconds;
    double warm_up_seconds;
    size_t rounds_max;
    int64_t batching;
    uint64_t seed;
} vel_duel_options;

#define VEL_DUEL_OPTIONS {VEL_BEST, VEL_RANDOM, 1.0, 0.05, (size_t)1 << 22, VEL_AUTO, 1}

typedef struct vel_interval {
    double estimate, low, high;
} vel_interval;

typedef struct vel_comparison {
    uint64_t rounds;
    vel_interval ratio;   /* B / A: above 1 where B takes longer */
    vel_interval control; /* A' / A: what this machine makes of no difference */
    vel_interval a, b;    /* nanoseconds an operation: a low quantile of each */
    int direction;        /* -1: B is faster, 1: slower, 0: not shown */
    int reserved;
} vel_comparison;

typedef struct vel_duel vel_duel;

/* Lets two operations run by turns in random order, A in two of three arms. `options` may be NULL. */
vel_duel *vel_duel_run(vel_operation a, void *context_a, vel_operation b, void *context_b,
                       const vel_duel_options *options);
size_t vel_duel_rounds(const vel_duel *duel);
/* The times of one operation in round `index`: A, A again, B; base subtracted. */
int vel_duel_round(const vel_duel *duel, size_t index, double times_ns[3]);
int vel_duel_compare(const vel_duel *duel, vel_comparison *comparison);
/* One arm's observations. */
vel_series *vel_duel_series(const vel_duel *duel, const char *name, int arm);
void vel_duel_free(vel_duel *duel);

/* ---- Marks: what a collector or an allocator did --------------------------------------------------------------------- */

enum vel_mark_kind { VEL_MINOR = 0, VEL_MAJOR = 1, VEL_IDLE = 2, VEL_TRIM = 3, VEL_DECAY = 4 };

/* The number of the kind of this name, for a program's own; -1 if there are too many. */
int vel_mark_kind(const char *name);
/* When a span of work begins: CLOCK_MONOTONIC, or 0 without looking while nobody records. */
uint64_t vel_mark_begin(void);
/* Marks a span that began there and ends now; nothing, if `start_ns` is 0. Allocates nothing. */
void vel_mark_end(int kind, uint64_t start_ns);

/* Registers a collector for the life of the process. `hold` starts no collection any more and returns when none runs;
 * `allow` undoes it. Both may be called from any thread, one at a time. */
int vel_collector_register(void (*hold)(void *context), void (*allow)(void *context), void *context);
/* Holds all collectors, until vel_collectors_allow() was called as often. */
void vel_collectors_hold(void);
void vel_collectors_allow(void);

#ifdef __cplusplus
}
#endif

#endif /* VELLUM_MEASURE_H */
