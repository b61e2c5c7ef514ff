/* Phases of 80 and 20 MiB by turns: random references, three quarters of them to a quarter of the pages. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 88172645463325252u;

static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

int main(void) {
    uint64_t sum = 0;
    for (int phase = 0; phase < 6; phase++) {
        size_t size = (size_t)(phase % 2 ? 20 : 80) << 20;
        unsigned char *bytes = malloc(size);
        if (!bytes) return 1;
        for (size_t at = 0; at < size; at += 64) bytes[at] = (unsigned char)draw();
        for (long turn = 0; turn < 30000000; turn++) {
            size_t at = draw() % (turn % 4 ? size / 4 : size);
            sum += ++bytes[at];
        }
        free(bytes);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
