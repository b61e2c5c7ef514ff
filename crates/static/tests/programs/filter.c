/* Allows itself what its C library's own malloc calls, and little else, and goes on allocating. Prints "whole". */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define BLOCKS 2000

static unsigned char *blocks[BLOCKS];

static void rounds(int count)
{
    unsigned state = 1;
    while (count--) {
        for (int i = 0; i < BLOCKS; i++) {
            state = state * 1103515245 + 12345;
            size_t size = 1 + (state >> 8) % 200000;
            if (!(blocks[i] = malloc(size))) abort();
            memset(blocks[i], i & 255, size);
        }
        for (int i = 0; i < BLOCKS; i++) {
            if (*blocks[i] != (i & 255)) abort();
            free(blocks[i]);
        }
    }
}

int main(int count, char **words)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_write), ALLOW(SYS_writev), ALLOW(SYS_brk), ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_mremap),
        ALLOW(SYS_futex), ALLOW(SYS_newfstatat), ALLOW(SYS_ioctl), ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog filter = { sizeof code / sizeof *code, code };
    rounds(2);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 2;
    /* With a word, as libseccomp sets it. */
    if (count > 1 ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter)
                  : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0))
        return 3;
    rounds(12);
    (void)words;
    puts("whole");
    return 0;
}
