/* A big block for the arguments of system calls, and another through which all its pages are driven out. */
#include "check.h"

#define ROOM (4 * MIB)

static char *block, *other, here[] = "/var/tmp/vellum-calls-XXXXXX", *name, *second;
static int file;

/* The pages of argument `number`: each begins 64 bytes before the end of a page, so that most lie on two. */
static void *at(int number) { return block + (size_t)number * 4 * PAGE + PAGE - 64; }
static void out(void)
{
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < ROOM; i += PAGE)
            ((volatile char *)other)[i]++;
}
static char *text(int number, const char *format, const char *rest)
{
    sprintf(at(number), format, rest);
    return at(number);
}

/* The call, with everything out, gives something that is so. */
#define DOES(expression)                                                                                              \
    do {                                                                                                              \
        out();                                                                                                        \
        errno = 0;                                                                                                    \
        CHECK(expression);                                                                                            \
    } while (0)

static void begin(void)
{
    CHECK((block = malloc(ROOM)) && (other = malloc(ROOM)));
    memset(block, 0, ROOM);
    CHECK((file = mkstemp(here)) >= 0);
    CHECK(write(file, "0123456789", 10) == 10);
    name = text(0, "%s", here);
    second = text(1, "%s-2", here);
}
static void end(void)
{
    unlink(here);
    close(file);
}
