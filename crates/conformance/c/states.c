/* States that a program gives to a mapping end with it: the next block in that memory has none of them. A state that
 * this kernel does not know, or does not allow, is not looked at. */
#include "check.h"
#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define WINDOW MIB
#define BLOCKS 8

static char *map(void)
{
    char *window = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(window != MAP_FAILED);
    return window;
}

/* Ordinary work, which leaves memory for reuse. */
static void work(void)
{
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        CHECK((blocks[i] = malloc(WINDOW)));
        memset(blocks[i], i + 1, WINDOW);
    }
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(blocks[i][WINDOW / 2] == i + 1);
        free(blocks[i]);
    }
}

static sigjmp_buf missed;

static void on_missing(int signal)
{
    (void)signal;
    siglongjmp(missed, 1);
}

/* A descriptor whose ranges answer the touch of a missing page with SIGBUS; -1 if there is none here. */
static int open_faults(void)
{
    int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* faults of user mode only */);
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS};
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0)
        return -1;
    struct sigaction action = {.sa_handler = on_missing, .sa_flags = SA_NODEFER};
    CHECK(sigaction(SIGBUS, &action, NULL) == 0);
    return faults;
}

static void watch(int faults, char *window)
{
    struct uffdio_register range = {.range = {(uintptr_t)window, WINDOW}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    CHECK(ioctl(faults, UFFDIO_REGISTER, &range) == 0);
}

static size_t missing(const char *window)
{
    volatile size_t count = 0;
    for (volatile size_t at = 0; at < WINDOW; at += PAGE)
        if (sigsetjmp(missed, 1) == 0)
            (void)*(volatile const char *)(window + at);
        else
            count++;
    return count;
}

static void pages_of_a_watched_mapping_are_missing(void)
{
    int faults = open_faults();
    if (faults < 0)
        return;
    for (int round = 0; round < 3; round++) {
        work();
        char *window = map();
        watch(faults, window);
        CHECK_OF(missing(window) == WINDOW / PAGE, missing(window));
        CHECK(munmap(window, WINDOW) == 0);
    }
}

/* The mapping is older than the descriptor. */
static void pages_of_a_mapping_watched_later_are_missing(void)
{
    work();
    char *window = map();
    window[5] = 1;
    int faults = open_faults();
    if (faults < 0)
        return;
    watch(faults, window);
    CHECK_OF(missing(window) == WINDOW / PAGE - 1, missing(window));
    CHECK(window[5] == 1);
    CHECK(munmap(window, WINDOW) == 0);
    work();
}

static void memory_is_watched_no_more_when_it_is_unmapped(void)
{
    char *window = map();
    int faults = open_faults();
    if (faults < 0)
        return;
    watch(faults, window);
    CHECK(munmap(window, WINDOW) == 0);
    work();
    CHECK(munmap(map(), WINDOW) == 0);
    work();
}

static void policies_go_with_their_mapping(void)
{
    char *window = map();
    memset(window, 1, WINDOW);
    unsigned long node = 1;
    enum { BIND = 2, OF_ADDRESS = 2 };
    if (syscall(SYS_mbind, window, WINDOW, BIND, &node, 64UL, 0UL) != 0)
        return;
    CHECK(munmap(window, WINDOW) == 0);
    for (int i = 0; i < BLOCKS; i++) {
        char *block = malloc(WINDOW);
        int policy = -1;
        CHECK(block);
        memset(block, 1, WINDOW);
        CHECK(syscall(SYS_get_mempolicy, &policy, NULL, 0UL, block, OF_ADDRESS) == 0);
        CHECK_OF(policy == 0, policy);
    }
}

static bool maps_have(const char *word)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps);
    while (fgets(line, sizeof line, maps))
        found |= strstr(line, word) != NULL;
    fclose(maps);
    return found;
}

static void names_go_with_their_mapping(void)
{
    char *window = map();
    if (prctl(0x53564d41 /* PR_SET_VMA */, 0, window, WINDOW, "of-a-window") != 0)
        return;
    CHECK(maps_have("of-a-window"));
    CHECK(munmap(window, WINDOW) == 0);
    work();
    CHECK(!maps_have("of-a-window"));
}

static void sealed_mappings_stay(void)
{
    char *window = map();
    memset(window, 7, WINDOW);
    if (syscall(462 /* mseal */, window, WINDOW, 0UL) != 0)
        return;
    CHECK(munmap(window, WINDOW) == -1 && errno == EPERM);
    CHECK(mprotect(window, PAGE, PROT_READ) == -1 && errno == EPERM);
    CHECK(mremap(window, WINDOW, 2 * WINDOW, MREMAP_MAYMOVE) == MAP_FAILED);
    work();
    for (size_t at = 0; at < WINDOW; at++)
        CHECK(window[at] == 7);
}

/* A pipe holds the pages themselves. */
static void pages_in_a_pipe_keep_their_contents(void)
{
    for (int by_number = 0; by_number < 2; by_number++) {
        int ends[2];
        work();
        char *window = map(), got[4 * PAGE];
        memset(window, 7, WINDOW);
        struct iovec part = {window, sizeof got};
        CHECK(pipe(ends) == 0);
        ssize_t given = by_number ? syscall(SYS_vmsplice, ends[1], &part, 1UL, 0U) : vmsplice(ends[1], &part, 1, 0);
        CHECK_OF(given == sizeof got, given);
        CHECK(munmap(window, WINDOW) == 0);
        work();
        CHECK(read(ends[0], got, sizeof got) == sizeof got);
        for (size_t at = 0; at < sizeof got; at++)
            CHECK_OF(got[at] == 7, at);
        close(ends[0]);
        close(ends[1]);
    }
}

/* The kernel refuses them, as it does without Vellum. */
static void bad_pointers_are_refused(void)
{
    void *bad = (void *)(uintptr_t)(PAGE + 8);
    int ends[2], faults = open_faults();
    CHECK(pipe(ends) == 0);
    if (faults >= 0)
        CHECK(ioctl(faults, UFFDIO_REGISTER, bad) == -1 && errno == EFAULT);
    CHECK(vmsplice(ends[1], bad, 1, 0) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_vmsplice, ends[1], bad, 1UL, 0U) == -1 && errno == EFAULT);
    CHECK(ioctl(ends[0], 0x4020ae46UL /* KVM_SET_USER_MEMORY_REGION */, bad) == -1 && errno == ENOTTY);
    CHECK(ioctl(ends[0], 0x3b71UL /* VFIO_IOMMU_MAP_DMA */, bad) == -1 && errno == ENOTTY);
    CHECK(syscall(SYS_mbind, bad, WINDOW, 2, bad, 64UL, 0UL) == -1);
}

static const struct scenario scenarios[] = {
    {"pages_of_a_watched_mapping_are_missing", pages_of_a_watched_mapping_are_missing},
    {"pages_of_a_mapping_watched_later_are_missing", pages_of_a_mapping_watched_later_are_missing},
    {"memory_is_watched_no_more_when_it_is_unmapped", memory_is_watched_no_more_when_it_is_unmapped},
    {"policies_go_with_their_mapping", policies_go_with_their_mapping},
    {"names_go_with_their_mapping", names_go_with_their_mapping},
    {"sealed_mappings_stay", sealed_mappings_stay},
    {"pages_in_a_pipe_keep_their_contents", pages_in_a_pipe_keep_their_contents},
    {"bad_pointers_are_refused", bad_pointers_are_refused},
};

int main(int argc, char **argv)
{
    return DISPATCH(argc, argv, scenarios);
}
