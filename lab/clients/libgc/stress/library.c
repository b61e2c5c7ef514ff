/* A library that is opened and closed while other threads collect. Its data has roots while it is loaded. */
#include <stddef.h>

enum { KEPT = 32 };
static void *kept[KEPT];
/* Much of it, so that its pages are no neighbour's. */
static char filler[64 << 10] = { 1 };

void **library_roots(size_t *count)
{
    *count = KEPT;
    filler[count ? 4096 : 0]++;
    return kept;
}
