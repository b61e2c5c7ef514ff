/* A program that forbids itself most system calls and then uses memory. The filter allows what the C library's malloc
 * needs in one thread (brk, mmap, munmap) and what the program needs, and kills at anything else. */
#include "check.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const int allowed[] = {
    SYS_brk, SYS_mmap, SYS_munmap, SYS_futex, SYS_write, SYS_exit, SYS_exit_group, SYS_rt_sigreturn,
};

enum { ALLOWED = sizeof allowed / sizeof allowed[0] };

static void forbid(bool through_syscall, bool answer_with_error)
{
    /* The C library's malloc asks for a random number when it is first used. */
    free(malloc(1));
    struct sock_filter code[ALLOWED + 3];
    int at = 0;
    code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < ALLOWED; i++)
        code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed[i],
                                                  (uint8_t)(ALLOWED - i), 0);
    code[at++] = (struct sock_filter)BPF_STMT(
        BPF_RET | BPF_K, answer_with_error ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)at, code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (through_syscall)
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
    else
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

static void say(const char *text)
{
    CHECK(write(1, text, strlen(text)) == (ssize_t)strlen(text));
}

static void use_memory(void)
{
    enum { SMALL = 100000, LARGE = 100 };
    static void *blocks[SMALL];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SMALL; i++)
            memset(blocks[i] = malloc(1000), i, 1000);
        for (int i = 0; i < SMALL; i++)
            free(blocks[i]);
        for (size_t i = 0; i < LARGE; i++)
            memset(blocks[i] = malloc(MIB + i * PAGE), (int)i, MIB);
        for (int i = 0; i < LARGE; i++)
            free(blocks[i]);
        for (int i = 0; i < 10; i++) {
            char *block = calloc(1, 10 * MIB);
            CHECK(is_zero(block, 10 * MIB));
            memset(block, 1, 10 * MIB);
            free(block);
            char *map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            CHECK(map != MAP_FAILED && is_zero(map, MIB));
            memset(map, 1, MIB);
            CHECK(munmap(map, MIB) == 0);
        }
    }
    say("still here\n");
}

static void kills_by_prctl(void)
{
    forbid(false, false);
    use_memory();
}

static void kills_by_syscall(void)
{
    forbid(true, false);
    use_memory();
}

static void kills_after_use(void)
{
    /* Memory was in use before: there is a cache, and perhaps a helper. */
    for (int i = 0; i < 20; i++) {
        void *block = malloc(20 * MIB);
        memset(block, 1, 20 * MIB);
        free(block);
    }
    forbid(false, false);
    use_memory();
}

static void refuses_by_prctl(void)
{
    forbid(false, true);
    use_memory();
}

static void refuses_after_use(void)
{
    for (int i = 0; i < 20; i++) {
        void *block = malloc(20 * MIB);
        memset(block, 1, 20 * MIB);
        free(block);
    }
    forbid(true, true);
    use_memory();
}

static const struct scenario scenarios[] = {
    {"kills_by_prctl", kills_by_prctl},     {"kills_by_syscall", kills_by_syscall},
    {"kills_after_use", kills_after_use},   {"refuses_by_prctl", refuses_by_prctl},
    {"refuses_after_use", refuses_after_use},
};

int main(int argc, char **argv)
{
    return DISPATCH(argc, argv, scenarios);
}
