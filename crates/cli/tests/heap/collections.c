/* Makes a list of 1 MiB, collects as often as its first argument gives, and prints a line. Each line of input
   repeats this; the exit status is 7. */
#include <stdio.h>
#include <stdlib.h>
#include <vellum_gc.h>

static void **list;

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < 1 << 16; i++) {
        void **cell = (void **)vel_gc_alloc(16);
        *cell = list;
        list = cell;
    }
    do {
        for (int i = 0; i < times; i++)
            vel_gc_collect();
        puts("done");
        fflush(stdout);
    } while (getchar() != EOF);
    return 7;
}
