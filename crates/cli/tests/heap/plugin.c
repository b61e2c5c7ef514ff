/* A library that comes and goes. */
#include <stdlib.h>

void work(void) {
    static void *volatile kept[300];
    for (int i = 0; i < 300; i++)
        kept[i] = malloc(5000);
    for (int i = 0; i < 300; i++)
        free(kept[i]);
}
