/* What `mapfuzz` knows of each page that is the program's or was: its contents, protection and kind, by page number. A failed
 * check prints the seed and the last calls. Nothing here is allocated: the model must know what of the address space is the program's. */
#include "check.h"
#include <stdarg.h>

enum state { NONE, HOLE, LIVE }; /* HOLE: was the program's and is unmapped now */
enum kind { ANONYMOUS, SHARED, FILE_PRIVATE, FILE_SHARED };
enum { WIPED = 1, NOT_INHERITED = 2, COPIED = 4 }; /* COPIED: a private page of a file that was written */

struct page {
    uintptr_t number;
    uint32_t value; /* in its first and last word; 0 for a page never written */
    uint32_t offset;
    uint32_t mapping; /* pages of one number were mapped by one call */
    uint8_t state, kind, prot, advice;
};

#define TABLE (1u << 17)
static struct page table[TABLE];
static uint32_t used[TABLE], used_count;
static uint32_t mappings, values;
static int file_of_values = -1;
#define FILE_PAGES 256
static uint32_t file_values[FILE_PAGES];
static long page_limit = 6000, live_pages;

static uint64_t seed_now, state_of_random;
static uint64_t rnd(void)
{
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return state_of_random * 0x2545F4914F6CDD1Dull >> 11;
}
static size_t below(size_t n) { return rnd() % n; }

/* The last calls, for the report. */
static char history[48][160];
static unsigned history_next;
static void note(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(history[history_next++ % 48], sizeof history[0], format, list);
    va_end(list);
}
static void fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "seed %llu: ", (unsigned long long)seed_now);
    vfprintf(stderr, format, list);
    fprintf(stderr, " (errno %d)\n", errno);
    va_end(list);
    for (unsigned k = history_next > 48 ? history_next - 48 : 0; k < history_next; k++)
        fprintf(stderr, "  %s\n", history[k % 48]);
    int maps = open("/proc/self/maps", O_RDONLY);
    char buffer[4096];
    for (ssize_t n; getenv("MAPFUZZ_MAPS") && (n = read(maps, buffer, sizeof buffer)) > 0;)
        if (write(2, buffer, (size_t)n) < 0)
            break;
    _exit(1);
}

static struct page *find(uintptr_t number, bool make)
{
    for (uint32_t at = (uint32_t)(number * 2654435761u) % TABLE;; at = (at + 1) % TABLE) {
        if (table[at].number == number)
            return &table[at];
        if (table[at].number == 0) {
            if (!make)
                return NULL;
            if (used_count > TABLE / 2)
                fail("the fuzzer's table is full");
            used[used_count++] = at;
            table[at].number = number;
            return &table[at];
        }
    }
}
static struct page *at(char *address) { return find((uintptr_t)address / PAGE, false); }
static enum state state_at(char *address)
{
    struct page *page = at(address);
    return page ? page->state : NONE;
}
static char *address_of(const struct page *page) { return (char *)(page->number * PAGE); }

static bool readable(const struct page *page) { return page->prot & PROT_READ; }
static bool writable(const struct page *page) { return (page->prot & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE); }

static void check_page(const struct page *page, const char *when)
{
    if (page->state != LIVE || !readable(page))
        return;
    uint32_t *words = (uint32_t *)address_of(page);
    bool is_the_files = page->kind == FILE_SHARED || (page->kind == FILE_PRIVATE && !(page->advice & COPIED));
    uint32_t expected = is_the_files ? file_values[page->offset] : page->value;
    if (words[0] != expected || words[1023] != expected)
        fail("%s: page %p holds %u and %u instead of %u (kind %d, mapping %u)", when, (void *)words, words[0], words[1023], expected, page->kind,
             page->mapping);
}
static void check_all_pages(const char *when)
{
    for (uint32_t k = 0; k < used_count; k++)
        check_page(&table[used[k]], when);
}
static void write_page(struct page *page)
{
    if (page->state != LIVE || !writable(page))
        return;
    uint32_t *words = (uint32_t *)address_of(page);
    uint32_t value = page->kind == SHARED ? page->value : ++values; /* shared anonymous pages keep one value: others may see the same page */
    words[0] = words[1023] = value;
    page->value = value;
    if (page->kind == FILE_PRIVATE)
        page->advice |= COPIED;
    if (page->kind == FILE_SHARED)
        file_values[page->offset] = value;
}

/* A page that the program has; NULL if it has none. */
static struct page *some_page(enum state wanted)
{
    if (used_count == 0)
        return NULL;
    for (int tries = 0; tries < 64; tries++) {
        struct page *page = &table[used[below(used_count)]];
        if (page->state == wanted)
            return page;
    }
    return NULL;
}

/* How many pages from `start` on are the program's or were; at most `most`. */
static size_t known_pages(char *start, size_t most)
{
    size_t n = 0;
    while (n < most && state_at(start + n * PAGE) != NONE)
        n++;
    return n;
}
static bool any_live(char *start, size_t pages)
{
    for (size_t k = 0; k < pages; k++)
        if (state_at(start + k * PAGE) == LIVE)
            return true;
    return false;
}
static size_t live_prefix(char *start, size_t pages)
{
    size_t n = 0;
    while (n < pages && state_at(start + n * PAGE) == LIVE)
        n++;
    return n;
}

static void set_hole(char *start, size_t pages)
{
    for (size_t k = 0; k < pages; k++) {
        struct page *page = at(start + k * PAGE);
        if (page && page->state == LIVE) {
            page->state = HOLE;
            live_pages--;
        }
    }
}
static void set_live(char *start, size_t pages, int prot, enum kind kind, uint32_t offset, uint32_t mapping, bool replaced)
{
    for (size_t k = 0; k < pages; k++) {
        struct page *page = find((uintptr_t)start / PAGE + k, true);
        if (page->state == LIVE) {
            if (!replaced)
                fail("new memory at %p lies over live memory", (void *)(start + k * PAGE));
            live_pages--;
        }
        *page = (struct page){page->number, 0, offset + (uint32_t)k, mapping, LIVE, (uint8_t)kind, (uint8_t)prot, 0};
        live_pages++;
        check_page(page, "a new mapping");
    }
}

static size_t some_size(void)
{
    switch (below(8)) {
    case 0: case 1: return 1 + below(8);
    case 2: return 1100 + below(300);
    default: return 16 + below(100);
    }
}
static int some_prot(void)
{
    static const int prots[] = {PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE, PROT_READ | PROT_WRITE | PROT_EXEC};
    return prots[below(6)];
}
