/* An allocator that is disturbed now and then: preloaded, it passes every malloc on, and two of them take MILLISECONDS longer.
   Sizes count from the one that says so on: libraries loaded before main() ask for as many bytes as its paths have. */
#include <stddef.h>
#include <time.h>

enum { MILLISECONDS = 20, FIRST_BYTES = 77, SECOND_BYTES = 177, DISTURBED = 3, FROM_BYTES = 7777 };

extern void *__libc_malloc(size_t);

static void disturb(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    long long end = time.tv_sec * 1000000000ll + time.tv_nsec + MILLISECONDS * 1000000ll;
    while (time.tv_sec * 1000000000ll + time.tv_nsec < end)
        clock_gettime(CLOCK_MONOTONIC, &time);
}

void *malloc(size_t bytes) {
    static int counts, first, second;
    counts |= bytes == FROM_BYTES;
    if (!counts)
        return __libc_malloc(bytes);
    if ((bytes == FIRST_BYTES && ++first == DISTURBED) || (bytes == SECOND_BYTES && ++second == DISTURBED))
        disturb();
    return __libc_malloc(bytes);
}
