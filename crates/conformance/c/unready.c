/* A program whose allocator cannot free before main. */
#include <stddef.h>
#include <unistd.h>

static int is_ready;
static char pool[1 << 20];
static size_t used;

void *malloc(size_t bytes)
{
    void *block = pool + used;
    used += (bytes + 15) & ~(size_t)15;
    return block;
}

void free(void *block)
{
    if (block && !is_ready)
        _exit(9);
}

void *calloc(size_t count, size_t bytes) { return malloc(count * bytes); }

void *realloc(void *block, size_t bytes)
{
    (void)block;
    return malloc(bytes);
}

int main(void)
{
    is_ready = 1;
    return write(1, "fine\n", 5) == 5 ? 0 : 1;
}
