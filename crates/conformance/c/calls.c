/* System calls on blocks whose pages are out: the kernel brings them in as it does those of any file.
 *
 * Each argument lies on pages of its own in a big block, and before each call all of them are driven out of memory. The tests give the program fewer frames than `other`
 * has pages. */
#include "check.h"
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define ROOM (4 * MIB)
#define LONG 700000

static char *block, *other;
static int file;

/* The pages of argument `number`: each begins 64 bytes before the end of a page, so that most lie on two. */
static void *at(int number) { return block + (size_t)number * 4 * PAGE + PAGE - 64; }
static void out(void)
{
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < ROOM; i += PAGE)
            ((volatile char *)other)[i]++;
}

/* The call, with everything out, gives something that is so. */
#define DOES(expression)                                                                                              \
    do {                                                                                                              \
        out();                                                                                                        \
        errno = 0;                                                                                                    \
        CHECK(expression);                                                                                            \
    } while (0)

static void begin(void)
{
    char name[] = "/var/tmp/vellum-calls-XXXXXX";
    CHECK((block = malloc(ROOM)) && (other = malloc(ROOM)));
    memset(block, 0, ROOM);
    CHECK((file = mkstemp(name)) >= 0 && unlink(name) == 0);
}

static void data(void)
{
    begin();
    char *from = block + ROOM / 2, *to = block + ROOM / 4;
    struct stat *stats = at(1);
    struct iovec *parts = at(2);
    for (int i = 0; i < LONG; i++) from[i] = i * 7 + i / 1000;
    DOES(write(file, from, LONG) == LONG && lseek(file, 0, SEEK_SET) == 0);
    DOES(read(file, to, LONG) == LONG && !memcmp(from, to, LONG));
    DOES(fstat(file, stats) == 0 && stats->st_size == LONG);
    parts[0] = (struct iovec){from, 5000}, parts[1] = (struct iovec){from + 100000, 300000};
    DOES(pwritev(file, parts, 2, 100) == 305000);
    parts[0].iov_base = to, parts[1].iov_base = to + 5000;
    memset(to, 0, LONG);
    DOES(lseek(file, 100, SEEK_SET) == 100 && readv(file, parts, 2) == 305000);
    CHECK(!memcmp(to, from, 5000) && !memcmp(to + 5000, from + 100000, 300000));
    memset(to, 0, LONG);
    DOES(getrandom(to, LONG, 0) == LONG && !is_zero(to, 100) && !is_zero(to + LONG - 100, 100));
    int *ends = at(3);
    parts[0] = (struct iovec){from, 8000};
    DOES(pipe(ends) == 0 && vmsplice(ends[1], parts, 1, 0) == 8000 && read(ends[0], to, LONG) == 8000 && !memcmp(from, to, 8000));
    struct pollfd *polled = at(4);
    *polled = (struct pollfd){ends[1], POLLOUT, 0};
    DOES(poll(polled, 1, -1) == 1 && polled->revents == POLLOUT);
    CHECK(mprotect((void *)((uintptr_t)to & ~(PAGE - 1)), PAGE, PROT_READ) == 0);
    DOES(pread(file, to, 10, 0) == -1 && errno == EFAULT);
}

static void messages(void)
{
    begin();
    int *pair = at(1), got;
    struct msghdr *message = at(2);
    struct iovec *part = at(3);
    char *control = at(4), *text = at(5);
    DOES(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    *part = (struct iovec){strcpy(text, "a descriptor"), 13};
    *message = (struct msghdr){.msg_iov = part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(sizeof(int))};
    *CMSG_FIRSTHDR(message) = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(message)), &file, sizeof file);
    DOES(sendmsg(pair[0], message, 0) == 13);
    memset(control, 0, 64), memset(text, 0, 13);
    message->msg_controllen = CMSG_SPACE(sizeof(int));
    DOES(recvmsg(pair[1], message, 0) == 13 && !strcmp(text, "a descriptor"));
    CHECK(CMSG_FIRSTHDR(message));
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(message)), sizeof got);
    CHECK(got > 2 && close(got) == 0);
}

/* The stream, its buffer and what goes through it are all paged. */
static void streams(void)
{
    begin();
    char *from = block + ROOM / 2, *to = block + ROOM / 4;
    memset(from, 'x', LONG);
    FILE *stream;
    DOES((stream = fdopen(dup(file), "w+")) && setvbuf(stream, at(1), _IOFBF, 3 * PAGE) == 0);
    DOES(fwrite(from, 1, LONG, stream) == LONG && fflush(stream) == 0);
    rewind(stream);
    DOES(fgetc(stream) == 'x' && fread(to, 1, LONG, stream) == LONG - 1 && !memcmp(from, to, LONG - 1));
    rewind(stream);
    memset(from, 'y', LONG);
    from[LONG - 1] = 0;
    DOES(fputs(from, stream) >= 0 && fflush(stream) == 0);
    DOES(pread(file, to, LONG, 0) == LONG && !memcmp(from, to, LONG - 1) && to[LONG - 1] == 'x');
    CHECK(fclose(stream) == 0);
}

/* Threads wait for words in a big block, while everything goes in and out. */
static struct locks { pthread_mutex_t mutex; pthread_cond_t condition; int turn; } *locks;
static _Atomic int is_over;
static void *stir(void *argument)
{
    while (!is_over) out();
    return argument;
}
static void *take_turns(void *argument)
{
    for (int i = 0; i < 3000; i++) {
        CHECK(pthread_mutex_lock(&locks->mutex) == 0);
        while (locks->turn % 2 != (intptr_t)argument) CHECK(pthread_cond_wait(&locks->condition, &locks->mutex) == 0);
        locks->turn++;
        CHECK(pthread_cond_broadcast(&locks->condition) == 0 && pthread_mutex_unlock(&locks->mutex) == 0);
    }
    return argument;
}
static void waits(void)
{
    begin();
    int *word = (int *)((char *)at(1) + 64);
    struct timespec *limit = at(2);
    limit->tv_nsec = 1000000;
    *word = 1;
    DOES(syscall(SYS_futex, word, FUTEX_WAIT, 2, NULL) == -1 && errno == EAGAIN);
    DOES(syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 1, limit) == -1 && errno == ETIMEDOUT);
    DOES(syscall(SYS_futex, word, FUTEX_WAKE, 1) == 0);
    locks = (struct locks *)((char *)at(3) + 64);
    CHECK(pthread_mutex_init(&locks->mutex, NULL) == 0 && pthread_cond_init(&locks->condition, NULL) == 0);
    pthread_t stirrer, takers[2];
    CHECK(pthread_create(&stirrer, NULL, stir, NULL) == 0);
    for (intptr_t i = 0; i < 2; i++) CHECK(pthread_create(&takers[i], NULL, take_turns, (void *)i) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(takers[i], NULL) == 0);
    is_over = 1;
    CHECK(pthread_join(stirrer, NULL) == 0 && locks->turn == 6000);
}

/* A program is run whose path, arguments and variables are paged. */
static void processes(void)
{
    begin();
    int *status = at(1);
    char **arguments = at(2), **variables = at(3);
    pid_t child;
    arguments[0] = strcpy(at(4), "/bin/sh"), arguments[1] = strcpy(at(5), "-c"), arguments[2] = strcpy(at(6), "exit $CODE");
    variables[0] = strcpy(at(7), "CODE=7");
    DOES((child = vfork()) >= 0 && (child || (execve(arguments[0], arguments, variables), _exit(1), 1)));
    DOES(waitpid(child, status, 0) == child && WEXITSTATUS(*status) == 7);
    DOES((child = fork()) >= 0 && (child || (execve(arguments[0], arguments, variables), _exit(1), 1)));
    DOES(wait(status) == child && WEXITSTATUS(*status) == 7);
}

static const struct scenario scenarios[] = {
    {"data", data}, {"messages", messages}, {"streams", streams}, {"waits", waits}, {"processes", processes},
};

int main(int count, char **arguments) { return DISPATCH(count, arguments, scenarios); }
