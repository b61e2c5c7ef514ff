/* Code that is made while the program runs, and is named in a list as profilers want it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *kept[400];

/* A function that calls another with its own argument, and keeps a frame pointer. */
static void *(*made(unsigned char *at, void *callee))(size_t) {
    unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
    memcpy(code + 6, &callee, 8);
    memcpy(at, code, sizeof code);
    return (void *(*)(size_t))(uintptr_t)at;
}

__attribute__((noinline)) static void *take(size_t bytes) {
    void *block = malloc(bytes);
    memset(block, 1, bytes);
    return block;
}

int main(void) {
    unsigned char *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return 77;
    void *(*outer)(size_t) = made(page, (void *)take);
    void *(*direct)(size_t) = made(page + 64, (void *)malloc);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *list = fopen(path, "wx");
    if (!list) return 77;
    fprintf(list, "%lx 12 Function:*outer\n%lx 12 Function:*direct\n", (long)page, (long)page + 64);
    fclose(list);
    for (int i = 0; i < 200; i++) kept[i] = outer(100000);
    for (int i = 200; i < 400; i++) kept[i] = direct(100000);
    printf("%s\n", path);
    return 0;
}
