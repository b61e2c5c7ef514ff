/* Anonymous private mappings, and everything a program may do to them. Contents and errors must be as the kernel's. */
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>

static char *map(size_t size)
{
    char *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_OF(start != MAP_FAILED, size);
    return start;
}

static void unmap(void *start, size_t size)
{
    CHECK_OF(munmap(start, size) == 0, size);
}

static const size_t sizes[] = {4 * KIB,   20 * KIB,  64 * KIB,  68 * KIB,   256 * KIB,          MIB,
                               2 * MIB,   3 * MIB,   8 * MIB,   32 * MIB,   64 * MIB + 12 * KIB, 130 * MIB};
#define SIZES (sizeof sizes / sizeof sizes[0])

static sigjmp_buf back;

static void on_fault(int signal)
{
    siglongjmp(back, signal);
}

/* Whether touching `at` is refused by the kernel. */
static bool faults(volatile char *at, bool write)
{
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER}, old[2];
    sigaction(SIGSEGV, &action, &old[0]);
    sigaction(SIGBUS, &action, &old[1]);
    bool refused = true;
    if (sigsetjmp(back, 1) == 0) {
        if (write)
            *at = *at;
        else
            (void)*at;
        refused = false;
    }
    sigaction(SIGSEGV, &old[0], NULL);
    sigaction(SIGBUS, &old[1], NULL);
    return refused;
}

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
    /* Neighbours may be given back together, by whoever knows that they are neighbours. */
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
    for (size_t i = 2; i < SIZES; i++) {
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

static void remapping(void)
{
    for (size_t i = 0; i < SIZES - 1; i++) {
        size_t size = sizes[i], big = (size * 3 / 2 + PAGE) / PAGE * PAGE;
        char *start = map(size);
        fill(start, size, i);
        char *grown = mremap(start, size, big, MREMAP_MAYMOVE);
        CHECK_OF(grown != MAP_FAILED, size);
        CHECK_OF(is_filled(grown, size, size, i), size);
        CHECK_OF(is_zero(grown + size, big - size), size);
        memset(grown + size, 0xAB, big - size);
        char *less = mremap(grown, big, size, 0);
        CHECK_OF(less == grown && is_filled(less, size, size, i), size);
        /* What was cut off and comes back is zero. */
        grown = mremap(less, size, big, MREMAP_MAYMOVE);
        CHECK_OF(grown != MAP_FAILED && is_zero(grown + size, big - size), size);
        CHECK_OF(is_filled(grown, size, size, i), size);
        /* In place or not at all. */
        char *stayed = mremap(grown, big, big + MIB, 0);
        CHECK_OF(stayed == grown || (stayed == MAP_FAILED && errno == ENOMEM), size);
        if (stayed == grown) {
            CHECK_OF(is_zero(grown + big, MIB), size);
            unmap(grown + big, MIB);
        }
        CHECK_OF(is_filled(grown, size, size, i), size);
        unmap(grown, big);
    }
}

static void remapping_in_steps(void)
{
    char *one = map(64 * KIB), *two = map(64 * KIB);
    size_t size = 64 * KIB;
    while (size < 48 * MIB) {
        size_t next = size + size / 2 / PAGE * PAGE;
        one[size - 1] = 1;
        two[size - 1] = 2;
        one = mremap(one, size, next, MREMAP_MAYMOVE);
        two = mremap(two, size, next, MREMAP_MAYMOVE);
        CHECK(one != MAP_FAILED && two != MAP_FAILED);
        CHECK_OF(one[size - 1] == 1 && two[size - 1] == 2, size);
        CHECK_OF(is_zero(one + size, next - size) && is_zero(two + size, next - size), size);
        memset(one + size, 3, next - size);
        memset(two + size, 4, next - size);
        size = next;
    }
    unmap(one, size);
    unmap(two, size);
}

static void remapping_parts_and_to_places(void)
{
    size_t size = 6 * MIB;
    char *start = map(size), *place = map(size);
    fill(start, size, 1);
    char *copy = malloc(size);
    memcpy(copy, start, size);
    /* The middle third leaves for a place of our choice. */
    char *moved = mremap(start + 2 * MIB, 2 * MIB, 2 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, place + 2 * MIB);
    CHECK(moved == place + 2 * MIB);
    CHECK(memcmp(moved, copy + 2 * MIB, 2 * MIB) == 0);
    CHECK(memcmp(start, copy, 2 * MIB) == 0 && memcmp(start + 4 * MIB, copy + 4 * MIB, 2 * MIB) == 0);
    CHECK(is_zero(place, 2 * MIB) && is_zero(place + 4 * MIB, 2 * MIB));
    /* The rest is given back in three calls, the hole among them. */
    unmap(start, 2 * MIB);
    unmap(start + 4 * MIB, 2 * MIB);
    unmap(place, size);
    for (int i = 0; i < 8; i++) {
        char *again = map(size);
        CHECK_OF(is_zero(again, size), i);
        memset(again, 1, size);
        if (i % 2)
            unmap(again, size);
    }
    /* A part grows away from its mapping. */
    start = map(4 * MIB);
    memcpy(start, copy, 4 * MIB);
    moved = mremap(start + MIB, MIB, 2 * MIB, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED && memcmp(moved, copy + MIB, MIB) == 0 && is_zero(moved + MIB, MIB));
    CHECK(memcmp(start, copy, MIB) == 0 && memcmp(start + 2 * MIB, copy + 2 * MIB, 2 * MIB) == 0);
    unmap(moved, 2 * MIB);
    unmap(start, MIB);
    unmap(start + 2 * MIB, 2 * MIB);
    /* The old place stays mapped, and reads zero, if asked. */
#ifdef MREMAP_DONTUNMAP
    start = map(2 * MIB);
    memcpy(start, copy, 2 * MIB);
    moved = mremap(start, 2 * MIB, 2 * MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
    if (moved != MAP_FAILED) {
        CHECK(memcmp(moved, copy, 2 * MIB) == 0);
        CHECK(is_zero(start, 2 * MIB));
        memset(start, 9, 2 * MIB);
        CHECK(memcmp(moved, copy, 2 * MIB) == 0);
        unmap(start, 2 * MIB);
        unmap(moved, 2 * MIB);
    } else
        unmap(start, 2 * MIB);
#endif
    free(copy);
    for (int i = 0; i < 8; i++) {
        char *block = malloc(3 * MIB), *again = map(2 * MIB);
        memset(block, 0xFF, 3 * MIB);
        CHECK_OF(is_zero(again, 2 * MIB), i);
        memset(again, 0xFF, 2 * MIB);
        free(block);
        unmap(again, 2 * MIB);
    }
}

static void mapping_over(void)
{
    char name[] = "/tmp/vellum-mapping-XXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0 && unlink(name) == 0 && ftruncate(file, (off_t)MIB) == 0);
    CHECK(pwrite(file, "from the file", 13, 0) == 13);
    for (size_t i = 5; i < SIZES; i++) {
        size_t size = sizes[i], part = size / 4 / PAGE * PAGE;
        char *start = map(size);
        fill(start, size, i);
        char *copy = malloc(size);
        memcpy(copy, start, size);
        size_t file_part = part > MIB ? MIB : part;
        CHECK(mmap(start + part, file_part, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == start + part);
        CHECK(memcmp(start + part, "from the file", 14) == 0);
        CHECK_OF(faults(start + part, true), size);
        CHECK(mmap(start + 2 * part, part, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              start + 2 * part);
        CHECK_OF(faults(start + 2 * part, false), size);
        CHECK(mmap(start + 3 * part, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              start + 3 * part);
        CHECK(is_zero(start + 3 * part, PAGE));
        CHECK_OF(memcmp(start, copy, part) == 0, size);
        CHECK_OF(memcmp(start + 3 * part + PAGE, copy + 3 * part + PAGE, size - 3 * part - PAGE) == 0, size);
        /* Fresh memory over one's own mapping: the old way to clear it. */
        CHECK(mmap(start, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == start);
        CHECK_OF(is_zero(start, part), size);
        unmap(start, size);
        free(copy);
        for (int k = 0; k < 2; k++) {
            char *again = map(size), *block = malloc(size);
            CHECK_OF(is_zero(again, size), size);
            memset(again, 1, size);
            memset(block, 2, size);
            CHECK_OF(!faults(again, true) && again[size / 2] == 1 && block[size / 2] == 2, size);
            free(block);
            unmap(again, size);
        }
    }
    char text[14] = {0};
    CHECK(pread(file, text, 13, 0) == 13 && strcmp(text, "from the file") == 0);
    close(file);
}

static void advice(void)
{
    for (size_t i = 2; i < SIZES; i++) {
        size_t size = sizes[i], half = size / 2 / PAGE * PAGE;
        char *start = map(size);
        fill(start, size, i);
        char *copy = malloc(size);
        memcpy(copy, start, size);
        CHECK(madvise(start, half, MADV_DONTNEED) == 0);
        CHECK_OF(is_zero(start, half), size);
        CHECK_OF(memcmp(start + half, copy + half, size - half) == 0, size);
        memcpy(start, copy, half);
        int others[] = {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE, 20, 21};
        for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
            (void)madvise(start, size, others[k]); /* Not every kernel has each of them. */
        CHECK_OF(memcmp(start, copy, size) == 0, size);
        /* Lazily freed: each page is as it was, or zero; what is written afterwards stays. */
        CHECK(madvise(start, size, MADV_FREE) == 0);
        for (size_t at = 0; at < size; at += PAGE)
            CHECK_OF(memcmp(start + at, copy + at, PAGE) == 0 || is_zero(start + at, PAGE), at);
        memset(start, 0x31, size);
        CHECK_OF(start[0] == 0x31 && start[size - 1] == 0x31, size);
        unmap(start, size);
        start = map(size);
        CHECK_OF(is_zero(start, size), size);
        unmap(start, size);
        free(copy);
    }
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

/* Many small changes at random against a plain model: one byte a page. */
static void random_operations(void)
{
    enum { SLOTS = 24, STEPS = 1500 };
    const char *given = getenv("VELLUM_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 1, state = seeded(seed);
    struct {
        char *start;
        size_t pages;
        unsigned char *model;
    } slots[SLOTS] = {{0}};
    for (int step = 0; step < STEPS; step++) {
        int s = (int)(next_random(&state) % SLOTS);
        char *start = slots[s].start;
        size_t pages = slots[s].pages;
        unsigned char *model = slots[s].model;
        for (size_t p = 0; p < pages; p++)
            CHECK_OF((unsigned char)start[p * PAGE + 8] == model[p], step);
        size_t from = pages ? next_random(&state) % pages : 0, count = pages ? 1 + next_random(&state) % (pages - from) : 0;
        switch (start == NULL ? 0 : next_random(&state) % 8) {
        case 0:
            if (start) {
                unmap(start, pages * PAGE);
                free(model);
            }
            slots[s].pages = 1 + next_random(&state) % (next_random(&state) % 8 ? 100 : 2000);
            slots[s].start = map(slots[s].pages * PAGE);
            slots[s].model = calloc(slots[s].pages, 1);
            break;
        case 1: /* less */
            CHECK_OF(mremap(start, pages * PAGE, count * PAGE, 0) == start, step);
            slots[s].pages = count;
            break;
        case 2: { /* more */
            size_t more = pages + 1 + next_random(&state) % 200;
            char *to = mremap(start, pages * PAGE, more * PAGE, MREMAP_MAYMOVE);
            if (to == MAP_FAILED) {
                /* What was mapped over in part may be several mappings to the kernel, which grows only one. */
                CHECK_OF(errno == EFAULT, step);
                break;
            }
            slots[s].start = to;
            slots[s].pages = more;
            slots[s].model = realloc(model, more);
            memset(slots[s].model + pages, 0, more - pages);
            break;
        }
        case 3: /* the head goes */
            if (count < pages) {
                unmap(start, count * PAGE);
                slots[s].start += count * PAGE;
                slots[s].pages -= count;
                memmove(model, model + count, pages - count);
            }
            break;
        case 4: /* zero a part */
            CHECK(madvise(start + from * PAGE, count * PAGE, MADV_DONTNEED) == 0);
            memset(model + from, 0, count);
            break;
        case 5: /* protect and unprotect a part */
            CHECK(mprotect(start + from * PAGE, count * PAGE, PROT_READ) == 0);
            CHECK(mprotect(start + from * PAGE, count * PAGE, PROT_READ | PROT_WRITE) == 0);
            break;
        case 6: /* over itself */
            CHECK(mmap(start + from * PAGE, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                       -1, 0) == start + from * PAGE);
            memset(model + from, 0, count);
            break;
        default:
            for (size_t p = from; p < from + count; p++)
                start[p * PAGE + 8] = (char)(model[p] = (unsigned char)next_random(&state));
        }
        if (next_random(&state) % 4 == 0) {
            size_t size = random_size(&state, 4 * MIB);
            char *block = malloc(size);
            memset(block, 0xEF, size);
            free(block);
        }
    }
}

static const struct scenario scenarios[] = {
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
    {"remapping", remapping},
    {"remapping_in_steps", remapping_in_steps},
    {"remapping_parts_and_to_places", remapping_parts_and_to_places},
    {"mapping_over", mapping_over},
    {"advice", advice},
    {"copy_on_write", copy_on_write},
    {"shared_memory_is_shared", shared_memory_is_shared},
    {"reserve_and_commit", reserve_and_commit},
    {"other_kinds", other_kinds},
    {"kernel_calls_on_served_memory", kernel_calls_on_served_memory},
    {"random_operations", random_operations},
};

int main(int argc, char **argv)
{
    return DISPATCH(argc, argv, scenarios);
}
