/* Page faults whose number is known: the memory is a mapping without huge pages, touched for the first time where it says so. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 500 };

static char *fresh(void) {
    char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        abort();
    madvise(pages, PAGES * PAGE, MADV_NOHUGEPAGE);
    return pages;
}

static void *(*volatile set)(void *, int, size_t) = memset;

int main(void) {
    volatile char *pages = fresh();
    for (int i = 0; i < PAGES; i++)
        pages[i * PAGE] = 1; //= fault_minor=500
    char *by_library = fresh();
    set(by_library, 1, PAGES * PAGE); //= fault_minor=500
    return 0;
}
