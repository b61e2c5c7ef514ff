/* A program that asks for all of its memory by functions that pass requests on. */
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))

static void *volatile kept;

APART static void *xmalloc(size_t bytes) {
    void *block = malloc(bytes);
    if (!block)
        abort();
    return memset(block, 1, bytes);
}

APART static void *pool_get(size_t bytes) { return memset(xmalloc(bytes), 2, bytes); }

APART static void parse(int blocks) {
    for (int i = 0; i < blocks; i++)
        kept = xmalloc(1 << 20);
}

APART static void render(void) {
    for (int i = 0; i < 12; i++)
        kept = pool_get(1 << 20);
}

APART static void load(void) { parse(20); kept = 0; }

APART static void reload(void) { parse(10); kept = 0; }

int main(void) {
    load();
    reload();
    render();
    return 0;
}
