/* CHECK(condition): ends the program with the line of what does not hold. Works under NDEBUG and in threads. */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <stdlib.h>
/* Whether allocations collect for no other reason than finding errors: each, or one in a number of them. */
static inline int is_eager(void)
{
    return getenv("VELLUM_GC_EAGER") != NULL;
}
/* How often what is to make collections happen is done: seldom where every allocation is one, and as much more often as fewer are. */
static inline long many(long count)
{
    long collects_one_in = is_eager() ? atol(getenv("VELLUM_GC_EAGER")) : 0;
    return is_eager() && collects_one_in < 500 ? count / 500 * collects_one_in + 1 : count;
}
#define CHECK(condition)                                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)
#endif
