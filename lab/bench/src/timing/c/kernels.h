/* The two kernels that every tool times, compiled once (see kernels.c). Their length is a parameter. */
#ifndef VELLUM_TIMING_KERNELS_H
#define VELLUM_TIMING_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `turns` turns of a chain of six instructions, each of which needs the result of the one before. */
uint64_t vellum_timing_cpu(uint64_t turns);

/* `pairs` times malloc and free, of 16 to 255 bytes, over 256 places. */
uint64_t vellum_timing_alloc(uint64_t pairs);

#ifdef __cplusplus
}
#endif

#endif
