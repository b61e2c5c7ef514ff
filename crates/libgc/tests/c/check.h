/* CHECK(condition): ends the program with the line of what does not hold. Works under NDEBUG and in threads. */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <stdlib.h>
/* Whether each allocation collects. */
static inline int is_eager(void)
{
    return getenv("VELLUM_GC_EAGER") != NULL;
}
/* How often what is to make collections happen is done: seldom where each allocation is one. */
static inline long many(long count)
{
    return is_eager() ? count / 500 + 1 : count;
}
#define CHECK(condition)                                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)
#endif
