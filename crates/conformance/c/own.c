/* A program with an allocator of its own in the executable: its definitions come first, and Vellum stands aside. */
#include "check.h"

static char arena[64 << 20];
static size_t used;
static size_t calls;

void *malloc(size_t size)
{
    calls++;
    size_t start = (used + 31) & ~(size_t)15;
    if (size > sizeof arena || start + size > sizeof arena)
        return NULL;
    *(size_t *)(arena + start - 16) = size;
    used = start + size;
    return arena + start;
}

void free(void *block)
{
    if (block && ((char *)block < arena || (char *)block >= arena + sizeof arena))
        _exit(9);
    calls++;
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size);
}

void *realloc(void *block, size_t size)
{
    void *other = malloc(size);
    if (block && other) {
        size_t old = *(size_t *)((char *)block - 16);
        memcpy(other, block, old < size ? old : size);
    }
    return other;
}

int main(void)
{
    char *text = strdup("some text"), *line = NULL;
    size_t before = calls;
    for (int i = 0; i < 1000; i++)
        free(malloc(1000));
    if (calls - before != 2000)
        return 3;
    if (asprintf(&line, "%s, %d", text, 5) < 0)
        return 4;
    FILE *file = fopen("/proc/self/stat", "r");
    if (file == NULL || fgetc(file) == EOF)
        return 5;
    fclose(file);
    puts(line);
    free(line);
    free(text);
    return 0;
}
