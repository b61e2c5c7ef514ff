/* Anonymous private mappings: given, used, given back in parts, protected, inherited. Contents and errors must be as the
 * kernel's. */
#include "maps.h"
#include <sys/resource.h>

static void memory_is_zero_after_reuse(void)
{
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < SIZES; i++) {
            char *one = map(sizes[i]), *two = map(sizes[i] / 2 + PAGE);
            CHECK_OF(is_zero(one, sizes[i]), sizes[i]);
            CHECK_OF(is_zero(two, sizes[i] / 2 + PAGE), sizes[i]);
            memset(one, 0xEE, sizes[i]);
            memset(two, 0xDD, sizes[i] / 2 + PAGE);
            unmap(one, sizes[i]);
            unmap(two, sizes[i] / 2 + PAGE);
            char *dirty = malloc(sizes[i]);
            memset(dirty, 0x77, sizes[i]);
            free(dirty);
        }
}

static void lengths_are_rounded_to_pages(void)
{
    for (size_t size = 64 * KIB - 2; size < 72 * KIB; size += 509) {
        size_t whole = (size + PAGE - 1) / PAGE * PAGE;
        char *start = map(size);
        memset(start, 1, whole);
        unmap(start, size);
    }
    char *start = map(MIB);
    memset(start, 1, MIB);
    unmap(start, 512 * KIB + 1);
    CHECK(start[516 * KIB] == 1 && start[MIB - 1] == 1);
    unmap(start + 516 * KIB, MIB - 516 * KIB);
}

static void parts_can_be_unmapped(void)
{
    for (size_t i = 2; i < SIZES; i++) {
        size_t size = sizes[i], third = size / 3 / PAGE * PAGE;
        char *start = map(size);
        fill(start, size, i);
        /* Middle, then head, then tail. */
        char *copy = malloc(size);
        memcpy(copy, start, size);
        unmap(start + third, third);
        CHECK_OF(memcmp(start, copy, third) == 0, size);
        CHECK_OF(memcmp(start + 2 * third, copy + 2 * third, size - 2 * third) == 0, size);
        unmap(start, third);
        CHECK_OF(memcmp(start + 2 * third, copy + 2 * third, size - 2 * third) == 0, size);
        char *other = map(third);
        CHECK(is_zero(other, third));
        memset(other, 0x99, third);
        CHECK_OF(memcmp(start + 2 * third, copy + 2 * third, size - 2 * third) == 0, size);
        unmap(start + 2 * third, size - 2 * third);
        unmap(other, third);
        free(copy);
    }
}

static void page_by_page(void)
{
    char *start = map(2 * MIB);
    fill(start, 2 * MIB, 5);
    for (size_t at = 0; at < 2 * MIB; at += 2 * PAGE)
        unmap(start + at, PAGE);
    for (size_t at = PAGE; at < 2 * MIB; at += 2 * PAGE) {
        start[at] = 1;
        unmap(start + at, PAGE);
    }
    char *again = map(2 * MIB);
    CHECK(is_zero(again, 2 * MIB));
    unmap(again, 2 * MIB);
}

/* The usual way to an aligned mapping: take too much, give the ends back. */
static void aligned_by_trimming(void)
{
    char *kept[64];
    for (int round = 0; round < 3; round++) {
        for (size_t k = 0; k < 64; k++) {
            size_t size = (1 + k % 3) * MIB, align = (size_t)2 * MIB << (k % 2);
            char *start = map(size + align);
            char *aligned = (char *)(((uintptr_t)start + align - 1) & ~(align - 1));
            if (aligned > start)
                unmap(start, (size_t)(aligned - start));
            char *end = start + size + align;
            if (aligned + size < end)
                unmap(aligned + size, (size_t)(end - (aligned + size)));
            CHECK(aligned[0] == 0 && aligned[size - 1] == 0);
            fill(aligned, size, k);
            kept[k] = aligned;
        }
        for (size_t k = 0; k < 64; k++) {
            CHECK_OF(is_filled(kept[k], (1 + k % 3) * MIB, (1 + k % 3) * MIB, k), k);
            unmap(kept[k], (1 + k % 3) * MIB);
        }
    }
}

static void two_neighbours_in_one_call(void)
{
    char *blocks[40];
    for (int i = 0; i < 40; i++)
        memset(blocks[i] = map(MIB), i, MIB);
    /* Neighbours may be given back together, by a program that knows that they are neighbours. */
    for (int i = 1; i < 40; i++)
        if (blocks[i] && blocks[i - 1] && (blocks[i] == blocks[i - 1] - MIB || blocks[i] == blocks[i - 1] + MIB)) {
            unmap(blocks[i] < blocks[i - 1] ? blocks[i] : blocks[i - 1], 2 * MIB);
            blocks[i] = blocks[i - 1] = NULL;
        }
    for (int i = 0; i < 40; i++)
        if (blocks[i]) {
            CHECK_OF(blocks[i][0] == i && blocks[i][MIB - 1] == i, i);
            unmap(blocks[i], MIB);
        }
}

static void unmapping_nothing_succeeds(void)
{
    char *start = map(MIB);
    start[0] = 1;
    unmap(start, MIB);
    /* The kernel unmaps whatever is there, were it nothing. */
    unmap(start, MIB);
    start = map(4 * MIB);
    unmap(start + MIB, MIB);
    unmap(start, 4 * MIB);
}

static void errors_are_the_kernels(void)
{
    char *start = map(MIB);
    errno = 0;
    CHECK(munmap(start + 1, MIB) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(munmap(start, 0) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(mmap(NULL, 0, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    errno = 0;
    CHECK(mmap(NULL, SIZE_MAX - PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    errno = 0;
    CHECK(mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF);
    errno = 0;
    CHECK(mremap(start, MIB, 0, 0) == MAP_FAILED && errno == EINVAL);
    errno = 0;
    CHECK(mremap(start + 1, MIB, 2 * MIB, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
    errno = 0;
    CHECK(mremap(start, MIB, MIB, MREMAP_FIXED) == MAP_FAILED && errno == EINVAL);
    errno = 0;
    CHECK(mprotect(start + 1, PAGE, PROT_READ) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(madvise(start, MIB, 12345) == -1 && errno == EINVAL);
    unmap(start, MIB);
    errno = 99;
    start = map(MIB);
    unmap(start, MIB);
    CHECK(errno == 99);
}

static void protection_holds(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        size_t size = sizes[i], half = size / 2 / PAGE * PAGE;
        if (half == 0)
            half = PAGE;
        char *start = map(size);
        fill(start, size, i);
        CHECK(mprotect(start, half, PROT_READ) == 0);
        CHECK_OF(faults(start, true) && !faults(start, false), size);
        if (half < size) {
            CHECK_OF(!faults(start + size - 1, true), size);
            CHECK(mprotect(start + half, size - half, PROT_NONE) == 0);
            CHECK_OF(faults(start + half, false), size);
            CHECK(mprotect(start + half, size - half, PROT_READ | PROT_WRITE) == 0);
        }
        CHECK_OF(is_filled(start, size, size, i), size);
        unmap(start, size);
    }
}

/* What was protected, locked or marked when it was unmapped comes back as fresh memory. */
static void attributes_end_with_the_mapping(void)
{
    /* The longest two take most of the time and are served as those before them. */
    for (size_t i = 2; i < SIZES - 2; i++) {
        size_t size = sizes[i];
        for (int what = 0; what < 6; what++) {
            char *start = map(size);
            memset(start, 0x66, size);
            switch (what) {
            case 0:
                CHECK(mprotect(start, size, PROT_NONE) == 0);
                break;
            case 1:
                CHECK(mprotect(start + PAGE, PAGE, PROT_READ) == 0);
                break;
            case 2:
                CHECK(madvise(start, size, MADV_DONTFORK) == 0);
                break;
            case 3:
                CHECK(madvise(start + PAGE, size - PAGE, MADV_WIPEONFORK) == 0);
                break;
            case 4:
                (void)mlock(start, PAGE); /* RLIMIT_MEMLOCK may forbid it. */
                break;
            case 5:
                CHECK(madvise(start, size, MADV_DONTDUMP) == 0);
                break;
            }
            unmap(start, size);
            char *again[3];
            for (int k = 0; k < 3; k++) {
                again[k] = k == 1 ? malloc(size) : map(size);
                CHECK_OF(k == 1 || is_zero(again[k], size), what);
                memset(again[k], 0x10 + k, size);
            }
            pid_t child = fork();
            if (child == 0) {
                for (int k = 0; k < 3; k++)
                    if (again[k][0] != 0x10 + k || again[k][size - 1] != 0x10 + k || again[k][PAGE] != 0x10 + k)
                        _exit(3 + k);
                _exit(0);
            }
            int status;
            CHECK(waitpid(child, &status, 0) == child);
            CHECK_OF(status == 0, what);
            unmap(again[0], size);
            free(again[1]);
            unmap(again[2], size);
        }
    }
}

static void fork_advice_holds(void)
{
    char *gone = map(MIB), *wiped = map(MIB), *kept = map(MIB);
    memset(gone, 1, MIB);
    memset(wiped, 1, MIB);
    memset(kept, 1, MIB);
    CHECK(madvise(gone, MIB, MADV_DONTFORK) == 0);
    CHECK(madvise(wiped, MIB, MADV_WIPEONFORK) == 0);
    pid_t child = fork();
    if (child == 0) {
        if (!faults(gone, false))
            _exit(2);
        if (!is_zero(wiped, MIB))
            _exit(3);
        if (kept[5] != 1)
            _exit(4);
        char *own = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (own == MAP_FAILED || !is_zero(own, MIB))
            _exit(5);
        memset(own, 1, MIB);
        void *block = malloc(2 * MIB);
        memset(block, 1, 2 * MIB);
        free(block);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_OF(status == 0, status);
    CHECK(gone[MIB - 1] == 1 && wiped[7] == 1);
    unmap(gone, MIB);
    unmap(wiped, MIB);
    unmap(kept, MIB);
}

static void copy_on_write(void)
{
    for (size_t i = 2; i < SIZES; i++) {
        size_t size = sizes[i];
        char *start = map(size);
        fill(start, size, i);
        int pipes[2];
        CHECK(pipe(pipes) == 0);
        pid_t child = fork();
        if (child == 0) {
            if (!is_filled(start, size, size, i))
                _exit(2);
            memset(start, 0x44, size);
            CHECK(munmap(start, size) == 0);
            char *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (own == MAP_FAILED || !is_zero(own, size))
                _exit(3);
            memset(own, 0x55, size);
            CHECK(write(pipes[1], "x", 1) == 1);
            _exit(0);
        }
        char byte;
        close(pipes[1]);
        CHECK(read(pipes[0], &byte, 1) == 1);
        CHECK_OF(is_filled(start, size, size, i), size);
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK_OF(is_filled(start, size, size, i), size);
        close(pipes[0]);
        unmap(start, size);
    }
}

static void shared_memory_is_shared(void)
{
    int *shared = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        shared[1000] = 42;
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0 && shared[1000] == 42);
    unmap(shared, MIB);
}

/* A virtual machine's heap: reserve much, commit and release parts. */
static void reserve_and_commit(void)
{
    size_t reserved = 4 * GIB;
    char *start = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(start != MAP_FAILED);
    for (size_t at = 0; at < 64 * MIB; at += 4 * MIB) {
        CHECK(faults(start + at, false));
        CHECK(mprotect(start + at, 2 * MIB, PROT_READ | PROT_WRITE) == 0);
        memset(start + at, 1, 2 * MIB);
    }
    for (size_t at = 0; at < 64 * MIB; at += 8 * MIB) {
        CHECK(madvise(start + at, 2 * MIB, MADV_DONTNEED) == 0);
        CHECK(start[at] == 0);
        CHECK(mprotect(start + at, 2 * MIB, PROT_NONE) == 0);
    }
    CHECK(start[4 * MIB] == 1);
    unmap(start, reserved);
}

static void other_kinds(void)
{
    int flags[] = {MAP_NORESERVE, MAP_POPULATE, MAP_STACK, MAP_NORESERVE | MAP_STACK, MAP_LOCKED, MAP_GROWSDOWN};
    for (size_t k = 0; k < sizeof flags / sizeof flags[0]; k++)
        for (size_t i = 0; i < 8; i++) {
            char *start = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags[k], -1, 0);
            if (start == MAP_FAILED && flags[k] == MAP_LOCKED)
                continue; /* RLIMIT_MEMLOCK */
            CHECK_OF(start != MAP_FAILED && is_zero(start, sizes[i]), k);
            memset(start, 1, sizes[i]);
            unmap(start, sizes[i]);
        }
    /* A hint is only that. */
    char *hint = map(MIB);
    unmap(hint, MIB);
    char *start = mmap(hint, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED && is_zero(start, MIB));
    memset(start, 1, MIB);
    unmap(start, MIB);
    /* Code. */
    unsigned char *code = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static const unsigned char answer[] = {0xB8, 42, 0, 0, 0, 0xC3};
    memcpy(code, answer, sizeof answer);
    CHECK(mprotect(code, MIB, PROT_READ | PROT_EXEC) == 0);
#ifdef __x86_64__
    CHECK(((int (*)(void))code)() == 42);
#endif
    unmap(code, MIB);
    code = (unsigned char *)map(MIB);
    code[0] = 1;
    unmap(code, MIB);
}

static void kernel_calls_on_served_memory(void)
{
    char *start = map(4 * MIB);
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    CHECK(write(pipes[1], "hello", 5) == 5 && read(pipes[0], start + MIB, 5) == 5);
    CHECK(memcmp(start + MIB, "hello", 5) == 0);
    unsigned char resident[4 * MIB / PAGE];
    CHECK(mincore(start, 4 * MIB, resident) == 0);
    CHECK(resident[MIB / PAGE] & 1);
    CHECK(msync(start, 4 * MIB, MS_SYNC) == 0);
    if (mlock(start, 32 * KIB) == 0)
        CHECK(munlock(start, 32 * KIB) == 0);
    unmap(start, 4 * MIB);
    close(pipes[0]);
    close(pipes[1]);
}

static size_t peak_bytes(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return (size_t)usage.ru_maxrss * KIB;
}

/* What one allocator has unmapped, another one in the same process maps as memory that is not served: the
 * process takes no more than the larger of the two. */
static void another_allocators_memory(void)
{
    enum { ARENAS = 200, CHUNKS = 3 };
    static char *arenas[ARENAS];
    for (size_t i = 0; i < ARENAS; i++)
        memset(arenas[i] = map(MIB), 1, MIB);
    for (size_t i = 0; i < ARENAS; i++)
        unmap(arenas[i], MIB);
    size_t peak = peak_bytes();
    for (size_t i = 0; i < CHUNKS; i++) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        char *chunk = mmap(NULL, 40 * MIB, PROT_READ | PROT_WRITE, flags, -1, 0);
        CHECK(chunk != MAP_FAILED);
        memset(chunk, 1, 40 * MIB);
    }
    CHECK(peak_bytes() <= peak + 24 * MIB);
}

static const struct scenario scenarios[] = {
    {"another_allocators_memory", another_allocators_memory},
    {"memory_is_zero_after_reuse", memory_is_zero_after_reuse},
    {"lengths_are_rounded_to_pages", lengths_are_rounded_to_pages},
    {"parts_can_be_unmapped", parts_can_be_unmapped},
    {"page_by_page", page_by_page},
    {"aligned_by_trimming", aligned_by_trimming},
    {"two_neighbours_in_one_call", two_neighbours_in_one_call},
    {"unmapping_nothing_succeeds", unmapping_nothing_succeeds},
    {"errors_are_the_kernels", errors_are_the_kernels},
    {"protection_holds", protection_holds},
    {"attributes_end_with_the_mapping", attributes_end_with_the_mapping},
    {"fork_advice_holds", fork_advice_holds},
    {"copy_on_write", copy_on_write},
    {"shared_memory_is_shared", shared_memory_is_shared},
    {"reserve_and_commit", reserve_and_commit},
    {"other_kinds", other_kinds},
    {"kernel_calls_on_served_memory", kernel_calls_on_served_memory},
};

int main(int argc, char **argv)
{
    return DISPATCH(argc, argv, scenarios);
}
