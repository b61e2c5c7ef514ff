/* Threads and coroutines have small stacks: no function that a program may call needs more than 4 KiB beyond what the
 * C library's own takes, under 1 KiB where nothing is bound lazily (`-z now`). Each is called on a painted stack.
 * Where blocks are sampled (MOST says so) it may be 6 KiB. */
#include "check.h"
#include <dlfcn.h>
#include <malloc.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define STACK (64 * KIB)
#define PAINT 0x55
#ifndef MOST
#define MOST (5 * KIB)
#endif

static ucontext_t outside, inside;
static void (*called)(void);

static void enter(void)
{
    for (int i = 0; i < 3; i++)
        called();
}

/* Bytes of stack that `function` takes. */
static size_t taken(void (*function)(void))
{
    unsigned char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    CHECK(stack != MAP_FAILED);
    memset(stack, PAINT, STACK);
    called = function;
    CHECK(getcontext(&inside) == 0);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = STACK;
    inside.uc_link = &outside;
    makecontext(&inside, enter, 0);
    CHECK(swapcontext(&outside, &inside) == 0);
    size_t clean = 0;
    while (clean < STACK && stack[clean] == PAINT)
        clean++;
    CHECK(munmap(stack, STACK) == 0);
    return STACK - clean;
}

static void check(void (*function)(void))
{
    size_t bytes = taken(function);
    CHECK_OF(bytes <= MOST, bytes);
}

static void allocate(void)
{
    for (size_t bytes = 1; bytes < 32 * MIB; bytes = bytes * 3 + 1) {
        char *block = malloc(bytes);
        CHECK(block);
        block[0] = block[bytes - 1] = 1;
        CHECK((block = realloc(block, 2 * bytes)));
        free(block);
        CHECK((block = calloc(3, bytes)));
        block[bytes] = 1;
        CHECK(malloc_usable_size(block) >= 3 * bytes);
        free(block);
        void *aligned;
        CHECK(posix_memalign(&aligned, 16 * PAGE, bytes) == 0);
        free(aligned);
    }
}

static void give_back(void)
{
    char *blocks[64];
    for (int i = 0; i < 64; i++)
        memset(blocks[i] = malloc(100000), 1, 50000);
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    malloc_trim(0);
}

static void ask(void)
{
    struct mallinfo2 info = mallinfo2();
    CHECK(info.arena >= info.fordblks || info.arena == 0);
}

static void change_mappings(void)
{
    for (size_t bytes = 100000; bytes < 64 * MIB; bytes *= 5) {
        char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(at != MAP_FAILED);
        at[0] = 1;
        CHECK(madvise(at, PAGE, MADV_DONTFORK) == 0);
        CHECK(mprotect(at, PAGE, PROT_READ) == 0);
        CHECK(madvise(at, PAGE, MADV_DOFORK) == 0 && mprotect(at, PAGE, PROT_READ | PROT_WRITE) == 0);
        CHECK((at = mremap(at, bytes, 2 * bytes, MREMAP_MAYMOVE)) != MAP_FAILED);
        CHECK(mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
        CHECK(syscall(SYS_munmap, at, 2 * bytes) == 0);
    }
}

static void call_by_number(void)
{
    int bytes;
    CHECK(syscall(SYS_getpid) == getpid());
    CHECK(prctl(PR_GET_DUMPABLE) >= 0);
    ioctl(0, FIONREAD, &bytes);
    setuid(getuid());
}

static void fork_and_wait(void)
{
    pid_t child = fork();
    if (child == 0) {
        free(malloc(100000));
        _exit(0);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void allocations(void) { check(allocate); }
static void memory_given_back(void) { check(give_back); }
static void figures(void) { check(ask); }
static void mappings(void) { check(change_mappings); }
static void calls_by_number(void) { check(call_by_number); }
static void forks(void) { check(fork_and_wait); }

static const struct scenario scenarios[] = {
    {"allocations", allocations},
    {"memory_given_back", memory_given_back},
    {"figures", figures},
    {"mappings", mappings},
    {"calls_by_number", calls_by_number},
    {"forks", forks},
};

int main(int argc, char **argv)
{
    return DISPATCH(argc, argv, scenarios);
}
