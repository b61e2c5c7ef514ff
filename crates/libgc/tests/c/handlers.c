/* A test of a program that handles SIGSEGV and repeatedly sets its handler, while collections detect writes by the same signal
 * (GC_ENABLE_INCREMENTAL=1 and VELLUM_MASK=track). Its handlers are called for its own faults only, with its flags, and it reads back its own settings. */
#define _GNU_SOURCE
#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS
#include "check.h"
#include <errno.h>
#include <gc.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { LENGTH = 40, LISTS = 3000, ROUNDS = 400, ALTSTACK = 64 << 10, DEEP = 24 << 10 };
#include "lists.h"

extern void (*__sysv_signal(int, void (*)(int)))(int);

/* ---- The program's work: writes to old objects all over the heap. ---- */
static struct cell **table;

static void work(long round)
{
    for (long i = 0; i < LISTS; i += 7) {
        long which = (i + round) % LISTS;
        if (i % 70 == 0)
            table[which] = list_of(which);
        for (struct cell *cell = table[which]; cell; cell = cell->next)
            *(volatile long *)&cell->number = cell->number;
    }
    check(table[round % LISTS], round % LISTS);
}

static volatile int ends;

static void *writes(void *argument)
{
    while (!ends)
        for (long i = 0; i < LISTS && !ends; i++)
            for (struct cell *cell = table[i]; cell; cell = cell->next)
                *(struct cell *volatile *)&cell->next = cell->next;
    return argument;
}

/* ---- The program's handlers. ---- */
static sigjmp_buf back;
static volatile int handled;
static void *volatile address;
static char *volatile frame;
static sigset_t mask;

static void note(void)
{
    char here;
    frame = &here;
    handled++;
    sigprocmask(SIG_SETMASK, NULL, &mask);
}

static void plain(int signal)
{
    CHECK(signal == SIGSEGV);
    note();
    siglongjmp(back, 1);
}

static void jumps(int signal, siginfo_t *info, void *context)
{
    CHECK(context != NULL);
    address = info->si_addr;
    plain(signal);
}

/* Continues after the faulting instruction: movb $1 to the target of a register, three bytes long. */
static void goes_on(int signal, siginfo_t *info, void *context)
{
    CHECK(signal == SIGSEGV);
    address = info->si_addr;
    note();
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 3;
}

static void repairs(int signal, siginfo_t *info, void *context)
{
    CHECK(signal == SIGSEGV && context != NULL);
    address = info->si_addr;
    note();
    CHECK(mprotect((void *)((size_t)info->si_addr & ~(size_t)4095), 4096, PROT_READ | PROT_WRITE) == 0);
}

static void write_to(void *where)
{
    __asm__ volatile("movb $1, (%0)" : : "a"(where) : "memory");
}

/* Writes to an unmapped address: the handler is called once, and the thread's signal mask does not change. */
static void fault(char *where)
{
    sigset_t before, after;
    int once = handled + 1;
    sigprocmask(SIG_SETMASK, NULL, &before);
    address = NULL;
    if (sigsetjmp(back, 1) == 0)
        write_to(where);
    CHECK(handled == once);
    sigprocmask(SIG_SETMASK, NULL, &after);
    CHECK(sigismember(&after, SIGSEGV) == sigismember(&before, SIGSEGV) && sigismember(&after, SIGUSR1) == 0);
}

/* ---- Actions: sigaction returns the last action set. ---- */
static struct sigaction last;
enum { OF_THE_LIBRARY = 0x04000000 /* SA_RESTORER */ };

static void is_last(const struct sigaction *told)
{
    CHECK(told->sa_handler == last.sa_handler && (told->sa_flags & ~OF_THE_LIBRARY) == last.sa_flags);
    for (int signal = 1; signal < 32; signal++)
        CHECK(sigismember(&told->sa_mask, signal) == sigismember(&last.sa_mask, signal));
}

static void set(void (*handler)(int), void (*with_info)(int, siginfo_t *, void *), int flags, int blocked)
{
    struct sigaction action, told;
    memset(&action, 0, sizeof action);
    memset(&told, 0, sizeof told);
    action.sa_flags = flags;
    if (with_info)
        action.sa_sigaction = with_info, action.sa_flags |= SA_SIGINFO;
    else
        action.sa_handler = handler;
    if (blocked)
        sigaddset(&action.sa_mask, blocked);
    CHECK(sigaction(SIGSEGV, &action, &told) == 0);
    is_last(&told);
    last = action;
    memset(&told, 0, sizeof told);
    CHECK(sigaction(SIGSEGV, NULL, &told) == 0);
    is_last(&told);
}

static void set_by(void (*(*function)(int, void (*)(int)))(int), void (*handler)(int), int flags, int blocked)
{
    CHECK(function(SIGSEGV, handler) == last.sa_handler);
    memset(&last, 0, sizeof last);
    last.sa_handler = handler;
    last.sa_flags = flags;
    if (blocked)
        sigaddset(&last.sa_mask, blocked);
    struct sigaction told;
    memset(&told, 0, sizeof told);
    CHECK(sigaction(SIGSEGV, NULL, &told) == 0);
    is_last(&told);
}

static int status_of(pid_t child)
{
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

/* ---- The ways to handle the signal, one per round. ---- */
static char altstack[ALTSTACK];
static char *page;

static void by_sigaction(void)
{
    set(NULL, jumps, 0, SIGUSR1);
    fault((char *)8);
    CHECK(address == (void *)8 && sigismember(&mask, SIGSEGV) == 1 && sigismember(&mask, SIGUSR1) == 1);
    fault(page + 100);
    CHECK(address == page + 100);
}

static void by_signal(void)
{
    set_by(signal, plain, SA_RESTART, SIGSEGV);
    fault((char *)16);
    fault((char *)16);
    CHECK(signal(SIGSEGV, SIG_ERR) == SIG_ERR && errno == EINVAL);
}

static void once(void)
{
    set_by(__sysv_signal, plain, (int)(SA_RESETHAND | SA_NODEFER), 0);
    fault((char *)16);
    CHECK(sigismember(&mask, SIGSEGV) == 0);
    last.sa_handler = SIG_DFL;
    set(NULL, jumps, SA_NODEFER, SIGUSR1);
    fault((char *)24);
    CHECK(sigismember(&mask, SIGSEGV) == 0 && sigismember(&mask, SIGUSR1) == 1);
}

static void and_return(void)
{
    set(NULL, goes_on, SA_RESTART, 0);
    fault((char *)32);
    CHECK(address == (void *)32);
    set(NULL, repairs, 0, 0);
    CHECK(mprotect(page, 4096, PROT_READ) == 0);
    fault(page);
    CHECK(address == page && *page == 1 && mprotect(page, 4096, PROT_NONE) == 0);
}

static void on_a_stack(void)
{
    set(NULL, jumps, SA_ONSTACK, 0);
    fault((char *)40);
    CHECK(frame >= altstack && frame < altstack + ALTSTACK);
    set(NULL, jumps, 0, 0);
    fault((char *)40);
    CHECK(frame < altstack || frame >= altstack + ALTSTACK);
}

static void by_nobody(void)
{
    set(SIG_IGN, NULL, 0, 0);
    CHECK(raise(SIGSEGV) == 0);
    set(SIG_DFL, NULL, 0, 0);
    pid_t child = fork();
    if (child == 0) {
        work(1);
        write_to((char *)48);
        _exit(0);
    }
    int status = status_of(child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void in_children(void)
{
    set(NULL, jumps, 0, 0);
    pid_t child = fork();
    if (child == 0) {
        fault((char *)56);
        set(NULL, goes_on, 0, 0);
        work(2);
        fault((char *)56);
        _exit(7);
    }
    int status = status_of(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    /* A child of vfork has its parent's memory, but separate actions. */
    child = vfork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(8);
    }
    status = status_of(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 8);
    fault((char *)64);
    CHECK(address == (void *)64);
}

static void (*const ways[])(void) = { by_sigaction, by_signal, once, and_return, on_a_stack, by_nobody, in_children };
enum { WAYS = sizeof ways / sizeof *ways };

static void run_handlers(void)
{
    stack_t stack = { .ss_sp = altstack, .ss_size = ALTSTACK };
    CHECK(sigaltstack(&stack, NULL) == 0);
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && sigaction(SIGSEGV, NULL, &last) == 0);
    last.sa_flags &= ~OF_THE_LIBRARY;
    for (long round = 0; round < ROUNDS; round++) {
        work(round);
        /* Forks are slow. */
        ways[round % (round % 50 < WAYS ? WAYS : WAYS - 2)]();
    }
    for (long i = 0; i < LISTS; i++)
        check(table[i], i);
}

/* ---- An alternate stack that stays set after its function has returned: later calls use the same memory. ---- */
static __attribute__((noinline)) void leave_a_stack(void)
{
    char spent[ALTSTACK];
    stack_t stack = { .ss_sp = spent, .ss_size = sizeof spent };
    CHECK(sigaltstack(&stack, NULL) == 0);
    __asm__ volatile("" : : "r"(spent) : "memory");
}

static __attribute__((noinline)) void go_deep(int depth, long round)
{
    unsigned char here[DEEP];
    memset(here, depth, sizeof here);
    __asm__ volatile("" : : "r"(here) : "memory");
    if (depth > 0)
        go_deep(depth - 1, round);
    else
        work(round);
    for (size_t i = 0; i < sizeof here; i++)
        CHECK(here[i] == depth);
}

static void run_spent_stack(void)
{
    set(NULL, jumps, SA_ONSTACK, 0);
    leave_a_stack();
    for (long round = 0; round < 50; round++)
        go_deep(2 * ALTSTACK / DEEP, round);
    fault((char *)72);
    CHECK(address == (void *)72);
}

int main(void)
{
    GC_INIT();
    GC_allow_register_threads();
    table = GC_MALLOC(LISTS * sizeof *table);
    for (long i = 0; i < LISTS; i++)
        table[i] = list_of(i);
    pthread_t thread;
    CHECK(GC_pthread_create(&thread, NULL, writes, NULL) == 0);
    run_handlers();
    ends = 1;
    CHECK(GC_pthread_join(thread, NULL) == 0);
    run_spent_stack();
    printf("handlers: as promised\n");
    return 0;
}
