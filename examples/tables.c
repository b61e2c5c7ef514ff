/* Something for Vellum to do: 400 tables of 1 MiB are made, and 60 of them are used from then on, for as many
 * rounds as the argument says.
 *
 *     cc -O2 -o tables examples/tables.c && vellum run -- ./tables 10 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { TABLES = 400, USED = 60, WORDS = (1 << 20) / sizeof(uint32_t), LOOKUPS = 400000000 };

int main(int argc, char **argv)
{
    static uint32_t *tables[TABLES];
    for (uint32_t i = 0; i < TABLES; i++) {
        tables[i] = malloc(WORDS * sizeof(uint32_t));
        if (!tables[i])
            return perror("malloc"), 1;
        for (uint32_t j = 0; j < WORDS; j++)
            tables[i][j] = i * 31 + j * 7;
    }
    uint32_t at = 1, sum = 0;
    uint64_t lookups = (uint64_t)LOOKUPS * (argc > 1 ? strtoul(argv[1], NULL, 10) : 1);
    for (uint64_t i = 0; i < lookups; i++) {
        at = at * 1664525 + 1013904223;
        sum += tables[(at >> 16) % USED][at % WORDS];
    }
    printf("%u\n", sum);
    return 0;
}
