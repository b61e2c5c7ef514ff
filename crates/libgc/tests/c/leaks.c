/* Tests of leak detection: leaked objects are reported, and freed ones are not. Objects that are overwritten or freed twice are reported, too. Compiled
 * with GC_DEBUG. */
#include "check.h"
#include "leak_detector.h"
#include <gc_mark.h>

enum { COUNT = 20 };

static __attribute__((noinline)) void forget(void)
{
    for (int i = 0; i < COUNT; i++)
        memset(malloc(48), 1, 48);
}

static __attribute__((noinline)) void forget_many(void)
{
    for (int i = 0; i < 10 * COUNT; i++)
        memset(malloc(56), 1, 56);
}

static __attribute__((noinline)) void clear_stack(void)
{
    volatile char stack[8192];
    memset((char *)stack, 0, sizeof stack);
}

static void end(void *object, void *data)
{
    (void)object, (void)data;
    CHECK(0);
}

int main(void)
{
    static char *kept[COUNT], *volatile written;
    GC_set_find_leak(1);
    GC_INIT();
    CHECK(GC_get_find_leak() == 1);
    /* Finalizers and links have no effect in this mode. */
    void *link = NULL;
    CHECK(GC_general_register_disappearing_link(&link, GC_base(malloc(8))) == GC_UNIMPLEMENTED);
    for (int i = 0; i < COUNT; i++)
        kept[i] = malloc(32);
    /* Memory for a finalizer must not be reported as leaked. */
    GC_finalization_proc before = end;
    void *data = &before;
    GC_REGISTER_FINALIZER(kept[0], end, NULL, &before, &data);
    forget();
    clear_stack();
    CHECK_LEAKS();
    for (int i = 0; i < COUNT; i++)
        free(kept[i]);
    written = malloc(41);
    written[41] = 7;
    CHECK_LEAKS();
    forget_many();
    clear_stack();
    CHECK_LEAKS();
    char *twice = malloc(24);
    free(twice);
    free(twice);
    /* An object in the place of a checked one is not checked, although it is not cleared. */
    for (int i = 0; i < COUNT; i++)
        GC_debug_free((GC_malloc_atomic)(24 + GC_get_debug_header_size()));
    written = realloc(NULL, 100);
    CHECK(GC_strdup("a copy that is longer") && strdup("a copy"));
    puts("leaks: as promised");
    return 0;
}
