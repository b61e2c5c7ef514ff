/* An allocator that counts how often it is asked from the request for FROM_BYTES on, and says so at that for TO_BYTES. */
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

enum { FROM_BYTES = 7777, TO_BYTES = 7778 };

extern void *__libc_malloc(size_t);

void *malloc(size_t bytes) {
    static int asked;
    asked += asked > 0 || bytes == FROM_BYTES;
    if (bytes == TO_BYTES) {
        char text[32];
        int length = snprintf(text, sizeof text, "asked %d times\n", asked);
        if (write(STDERR_FILENO, text, (size_t)length) != length)
            _exit(1);
    }
    return __libc_malloc(bytes);
}
