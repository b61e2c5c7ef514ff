/* A core dump of a small program with small and big blocks, in use and free: by the kernel ("abort") or by
   gdb's gcore ("gcore"), in the working folder. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

struct record {
    char name[48];
    struct record *next;
};

int main(int count, char **words)
{
    struct record *head = NULL;
    for (int i = 0; i < 1000; i++) {
        struct record *record = malloc(sizeof *record);
        snprintf(record->name, sizeof record->name, "small-%c-block", i == 0 ? 'a' : 'b');
        record->next = head;
        head = record;
    }
    char *big = malloc(6 << 20);
    memset(big, 'Z', 6 << 20);
    snprintf(big + (5 << 20), 16, "big-%c-block", 'a');
    for (int i = 0; i < 20; i++) {
        char *block = malloc(3 << 20);
        memset(block, 1, 3 << 20);
        free(block);
    }
    char *left_out = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    snprintf(left_out, 32, "left-%c-out", 'a');
    madvise(left_out, 1 << 20, MADV_DONTDUMP);
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    if (count > 1 && strcmp(words[1], "gcore") == 0) {
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
        char command[64];
        snprintf(command, sizeof command, "LD_PRELOAD= gcore -o core %d >/dev/null 2>&1", (int)getpid());
        return system(command) != 0;
    }
    getrlimit(RLIMIT_CORE, &all);
    all.rlim_cur = all.rlim_max;
    setrlimit(RLIMIT_CORE, &all);
    abort();
}
