/* CHECK(condition): ends the program with the line of what does not hold. Works under NDEBUG and in threads. */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <stdlib.h>
#define CHECK(condition)                                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)
#endif
