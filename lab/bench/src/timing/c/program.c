/* A program that runs a kernel, for tools that time whole processes or count their instructions.
 *
 * usage: program cpu|alloc SIZE TIMES
 *
 * Runs the kernel TIMES times. Prints the number of calls and the CPU time as one line of JSON.
 */
#include "kernels.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static double nanoseconds(struct timeval time) {
    return time.tv_sec * 1e9 + time.tv_usec * 1e3;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s cpu|alloc SIZE TIMES\n", argv[0]);
        return 2;
    }
    uint64_t (*kernel)(uint64_t) = strcmp(argv[1], "cpu") == 0 ? vellum_timing_cpu : vellum_timing_alloc;
    uint64_t size = strtoull(argv[2], NULL, 10), times = strtoull(argv[3], NULL, 10), sum = 0;
    for (uint64_t i = 0; i < times; i++)
        sum += kernel(size);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("{\"calls\": %" PRIu64 ", \"cpu_ns\": %.0f, \"sum\": %" PRIu64 "}\n", times,
           nanoseconds(used.ru_utime) + nanoseconds(used.ru_stime), sum % 1000000007);
    return 0;
}
