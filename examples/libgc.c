/* gc.h, as libgc has it: words that nobody frees.
 *
 *     export PKG_CONFIG_PATH=$(pkg-config --variable=libdir vellum)/vellum/pkgconfig
 *     cc libgc.c $(pkg-config --cflags --libs bdw-gc)
 */
#include <gc.h>
#include <stdio.h>

enum { WORDS = 100000, KEPT = 100 };

int main(void)
{
    GC_INIT();
    static char *kept[KEPT];
    for (int i = 0; i < WORDS; i++) {
        char *word = GC_MALLOC_ATOMIC(32);
        if (!word)
            return 1;
        snprintf(word, 32, "word %d", i);
        kept[i % KEPT] = word;
    }
    GC_gcollect();
    printf("the last one: %s\n", kept[(WORDS - 1) % KEPT]);
    return 0;
}
