/* Asks for memory a known number of times, and then asks counting_malloc.c how often it was asked. */
#include <stdlib.h>

static void *volatile kept;

int main(void) {
    kept = malloc(7777); //= malloc=1
    for (int i = 0; i < 100; i++)
        kept = malloc(16); //= malloc=100
    kept = malloc(7778); //= malloc=1
    return 0;
}
