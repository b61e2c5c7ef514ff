/* Every part of include/vellum_measure.h, used as its comments say. Fails with the line of the first check that fails. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vellum_measure.h"

#define CHECK(what)                                                                              \
    do {                                                                                         \
        if (!(what)) {                                                                           \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, vel_measure_error()); \
            exit(1);                                                                             \
        }                                                                                        \
    } while (0)

static volatile uint64_t sink;

/* Not inlined: a profile is to find it by name. */
__attribute__((noinline)) static void work(void *context) {
    uint64_t x = 88172645463325252u, turns = *(uint64_t *)context;
    while (turns-- > 0) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    sink = x;
}

static void clocks_and_samples(void) {
    for (int kind = VEL_BEST; kind <= VEL_THREAD_CPU; kind++) {
        vel_clock clock;
        if (vel_clock_open(&clock, kind) != 0) {
            /* Only the counter may be refused, and says why. */
            CHECK(kind == VEL_TSC || kind == VEL_TSC_FENCED);
            printf("skipped: %s\n", vel_measure_error());
            continue;
        }
        CHECK(clock.kind >= VEL_TSC && clock.kind <= VEL_THREAD_CPU && (kind == VEL_BEST || clock.kind == kind));
        CHECK(clock.ns_per_tick > 0 && clock.step_ns > 0 && clock.ppm >= 0);
        uint64_t first = vel_stamp(&clock), second = vel_stamp(&clock);
        CHECK(second >= first && vel_between(&clock, second + 1, first) == 0);

        vel_base base;
        vel_sample *timings = NULL;
        CHECK(vel_measure_base(&clock, 500, &base, &timings) == 0);
        CHECK(base.n == 500 && base.min <= base.mean && base.mean <= base.max && base.step == clock.step_ns);
        size_t count = 0;
        CHECK(vel_sample_values(timings, &count) != NULL && count == 500);
        vel_sample_free(timings);
        CHECK(vel_batch_for(&base, 1e9) == 1 && vel_batch_for(&base, 0.5) >= 2);
        CHECK(vel_measure_base(&clock, 1, &base, NULL) == -1 && strstr(vel_measure_error(), "base of 1"));

        vel_sample *sample = vel_sample_new(100);
        for (int i = 0; i < 100; i++) {
            uint64_t turns = 1000, t = vel_stamp(&clock);
            work(&turns);
            vel_sample_add(sample, vel_between(&clock, t, vel_stamp(&clock)) - base.min);
        }
        vel_stat stat;
        CHECK(vel_sample_stat(sample, &stat) == 0);
        CHECK(stat.n == 100 && stat.min <= stat.mean && stat.mean <= stat.max && stat.std >= 0);
        vel_sample_free(sample);
    }
    vel_clock clock;
    CHECK(vel_clock_open(&clock, 9) == -1 && strstr(vel_measure_error(), "9"));
    vel_sample *empty = vel_sample_new(0);
    vel_stat stat;
    CHECK(vel_sample_stat(empty, &stat) == -1);
    vel_sample_free(empty);
    vel_sample_free(NULL);
}

static int count_lines(const char *path, const char *begin) {
    char word[64];
    int lines = 0, c, at = 0;
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    while ((c = fgetc(file)) != EOF) {
        if (at < (int)sizeof word - 1) {
            word[at++] = (char)c;
            word[at] = 0;
        }
        if (c == '\n') {
            lines += strncmp(word, begin, strlen(begin)) == 0;
            at = 0;
        }
    }
    fclose(file);
    return lines;
}

static void recorder(const char *folder) {
    uint64_t turns = 2000;
    vel_recorder *recorder = vel_recorder_new(VEL_MONOTONIC, VEL_FULL, 20);
    CHECK(recorder != NULL);
    CHECK(vel_recorder_batch(recorder, 0) == -1 && vel_recorder_batch(recorder, 2) == 0);
    CHECK(vel_recorder_repeat(recorder, 15, work, &turns) == 0);
    vel_recorder_begin(recorder);
    work(&turns);
    work(&turns);
    vel_recorder_end(recorder);
    int kind = vel_mark_kind("checkpoint");
    CHECK(kind > VEL_DECAY && vel_mark_kind("checkpoint") == kind && vel_mark_kind("major") == VEL_MAJOR);
    vel_recorder_begin(recorder);
    uint64_t start = vel_mark_begin();
    CHECK(start != 0);
    vel_mark_end(kind, start);
    vel_recorder_end(recorder);
    CHECK(vel_recorder_count(recorder) == 17 && vel_recorder_lost(recorder) == 0);
    CHECK(vel_recorder_repeat(recorder, 5, work, &turns) == 0);
    CHECK(vel_recorder_count(recorder) == 20 && vel_recorder_lost(recorder) == 2);
    CHECK(vel_recorder_repeat(recorder, 5, NULL, NULL) == -1);

    vel_series *series = vel_recorder_finish(recorder, "from C");
    CHECK(series != NULL && strcmp(vel_series_name(series), "from C") == 0);
    CHECK(vel_series_count(series) == 20 && vel_series_batch(series) == 2 && vel_series_mark_count(series) >= 1);
    vel_observation one, last = {0};
    for (size_t i = 0; i < 20; i++) {
        CHECK(vel_series_get(series, i, &one) == 0);
        CHECK(one.wall_ns > 0 && one.cpu_ns > 0 && one.start_ns > last.start_ns);
        last = one;
    }
    CHECK(vel_series_get(series, 20, &one) == -1 && strstr(vel_measure_error(), "20"));
    vel_base base;
    vel_stat stat;
    CHECK(vel_series_base(series, &base) == 0 && base.n == 1000);
    CHECK(vel_series_stat(series, &stat) == 0 && stat.n == 20);

    char path[4096];
    const char *names[] = {"lines", "json"};
    for (int format = VEL_LINES; format <= VEL_JSON; format++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[format]);
        CHECK(vel_series_write(series, path, format, 0) == 0);
    }
    snprintf(path, sizeof path, "%s/lines", folder);
    int lines = count_lines(path, "from%20C:");
    CHECK(lines >= 2);
    CHECK(vel_series_write(series, path, VEL_LINES, 1) == 0 && count_lines(path, "from%20C:") == 2 * lines);
    CHECK(vel_series_write(series, path, VEL_JSON, 1) == -1);
    CHECK(vel_series_write(series, "/no/such/folder/file", VEL_LINES, 0) == -1);
    CHECK(vel_series_write(series, path, 7, 0) == -1);
    vel_series_free(series);

    vel_recorder *stamps = vel_recorder_new(VEL_MONOTONIC, VEL_STAMPS, 3);
    CHECK(vel_recorder_repeat(stamps, 3, work, &turns) == 0);
    series = vel_recorder_finish(stamps, NULL);
    CHECK(vel_series_get(series, 0, &one) == 0 && isnan(one.cpu_ns) && isnan(one.steal_ns));
    vel_series_free(series);
    CHECK(vel_recorder_new(VEL_MONOTONIC, VEL_FULL, 0) == NULL && vel_recorder_new(VEL_MONOTONIC, 5, 1) == NULL);
    CHECK(vel_recorder_finish(NULL, "x") == NULL && strstr(vel_measure_error(), "null"));
}

static void one(void *context) { ++*(volatile uint64_t *)context; }

static void suite(void) {
    uint64_t turns = 5000, number = 0;
    vel_suite_options options = VEL_SUITE_OPTIONS;
    options.clock_kind = VEL_MONOTONIC;
    options.observations = 25;
    options.warm_up_seconds = 0.001;
    vel_suite *suite = vel_suite_new("c");
    CHECK(vel_suite_case(suite, "work", work, &turns) == 0);
    CHECK(vel_suite_case(suite, "one", one, &number) == 0);
    CHECK(vel_suite_case(suite, "none", NULL, NULL) == -1);
    vel_ran *ran = vel_suite_run(suite, &options);
    CHECK(ran != NULL && vel_ran_count(ran) == 2 && vel_series_count(vel_ran_base(ran)) == 1000);
    CHECK(vel_series_count(vel_ran_series(ran, 0)) == 25 && vel_ran_refusal(ran, 0) == NULL);
    CHECK(strcmp(vel_series_name(vel_ran_series(ran, 0)), "c/work") == 0);
    CHECK(vel_ran_series(ran, 1) == NULL && strstr(vel_ran_refusal(ran, 1), "would do"));
    CHECK(vel_ran_series(ran, 2) == NULL && vel_ran_refusal(ran, 2) == NULL);
    vel_ran_free(ran);
    options.batching = VEL_AUTO;
    options.only = "one";
    ran = vel_suite_run(suite, &options);
    CHECK(ran != NULL && vel_ran_count(ran) == 1 && vel_series_batch(vel_ran_series(ran, 0)) >= 2);
    vel_ran_free(ran);
    options.batching = -7;
    CHECK(vel_suite_run(suite, &options) == NULL && strstr(vel_measure_error(), "-7"));
    vel_suite_free(suite);
}

static void duel(void) {
    uint64_t less = 1000, more = 20000;
    vel_duel_options options = VEL_DUEL_OPTIONS;
    options.clock_kind = VEL_MONOTONIC;
    options.seconds = 0.05;
    options.rounds_max = 500;
    options.warm_up_seconds = 0.001;
    vel_duel *duel = vel_duel_run(work, &less, work, &more, &options);
    CHECK(duel != NULL && vel_duel_rounds(duel) >= 10);
    double times[3];
    CHECK(vel_duel_round(duel, 0, times) == 0 && times[VEL_A] > 0 && times[VEL_B] > 0);
    CHECK(vel_duel_round(duel, vel_duel_rounds(duel), times) == -1);
    vel_comparison found;
    CHECK(vel_duel_compare(duel, &found) == 0);
    CHECK(found.rounds == vel_duel_rounds(duel) && found.ratio.low > 2 && found.direction == 1);
    CHECK(found.a.low <= found.a.estimate && found.a.estimate < found.b.estimate);
    CHECK(found.control.low <= found.control.estimate && found.control.estimate <= found.control.high);
    vel_series *arm = vel_duel_series(duel, "duel", VEL_A_AGAIN);
    CHECK(vel_series_count(arm) == vel_duel_rounds(duel));
    vel_series_free(arm);
    CHECK(vel_duel_series(duel, "duel", 3) == NULL);
    vel_duel_free(duel);
    options.order = 3;
    CHECK(vel_duel_run(work, &less, work, &more, &options) == NULL && strstr(vel_measure_error(), "order 3"));
    CHECK(vel_duel_run(work, &less, NULL, NULL, NULL) == NULL);
}

static void hold(void *context) { --*(int *)context; }
static void allow(void *context) { ++*(int *)context; }

static void collectors(void) {
    static int state;
    CHECK(vel_mark_begin() == 0);
    CHECK(vel_collector_register(hold, allow, &state) == 0 && vel_collector_register(hold, NULL, &state) == -1);
    vel_collectors_hold();
    vel_collectors_hold();
    CHECK(state == -1);
    vel_collectors_allow();
    CHECK(state == -1);
    vel_collectors_allow();
    CHECK(state == 0);
    vel_collectors_allow();
    CHECK(state == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    clocks_and_samples();
    collectors();
    recorder(argv[1]);
    suite();
    duel();
    puts("all passed");
    return 0;
}
