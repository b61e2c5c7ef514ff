/* Requests around all of the machine's memory and swap, none of them touched. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

int main(void)
{
    struct sysinfo info;
    sysinfo(&info);
    size_t all = (info.totalram + info.totalswap) * info.mem_unit;
    static const unsigned percents[] = {30, 60, 90, 98, 102, 110, 150, 200, 400, 800};
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        size_t bytes = all / 100 * percents[i];
        printf("%u %%:", percents[i]);
        void *block = malloc(bytes);
        printf(" malloc %d", block != NULL);
        free(block);
        block = calloc(bytes / 8, 8);
        printf(" calloc %d", block != NULL);
        free(block);
        block = NULL;
        printf(" posix_memalign %d", posix_memalign(&block, 1 << 16, bytes));
        free(block);
        void *small = malloc(100);
        block = realloc(small, bytes);
        printf(" realloc %d", block != NULL);
        free(block != NULL ? block : small);
        /* The kernel looks at what is new alone. */
        void *half = malloc(all / 100 * 60);
        block = half != NULL ? realloc(half, bytes) : NULL;
        printf(" from 60 %% %d\n", block != NULL);
        free(block != NULL ? block : half);
    }
    return 0;
}
