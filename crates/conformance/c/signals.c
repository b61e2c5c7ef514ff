/* Handlers that allocate, where the C library's malloc would survive it: the interrupted code was not inside malloc. And how handlers are set. */
#include "check.h"
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

enum { WANTED = 300 };

static atomic_int handled;
static void *kept[64];

static void allocate(int signal)
{
    (void)signal;
    int saved = errno;
    static unsigned count;
    unsigned n = count++;
    size_t size = (size_t)(n * 7919 % (n % 16 ? 4000 : 3000000)) + 1;
    free(kept[n % 64]);
    kept[n % 64] = malloc(size);
    memset(kept[n % 64], 1, size);
    char *map = mmap(NULL, 128 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED && map[5000] == 0);
    map[5000] = 1;
    munmap(map, 128 * KIB);
    errno = saved;
    handled++;
}

static void tick(long us)
{
    struct itimerval timer = {{0, us}, {0, us}};
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void on_alarm(void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
}

static void during_system_calls(void)
{
    int pipes[2];
    char byte;
    CHECK(pipe(pipes) == 0);
    on_alarm(allocate, 0);
    tick(500);
    while (handled < WANTED) {
        struct pollfd poll_for = {pipes[0], POLLIN, 0};
        switch (handled % 3) {
        case 0:
            poll(&poll_for, 1, 1000);
            break;
        case 1:
            CHECK(read(pipes[0], &byte, 1) == -1 && errno == EINTR);
            break;
        default:
            pause();
        }
    }
    tick(0);
}

static void during_arithmetic(void)
{
    on_alarm(allocate, SA_RESTART);
    tick(500);
    volatile uint64_t state = 1;
    while (handled < WANTED)
        state = state * 6364136223846793005u + 1;
    tick(0);
}

static void on_a_small_stack_of_its_own(void)
{
    static char stack[16 * 1024];
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    CHECK(sigaltstack(&own, NULL) == 0);
    on_alarm(allocate, SA_ONSTACK);
    tick(500);
    while (handled < WANTED)
        pause();
    tick(0);
}

static sigjmp_buf back;

static void allocate_and_leave(int signal)
{
    allocate(signal);
    siglongjmp(back, 1);
}

static void left_by_a_jump(void)
{
    on_alarm(allocate_and_leave, 0);
    sigsetjmp(back, 1);
    if (handled < WANTED) {
        tick(500);
        for (;;)
            pause();
    }
    tick(0);
    for (int i = 0; i < 1000; i++)
        free(malloc((size_t)i * 100));
}

static __thread void *own;

static void allocate_in_thread(int signal)
{
    (void)signal;
    free(own);
    own = malloc(1000);
    memset(own, 1, 1000);
    free(malloc(100000));
    handled++;
}

static atomic_bool stop;

static void *asleep(void *argument)
{
    (void)argument;
    while (!stop)
        nap_ms(1000);
    /* The handler frees it as well. */
    sigset_t wake;
    CHECK(sigemptyset(&wake) == 0 && sigaddset(&wake, SIGUSR1) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &wake, NULL) == 0);
    free(own);
    return NULL;
}

static void in_sleeping_threads(void)
{
    pthread_t threads[4];
    struct sigaction action = {.sa_handler = allocate_in_thread};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int t = 0; t < 4; t++)
        CHECK(pthread_create(&threads[t], NULL, asleep, NULL) == 0);
    /* The threads have never allocated before; the main thread allocates all the time. */
    int sent = 0;
    while (handled < WANTED) {
        if (sent - handled < 8)
            CHECK(pthread_kill(threads[sent++ % 4], SIGUSR1) == 0);
        free(malloc((size_t)(sent % 5000)));
    }
    stop = true;
    for (int t = 0; t < 4; t++) {
        pthread_kill(threads[t], SIGUSR1);
        CHECK(pthread_join(threads[t], NULL) == 0);
    }
}

static void forks(int signal)
{
    allocate(signal);
    pid_t child = fork();
    if (child == 0) {
        free(malloc(100));
        free(malloc(MIB));
        _exit(0);
    }
    int status, saved = errno;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    errno = saved;
}

static void a_handler_forks(void)
{
    on_alarm(forks, 0);
    tick(3000);
    while (handled < 50)
        pause();
    tick(0);
}

static void nothing(int signal)
{
    (void)signal;
}

/* All that the C library tells of an action; of a set it knows 64 signals. */
static void show(const char *how, int signal, const void *before)
{
    struct sigaction told;
    memset(&told, 0x55, sizeof told);
    errno = 0;
    int status = sigaction(signal, NULL, &told);
    printf("%s %d: before %s, errno %d; now %d %s, flags %x, restorer %d, mask", how, signal,
           before == (void *)nothing ? "nothing" : before == (void *)SIG_ERR ? "error" : before ? "ignored" : "default", errno, status,
           told.sa_handler == nothing ? "nothing" : told.sa_handler ? "other" : "default", (unsigned)told.sa_flags,
           told.sa_flags & 0x04000000 && told.sa_restorer ? 1 : 0); /* SA_RESTORER */
    for (size_t i = 0; i < sizeof(uint64_t); i++)
        printf(" %02x", ((unsigned char *)&told.sa_mask)[i]);
    puts("");
}

extern void (*__sysv_signal(int, void (*)(int)))(int);
extern void (*bsd_signal(int, void (*)(int)))(int);

static void as_they_are_set(void)
{
    const int signals[] = {SIGSEGV, SIGBUS, SIGUSR1, SIGKILL, SIGRTMIN, 0, -1, 65, 33};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        int number = signals[i];
        show("untouched", number, NULL);
        show("signal", number, (void *)signal(number, nothing));
        show("error", number, (void *)signal(number, SIG_ERR));
        show("bsd_signal", number, (void *)bsd_signal(number, SIG_IGN));
        show("ssignal", number, (void *)ssignal(number, nothing));
        show("sysv_signal", number, (void *)sysv_signal(number, SIG_DFL));
        show("__sysv_signal", number, (void *)__sysv_signal(number, nothing));
        struct sigaction action = {.sa_handler = nothing, .sa_flags = (int)(SA_ONSTACK | SA_RESETHAND | 0x20000000)}, told;
        memset(&told, 0x55, sizeof told);
        sigfillset(&action.sa_mask);
        errno = 0;
        int status = sigaction(number, &action, &told);
        show("sigaction", number, (void *)told.sa_handler);
        printf("%d\n", status);
    }
    static char stack[64 * 1024];
    stack_t set = {.ss_sp = stack, .ss_size = sizeof stack}, told = {0}, small = {.ss_sp = stack, .ss_size = 1};
    errno = 0;
    int status = sigaltstack(&set, &told);
    printf("%d, errno %d: %d %zu\n", status, errno, told.ss_flags, told.ss_size);
    status = sigaltstack(&small, &told);
    printf("%d, errno %d: %zu\n", status, errno, told.ss_size);
    status = sigaltstack((stack_t *)1, NULL);
    printf("%d, errno %d\n", status, errno);
    status = sigaltstack(NULL, &told);
    printf("%d: %d %d\n", status, told.ss_flags, told.ss_sp == stack);
}

static const struct scenario scenarios[] = {
    {"as_they_are_set", as_they_are_set},
    {"during_system_calls", during_system_calls},
    {"during_arithmetic", during_arithmetic},
    {"on_a_small_stack_of_its_own", on_a_small_stack_of_its_own},
    {"left_by_a_jump", left_by_a_jump},
    {"in_sleeping_threads", in_sleeping_threads},
    {"a_handler_forks", a_handler_forks},
};

int main(int argc, char **argv)
{
    return DISPATCH(argc, argv, scenarios);
}
