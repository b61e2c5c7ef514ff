/* A fuzzer of the calls about mappings: mapfuzz FIRST COUNT [STEPS].
 *
 * For each seed a random sequence of mmap, munmap, mremap, mprotect, madvise, fork, sbrk and malloc is made, with hints, MAP_FIXED, MAP_FIXED_NOREPLACE,
 * MREMAP_FIXED, MREMAP_DONTUNMAP, files, shared memory and holes. A model knows each page that is the program's: its contents, protection and kind.
 * After every call the answer must be the one the kernel's rules give, no new memory may overlap what is there, and all contents and (from
 * /proc/self/maps) permissions must be as the model says. The same program run on the kernel alone shows that the model is the kernel's; run on
 * Vellum it shows that Vellum is. Pages that were the program's once are remembered, since those are what it may map again at a fixed place.
 *
 * A failure prints its seed and the last calls; `mapfuzz SEED 1` makes it again. No memory is taken from malloc but where the sequence says so: the
 * model must know what of the address space is the program's. */
#include "mapmodel.h"
#include <signal.h>
#include <sys/syscall.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* By the C library's name, or by number: both must lead to the same place. */
static void *do_mmap(void *start, size_t length, int prot, int flags, int fd, off_t offset)
{
    if (below(8) == 0)
        return (void *)syscall(SYS_mmap, start, length, prot, flags, fd, offset);
    return mmap(start, length, prot, flags, fd, offset);
}
static int do_munmap(void *start, size_t length)
{
    return below(8) == 0 ? (int)syscall(SYS_munmap, start, length) : munmap(start, length);
}

struct request {
    size_t pages;
    int prot, flags, fd;
    uint32_t offset;
    enum kind kind;
};
static struct request some_request(size_t pages)
{
    struct request r = {pages, some_prot(), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, ANONYMOUS};
    switch (below(10)) {
    case 0:
        r.flags = MAP_SHARED | MAP_ANONYMOUS, r.kind = SHARED;
        break;
    case 1: case 2:
        if (r.pages > FILE_PAGES / 2)
            r.pages = FILE_PAGES / 2;
        r.offset = (uint32_t)below(FILE_PAGES - r.pages), r.fd = file_of_values;
        r.flags = below(2) ? MAP_SHARED : MAP_PRIVATE;
        r.kind = r.flags == MAP_SHARED ? FILE_SHARED : FILE_PRIVATE;
        break;
    case 3:
        r.flags |= (int[]){MAP_NORESERVE, MAP_POPULATE, MAP_STACK}[below(3)];
        break;
    default:
        r.prot = PROT_READ | PROT_WRITE;
    }
    return r;
}

static void step_map(void)
{
    struct request r = some_request(some_size());
    if (live_pages + (long)r.pages > page_limit)
        return;
    void *hint = NULL;
    struct page *near = below(4) == 0 ? some_page(below(2) ? HOLE : LIVE) : NULL;
    if (near)
        hint = address_of(near);
    size_t bytes = r.pages * PAGE - (r.kind == ANONYMOUS ? below(PAGE) : 0);
    char *start = do_mmap(hint, bytes, r.prot, r.flags, r.fd, (off_t)(r.offset * PAGE));
    note("mmap(%p, %zu pages, prot %d, flags %#x, file page %u) = %p", hint, r.pages, r.prot, r.flags, r.offset, (void *)start);
    if (start == MAP_FAILED)
        fail("mmap of %zu bytes failed", bytes);
    set_live(start, r.pages, r.prot, r.kind, r.offset, ++mappings, false);
}

/* A stretch of pages that are the program's or were, some pages about a page it has or had. */
static char *some_stretch(size_t *pages)
{
    struct page *page = some_page(below(2) ? LIVE : HOLE);
    if (!page && !(page = some_page(LIVE)))
        return NULL;
    char *start = address_of(page);
    for (size_t back = below(40); back > 0 && state_at(start - PAGE) != NONE; back--)
        start -= PAGE;
    *pages = known_pages(start, 1 + below(below(4) ? 40 : 400));
    return start;
}

static void step_map_fixed(void)
{
    size_t pages;
    char *place = some_stretch(&pages);
    if (!place || live_pages + (long)pages > page_limit)
        return;
    bool replace = below(2);
    struct request r = some_request(pages);
    bool is_free = !any_live(place, r.pages);
    int flags = r.flags | (replace ? MAP_FIXED : MAP_FIXED_NOREPLACE);
    char *start = do_mmap(place, r.pages * PAGE, r.prot, flags, r.fd, (off_t)(r.offset * PAGE));
    note("mmap(%p, %zu pages, prot %d, flags %#x, file page %u) = %p, %s", (void *)place, r.pages, r.prot, flags, r.offset, (void *)start,
         is_free ? "free" : "in use");
    if (!replace && !is_free) {
        if (start != MAP_FAILED || errno != EEXIST)
            fail("MAP_FIXED_NOREPLACE over live memory gave %p", (void *)start);
        return;
    }
    if (start != place)
        fail("a mapping at %p was refused: %p", (void *)place, (void *)start);
    set_live(start, r.pages, r.prot, r.kind, r.offset, ++mappings, true);
}

/* A call that must fail and change nothing. */
static void step_map_badly(void)
{
    size_t pages;
    char *place = some_stretch(&pages);
    if (!place)
        return;
    char *start;
    switch (below(4)) {
    case 0:
        start = mmap(place + 1, pages * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        break;
    case 1:
        start = mmap(place, pages * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, 999, 0);
        break;
    case 2:
        start = mmap(place, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        break;
    default:
        start = munmap(place + 8, PAGE) == -1 ? MAP_FAILED : place;
    }
    note("a bad call at %p gave %p", (void *)place, (void *)start);
    if (start != MAP_FAILED)
        fail("a bad call succeeded");
}

static void step_unmap(void)
{
    size_t pages;
    char *start = some_stretch(&pages);
    if (!start)
        return;
    if (below(3) == 0) { /* the whole mapping that it begins in */
        struct page *page = at(start);
        for (pages = 0; state_at(start + pages * PAGE) != NONE && at(start + pages * PAGE)->mapping == page->mapping; pages++)
            ;
    }
    note("munmap(%p, %zu pages)", (void *)start, pages);
    if (do_munmap(start, pages * PAGE) != 0)
        fail("munmap failed");
    set_hole(start, pages);
}

/* The kernel may keep divided what a call has divided: the pages it names are mappings by themselves now, those of each old one one. */
static void divide(char *start, size_t pages)
{
    uint32_t before = 0;
    for (size_t k = 0; k < pages; k++) {
        struct page *page = at(start + k * PAGE);
        if (k == 0 || page->mapping != before)
            mappings++;
        before = page->mapping;
        page->mapping = mappings;
    }
}

static void step_protect(void)
{
    size_t pages;
    char *start = some_stretch(&pages);
    if (!start)
        return;
    int prot = some_prot();
    size_t good = live_prefix(start, pages);
    int got = mprotect(start, pages * PAGE, prot);
    note("mprotect(%p, %zu pages, %d) = %d, mapped %zu", (void *)start, pages, prot, got, good);
    if (got != (good == pages ? 0 : -1) || (got && errno != ENOMEM))
        fail("mprotect answered %d", got);
    for (size_t k = 0; k < good; k++)
        at(start + k * PAGE)->prot = (uint8_t)prot;
    divide(start, good);
}

static void step_advise(void)
{
    size_t pages;
    char *start = some_stretch(&pages);
    if (!start)
        return;
    static const int advices[] = {MADV_DONTNEED, MADV_DONTNEED, MADV_HUGEPAGE, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_WILLNEED, MADV_COLD, MADV_PAGEOUT,
                                  MADV_DONTFORK, MADV_DOFORK, MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_RANDOM, MADV_NORMAL, MADV_DONTDUMP, MADV_FREE};
    int advice = advices[below(sizeof advices / sizeof advices[0])];
    size_t good = live_prefix(start, pages);
    /* Calls that leave attributes alone may pass over holes in Vellum's memory without a word. */
    pages = good;
    if (pages == 0)
        return;
    for (size_t k = 0; k < pages; k++) {
        enum kind kind = at(start + k * PAGE)->kind;
        if (kind != ANONYMOUS && (advice == MADV_WIPEONFORK || advice == MADV_FREE || advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE))
            return;
    }
    int got = madvise(start, pages * PAGE, advice);
    note("madvise(%p, %zu pages, %d) = %d", (void *)start, pages, advice, got);
    if (got != 0 && !(errno == EINVAL && (advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE)))
        fail("madvise answered %d", got);
    divide(start, pages);
    for (size_t k = 0; k < pages; k++) {
        struct page *page = at(start + k * PAGE);
        switch (advice) {
        case MADV_DONTNEED:
            if (page->kind == ANONYMOUS)
                page->value = 0;
            if (page->kind == FILE_PRIVATE)
                page->advice &= (uint8_t)~COPIED;
            break;
        case MADV_FREE: /* its contents are the kernel's affair until it is written again */
            if (writable(page)) {
                write_page(page);
            } else {
                madvise(start + k * PAGE, PAGE, MADV_DONTNEED);
                page->value = 0;
            }
            break;
        case MADV_DONTFORK: page->advice |= NOT_INHERITED; break;
        case MADV_DOFORK: page->advice &= (uint8_t)~NOT_INHERITED; break;
        case MADV_WIPEONFORK: page->advice |= WIPED; break;
        case MADV_KEEPONFORK: page->advice &= (uint8_t)~WIPED; break;
        }
    }
}

/* A stretch of one mapping whose pages have everything in common. */
static char *some_uniform(size_t *pages)
{
    struct page *first = some_page(LIVE);
    if (!first)
        return NULL;
    char *start = address_of(first);
    struct page *page;
#define ALIKE(address)                                                                                                \
    ((page = at(address)) && page->state == LIVE && page->mapping == first->mapping && page->prot == first->prot && page->advice == first->advice)
    size_t most = below(2) ? 4096 : below(60);
    while (most-- > 0 && ALIKE(start - PAGE))
        start -= PAGE;
    most = below(2) ? 4096 : 1 + below(60);
    for (*pages = 1; *pages < most && ALIKE(start + *pages * PAGE); ++*pages)
        ;
    return start;
}

static struct page moved[8192];

static void step_remap(void)
{
    size_t old;
    char *start = some_uniform(&old);
    if (!start || old > 8192)
        return;
    struct page model = *at(start);
    size_t new = below(3) == 0 ? old : 1 + below(old * 2);
    if (model.kind != ANONYMOUS && new > old)
        new = old;
    int flags = (int[]){0, MREMAP_MAYMOVE, MREMAP_MAYMOVE | MREMAP_FIXED, MREMAP_MAYMOVE | MREMAP_DONTUNMAP}[below(4)];
    char *place = NULL;
    if (flags & MREMAP_FIXED) {
        size_t room;
        if (!(place = some_stretch(&room)))
            return;
        if (new > room)
            new = room;
        if (place < start + old * PAGE && start < place + new * PAGE)
            return; /* they would overlap */
    }
    if (flags & MREMAP_DONTUNMAP) {
        new = old;
        if (model.kind != ANONYMOUS)
            return;
    }
    if (live_pages + (long)new > page_limit)
        return;
    for (size_t k = 0; k < old; k++)
        moved[k] = *at(start + k * PAGE);
    char *to = mremap(start, old * PAGE, new * PAGE, flags, place);
    note("mremap(%p, %zu pages, %zu pages, flags %d, %p) = %p", (void *)start, old, new, flags, (void *)place, (void *)to);
    if (to == MAP_FAILED) {
        if (flags == 0 && new > old && errno == ENOMEM)
            return;
        fail("mremap failed");
    }
    if (place && to != place)
        fail("mremap to a fixed place went elsewhere");
    if (flags == 0 && to != start)
        fail("mremap moved what may not move");
    uint32_t mapping = ++mappings;
    if (to == start) {
        if (new < old)
            set_hole(start + new * PAGE, old - new);
    } else if (flags & MREMAP_DONTUNMAP) {
        for (size_t k = 0; k < old; k++)
            at(start + k * PAGE)->value = 0;
    } else {
        set_hole(start, old);
    }
    for (size_t k = 0; k < new; k++) {
        if (to == start && k < old) {
            at(start + k * PAGE)->mapping = mapping;
            continue;
        }
        struct page *page = find((uintptr_t)to / PAGE + k, true);
        if (page->state == LIVE) {
            if (!place)
                fail("mremap went over live memory at %p", (void *)(to + k * PAGE));
            live_pages--;
        }
        uint32_t value = k < old ? moved[k].value : 0;
        *page = (struct page){page->number, value, model.offset + (uint32_t)k, mapping, LIVE, model.kind, model.prot, model.advice};
        live_pages++;
        check_page(page, "a moved mapping");
    }
}

static void step_write(void)
{
    size_t pages;
    char *start = some_stretch(&pages);
    for (size_t k = 0; start && k < pages; k++)
        write_page(at(start + k * PAGE));
}

/* What malloc hands out may lie where something was unmapped: the program can know no more which holes are free. */
static void step_malloc(void)
{
    static char *blocks[16];
    static size_t sizes[16];
    static unsigned char fills[16];
    size_t k = below(16);
    if (blocks[k]) {
        for (size_t i = 0; i < sizes[k]; i += 509)
            if ((unsigned char)blocks[k][i] != fills[k])
                fail("block %p of %zu bytes changed at %zu", (void *)blocks[k], sizes[k], i);
        if (below(3) == 0) {
            size_t size = 1 + below(200000);
            blocks[k] = realloc(blocks[k], size);
            sizes[k] = size;
            note("realloc to %zu = %p", size, (void *)blocks[k]);
        } else {
            note("free(%p)", (void *)blocks[k]);
            free(blocks[k]);
            blocks[k] = NULL;
        }
    } else {
        sizes[k] = below(3) ? 1 + below(3000) : 1 + below(3000000);
        blocks[k] = malloc(sizes[k]);
        note("malloc(%zu) = %p", sizes[k], (void *)blocks[k]);
    }
    if (blocks[k]) {
        uintptr_t low = (uintptr_t)blocks[k] / PAGE, high = ((uintptr_t)blocks[k] + sizes[k] - 1) / PAGE;
        for (uintptr_t number = low; number <= high; number++) {
            struct page *page = find(number, false);
            if (page && page->state == LIVE)
                fail("malloc gave out live memory at %p", (void *)blocks[k]);
        }
        memset(blocks[k], fills[k] = (unsigned char)++values, sizes[k]);
    }
    for (uint32_t i = 0; i < used_count; i++)
        if (table[used[i]].state == HOLE)
            table[used[i]].state = NONE;
}

static void step_break(void)
{
    char *before = sbrk(PAGE);
    note("sbrk = %p", (void *)before);
    if (before == (char *)-1)
        return;
    memset(before, 0x5a, PAGE);
}

static void step_fork(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        fail("fork failed");
    if (child == 0) {
        for (uint32_t k = 0; k < used_count; k++) {
            struct page *page = &table[used[k]];
            if (page->state != LIVE)
                continue;
            if (page->advice & NOT_INHERITED) {
                page->state = NONE;
                continue;
            }
            if (page->advice & WIPED && page->kind == ANONYMOUS)
                page->value = 0;
            check_page(page, "in a child");
        }
        for (int k = 0; k < 12; k++) {
            struct page *page = some_page(LIVE);
            if (page && page->kind != SHARED && page->kind != FILE_SHARED)
                write_page(page);
        }
        for (int k = 0; k < 4; k++) {
            step_unmap();
            step_map();
        }
        for (uint32_t k = 0; k < used_count; k++)
            if (table[used[k]].kind != FILE_SHARED)
                check_page(&table[used[k]], "in a child, later");
        _exit(0);
    }
    int status;
    note("fork");
    if (waitpid(child, &status, 0) != child || status != 0)
        fail("a child ended with %#x", status);
}

/* Compares every live page's permissions with what the kernel says. */
static void check_permissions(void)
{
    static char text[1 << 20];
    int maps = open("/proc/self/maps", O_RDONLY);
    size_t length = 0;
    for (ssize_t n; (n = read(maps, text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)n;
    close(maps);
    text[length] = 0;
    long seen = 0;
    for (char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        unsigned long low, high;
        char permissions[5];
        if (sscanf(line, "%lx-%lx %4s", &low, &high, permissions) != 3 || high - low > 64 * GIB)
            continue;
        if (high - low > 65536 * PAGE) { /* reservations: look from the pages' side */
            for (uint32_t k = 0; k < used_count; k++) {
                struct page *page = &table[used[k]];
                if (page->state == LIVE && page->number * PAGE >= low && page->number * PAGE < high) {
                    seen++;
                    if ((permissions[0] == 'r') != !!(page->prot & PROT_READ) || (permissions[1] == 'w') != !!(page->prot & PROT_WRITE))
                        fail("page %p is %s, and should have protection %d", (void *)address_of(page), permissions, page->prot);
                }
            }
            continue;
        }
        for (uintptr_t number = low / PAGE; number < high / PAGE; number++) {
            struct page *page = find(number, false);
            if (!page || page->state != LIVE)
                continue;
            seen++;
            bool shared = page->kind == SHARED || page->kind == FILE_SHARED;
            if ((permissions[0] == 'r') != !!(page->prot & PROT_READ) || (permissions[1] == 'w') != !!(page->prot & PROT_WRITE) ||
                (permissions[2] == 'x') != !!(page->prot & PROT_EXEC) || (permissions[3] == 's') != shared)
                fail("page %p is %s, and should have protection %d and kind %d", (void *)address_of(page), permissions, page->prot, page->kind);
        }
    }
    if (seen != live_pages)
        fail("%ld pages are mapped of %ld", seen, live_pages);
}

static void clear(void)
{
    for (uint32_t k = 0; k < used_count; k++)
        if (table[used[k]].state == LIVE && munmap(address_of(&table[used[k]]), PAGE) != 0)
            fail("munmap at the end failed");
    for (uint32_t k = 0; k < used_count; k++)
        table[used[k]] = (struct page){0};
    used_count = 0;
    live_pages = 0;
}

static void on_fault_of_ours(int number, siginfo_t *info, void *context)
{
    (void)context;
    struct page *page = at((char *)((uintptr_t)info->si_addr & ~(PAGE - 1)));
    fail("signal %d at %p, which is %s", number, info->si_addr, page && page->state == LIVE ? "live" : page ? "a hole" : "not known");
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = on_fault_of_ours, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, count = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
    size_t steps = argc > 3 ? strtoul(argv[3], NULL, 10) : 60;
    file_of_values = memfd_create("values", 0);
    CHECK(file_of_values >= 0 && ftruncate(file_of_values, FILE_PAGES * PAGE) == 0);
    static void (*const kinds[])(void) = {
        step_map, step_map, step_map, step_map, step_map_fixed, step_map_fixed, step_map_fixed, step_map_badly, step_unmap, step_unmap, step_unmap,
        step_protect, step_protect, step_advise, step_advise, step_remap, step_remap, step_remap, step_remap, step_write, step_write, step_write,
    };
    for (uint64_t seed = first; seed < first + count; seed++) {
        seed_now = seed;
        state_of_random = seed * 0x9E3779B97F4A7C15ull | 1;
        history_next = 0;
        bool mallocs = seed % 3 == 0;
        for (size_t step = 0; step < steps; step++) {
            size_t rare = below(60);
            if (rare == 0)
                step_fork();
            else if (rare == 1)
                step_break();
            else if (mallocs && rare < 10)
                step_malloc();
            else
                kinds[below(sizeof kinds / sizeof kinds[0])]();
            check_all_pages("after a call");
            if (step % 20 == 19)
                check_permissions();
        }
        clear();
    }
    printf("%llu seeds from %llu: no difference\n", (unsigned long long)count, (unsigned long long)first);
    return 0;
}
