// Times the kernels with google-benchmark, with its default settings.
//
// usage: google cpu|alloc SIZE_A SIZE_B [--benchmark_…]
#include "kernels.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

static uint64_t (*kernel)(uint64_t);

static void time_kernel(benchmark::State &state, uint64_t size) {
    for (auto _ : state)
        benchmark::DoNotOptimize(kernel(size));
}

int main(int argc, char **argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: %s cpu|alloc SIZE_A SIZE_B\n", argv[0]);
        return 2;
    }
    kernel = std::strcmp(argv[1], "cpu") == 0 ? vellum_timing_cpu : vellum_timing_alloc;
    const uint64_t a = std::strtoull(argv[2], nullptr, 10), b = std::strtoull(argv[3], nullptr, 10);
    benchmark::RegisterBenchmark("A", time_kernel, a);
    benchmark::RegisterBenchmark("B", time_kernel, b);
    // The library wants its own words right behind the program's name.
    argv[3] = argv[0];
    int rest = argc - 3;
    benchmark::Initialize(&rest, argv + 3);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
