/* CHECK(condition): ends the program with the line of a condition that fails. Works under NDEBUG and in threads. */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <stdlib.h>
/* True if allocations collect to find errors: each allocation, or one in a given number. */
static inline int is_eager(void)
{
    return getenv("VELLUM_GC_EAGER") != NULL;
}
/* The repetitions of a step that makes collections happen: few if every allocation collects, and more the fewer allocations collect. */
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
