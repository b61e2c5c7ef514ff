/* Few and many operations, of each of which slow_malloc.c disturbs the third. */
#include <stdlib.h>

static void *volatile kept;

int main(void) {
    kept = malloc(7777); //= malloc=1
    for (int i = 0; i < 24; i++)
        kept = malloc(77); //= malloc=24
    for (int i = 0; i < 200000; i++)
        kept = malloc(177); //= malloc=200000
    return 0;
}
