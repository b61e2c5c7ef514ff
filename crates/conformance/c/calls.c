/* System calls on blocks whose pages are out. Whatever the kernel is handed lies in a big block, each argument on pages of its own, and before each call all of
 * them are pushed out of their frames. Each must do what it does on other memory.
 *
 * The tests give the program fewer frames than `other` has pages. */
#include "calls.h"
#include <aio.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <ucontext.h>
#include <utime.h>

extern char **environ;

static void paths(void)
{
    begin();
    int got;
    struct stat *stats = at(2);
    DOES((got = open(name, O_RDONLY)) >= 0 && !close(got));
    DOES((got = open64(name, O_RDONLY)) >= 0 && !close(got));
    DOES((got = openat(AT_FDCWD, name, O_RDONLY)) >= 0 && !close(got));
    DOES((got = creat(second, 0600)) >= 0 && !close(got));
    DOES(access(name, R_OK) == 0);
    DOES(faccessat(AT_FDCWD, name, R_OK, 0) == 0);
    DOES(euidaccess(name, R_OK) == 0);
    DOES(stat(name, stats) == 0 && stats->st_size == 10);
    memset(stats, 0, sizeof *stats);
    DOES(lstat(name, stats) == 0 && stats->st_size == 10);
    memset(stats, 0, sizeof *stats);
    DOES(fstat(file, stats) == 0 && stats->st_size == 10);
    memset(stats, 0, sizeof *stats);
    DOES(fstatat(AT_FDCWD, name, stats, 0) == 0 && stats->st_size == 10);
    DOES(statx(AT_FDCWD, name, 0, STATX_SIZE, at(3)) == 0 && ((struct statx *)at(3))->stx_size == 10);
    DOES(statfs(name, at(3)) == 0 && ((struct statfs *)at(3))->f_bsize > 0);
    DOES(fstatfs(file, at(4)) == 0 && ((struct statfs *)at(4))->f_bsize > 0);
    DOES(statvfs(name, at(5)) == 0 && fstatvfs(file, at(6)) == 0);
    DOES(chmod(name, 0640) == 0);
    DOES(fchmodat(AT_FDCWD, name, 0600, 0) == 0);
    DOES(chown(name, geteuid(), getegid()) == 0 && lchown(name, -1, -1) == 0);
    DOES(fchownat(AT_FDCWD, name, -1, -1, 0) == 0);
    DOES(truncate(second, 5) == 0);
    DOES(unlink(second) == 0);
    DOES(link(name, second) == 0);
    DOES(rename(second, text(3, "%s-3", here)) == 0);
    DOES(renameat(AT_FDCWD, at(3), AT_FDCWD, second) == 0);
    DOES(renameat2(AT_FDCWD, second, AT_FDCWD, at(3), 0) == 0);
    DOES(unlinkat(AT_FDCWD, at(3), 0) == 0);
    DOES(linkat(AT_FDCWD, name, AT_FDCWD, second, 0) == 0 && remove(second) == 0);
    DOES(symlink(name, second) == 0);
    DOES(readlink(second, at(4), PAGE) == (ssize_t)strlen(here) && !memcmp(at(4), here, strlen(here)));
    DOES(readlinkat(AT_FDCWD, second, at(5), PAGE) == (ssize_t)strlen(here) && !memcmp(at(5), here, strlen(here)));
    DOES(realpath(second, at(6)) == at(6) && !strcmp(at(6), here));
    DOES((name = canonicalize_file_name(second)) && !strcmp(name, here));
    name = at(0);
    DOES(unlink(second) == 0 && symlinkat(name, AT_FDCWD, second) == 0 && unlink(second) == 0);
    DOES(mkdir(second, 0700) == 0);
    DOES(chdir(second) == 0);
    DOES(getcwd(at(7), PAGE) == at(7) && !strcmp(at(7), second));
    CHECK(chdir("/") == 0);
    DIR *directory;
    DOES((directory = opendir(second)) != NULL);
    DOES(readdir(directory) != NULL && readdir64(directory) != NULL && !readdir(directory));
    CHECK(closedir(directory) == 0);
    DOES(rmdir(second) == 0);
    DOES(mkdirat(AT_FDCWD, second, 0700) == 0 && rmdir(second) == 0);
    DOES(mkfifo(second, 0600) == 0 && unlink(second) == 0);
    DOES(mknod(second, S_IFIFO | 0600, 0) == 0 && unlink(second) == 0);
    DOES(pathconf(name, _PC_NAME_MAX) > 0);
    struct timeval *times = at(8);
    times[0].tv_sec = times[1].tv_sec = 1000;
    DOES(utimes(name, times) == 0 && stat(name, stats) == 0 && stats->st_mtime == 1000);
    struct timespec *exact = at(9);
    exact[0].tv_sec = exact[1].tv_sec = 2000;
    DOES(utimensat(AT_FDCWD, name, exact, 0) == 0 && stat(name, stats) == 0 && stats->st_mtime == 2000);
    DOES(futimens(file, exact) == 0 && lutimes(name, times) == 0);
    struct utimbuf *old = at(10);
    old->modtime = 3000;
    DOES(utime(name, old) == 0 && stat(name, stats) == 0 && stats->st_mtime == 3000);
    FILE *stream;
    DOES((stream = fopen(name, text(11, "%s", "r"))) && fgetc(stream) == '0');
    DOES((stream = freopen(name, at(11), stream)) && fgetc(stream) == '0' && !fclose(stream));
    DOES((got = memfd_create(name, 0)) >= 0 && !close(got));
    DOES((got = inotify_init()) >= 0 && inotify_add_watch(got, name, IN_OPEN) >= 0 && !close(got));
    strcpy(at(12), "user.vellum");
    strcpy(at(13), "a value");
    out();
    if (setxattr(name, at(12), at(13), 8, 0) == 0) {
        DOES(getxattr(name, at(12), at(14), 100) == 8 && !strcmp(at(14), "a value"));
        DOES(fgetxattr(file, at(12), at(15), 100) == 8 && !strcmp(at(15), "a value"));
        DOES(listxattr(name, at(16), 100) > 0 && flistxattr(file, at(17), 100) > 0);
        DOES(fsetxattr(file, at(12), at(13), 4, 0) == 0 && lgetxattr(name, at(12), at(14), 100) == 4);
        DOES(removexattr(name, at(12)) == 0);
    } else
        CHECK(errno != EFAULT);
    end();
}

static void data(void)
{
    begin();
    enum { LONG = 700000 };
    char *from = block + ROOM / 2, *to = block + ROOM / 4;
    struct iovec *parts = at(2);
    memset(from, 7, LONG);
    parts[0] = (struct iovec){from, 5000}, parts[1] = (struct iovec){from + 100000, 300000};
    DOES(pwritev2(file, parts, 2, 100, 0) == 305000);
    parts[0].iov_base = to, parts[1].iov_base = to + 5000;
    memset(to, 0, 305000);
    DOES(preadv2(file, parts, 2, 100, 0) == 305000 && !memcmp(from, to, 305000));
    char few[100];
    parts[0] = (struct iovec){few, 50}, parts[1] = (struct iovec){few + 50, 50};
    DOES(preadv(file, parts, 2, 100) == 100 && !memcmp(few, from, 100));
    memset(to, 0, LONG);
    DOES(getrandom(to, LONG, 0) == LONG && !is_zero(to, 100) && !is_zero(to + LONG - 100, 100));
    memset(to, 0, 256);
    DOES(getentropy(to, 256) == 0 && !is_zero(to, 256));
    parts[0] = (struct iovec){from, 10000}, parts[1] = (struct iovec){to, 10000};
    DOES(process_vm_writev(getpid(), parts, 1, parts + 1, 1, 0) == 10000 && !memcmp(from, to, 10000));
    memset(to, 0, 10000);
    parts[0] = (struct iovec){to, 10000}, parts[1] = (struct iovec){from, 10000};
    DOES(process_vm_readv(getpid(), parts, 1, parts + 1, 1, 0) == 10000 && !memcmp(from, to, 10000));
    parts[1].iov_base = NULL;
    DOES(process_vm_readv(getpid(), parts, 1, parts + 1, 1, 0) == -1 && errno == EFAULT);
    int *ends = at(4);
    DOES(pipe(ends) == 0 && ends[0] != ends[1]);
    parts[0] = (struct iovec){from, 8000};
    DOES(vmsplice(ends[1], parts, 1, 0) == 8000);
    DOES(read(ends[0], to, LONG) == 8000 && to[0] == 7 && to[7999] == 7);
    off_t *offset = at(5), *offset_too = at(6);
    *offset = 100;
    DOES(sendfile(ends[1], file, offset, 4000) == 4000 && *offset == 4100);
    DOES(read(ends[0], to, LONG) == 4000 && to[0] == 7);
    *offset = 200;
    DOES(splice(file, offset, ends[1], NULL, 1000, 0) == 1000 && *offset == 1200);
    *offset = 0, *offset_too = 400000;
    out();
    ssize_t copied = copy_file_range(file, offset, file, offset_too, 1000, 0);
    CHECK(copied == -1 ? errno != EFAULT : *offset == copied && *offset_too == 400000 + copied);
    struct aiocb *request = at(7);
    memset(request, 0, sizeof *request);
    request->aio_fildes = file, request->aio_buf = to, request->aio_nbytes = 300000, request->aio_offset = 100;
    memset(to, 0, 300000);
    DOES(aio_read(request) == 0);
    const struct aiocb *waited[] = {request};
    CHECK(aio_suspend(waited, 1, NULL) == 0 && aio_error(request) == 0 && aio_return(request) == 300000);
    CHECK(to[0] == 7 && to[299999] == 7);
    memset(to, 9, 300000);
    DOES(aio_write(request) == 0 && aio_suspend(waited, 1, NULL) == 0 && aio_error(request) == 0 && aio_return(request) == 300000);
    memset(to, 0, 300000);
    DOES(pread(file, to, 300000, 100) == 300000 && to[0] == 9 && to[299999] == 9);
    FILE *stream = fdopen(dup(file), "r+");
    memset(to, 'x', 200000);
    to[200000] = 0;
    CHECK(stream);
    rewind(stream);
    DOES(fputs(to, stream) >= 0 && fflush(stream) == 0);
    DOES(pread(file, from, 200000, 0) == 200000 && !memcmp(to, from, 200000));
    CHECK(fclose(stream) == 0);
    DOES(mincore((void *)((uintptr_t)from & ~(PAGE - 1)), 16 * PAGE, at(8)) == 0);
    end();
}

static void descriptors(void)
{
    begin();
    int *ends = at(2), *pair = at(3), *size = at(4);
    DOES(pipe2(ends, O_NONBLOCK) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    struct pollfd *polled = at(5);
    polled[0] = (struct pollfd){ends[1], POLLOUT, 0};
    DOES(poll(polled, 1, -1) == 1 && polled[0].revents == POLLOUT);
    struct timespec *limit = at(6);
    sigset_t *mask = at(7);
    sigemptyset(mask);
    polled[0].revents = 0;
    DOES(ppoll(polled, 1, limit, mask) == 1 && polled[0].revents == POLLOUT);
    fd_set *read_set = at(8), *write_set = at(9);
    struct timeval *wait = at(10);
    FD_SET(ends[0], read_set), FD_SET(ends[1], write_set);
    DOES(select(ends[1] + 1, read_set, write_set, NULL, wait) == 1 && FD_ISSET(ends[1], write_set) && !FD_ISSET(ends[0], read_set));
    FD_SET(ends[0], read_set);
    DOES(pselect(ends[1] + 1, read_set, write_set, NULL, limit, mask) == 1 && FD_ISSET(ends[1], write_set) && !FD_ISSET(ends[0], read_set));
    struct epoll_event *event = at(11), *events = at(12);
    int poller = epoll_create1(0);
    event->events = EPOLLOUT | EPOLLET, event->data.u64 = 77;
    DOES(epoll_ctl(poller, EPOLL_CTL_ADD, pair[0], event) == 0);
    DOES(epoll_wait(poller, events, 10, -1) == 1 && events[0].data.u64 == 77);
    DOES(epoll_wait(poller, events, 10, 0) == 0);
    event->data.u64 = 78;
    DOES(epoll_ctl(poller, EPOLL_CTL_MOD, pair[0], event) == 0 && epoll_pwait(poller, events, 10, -1, mask) == 1 && events[0].data.u64 == 78);
    DOES(ioctl(ends[0], FIONREAD, size) == 0 && *size == 0);
    struct flock *lock = at(13);
    lock->l_type = F_WRLCK;
    DOES(fcntl(file, F_SETLK, lock) == 0 && fcntl(file, F_GETLK, lock) == 0 && lock->l_type == F_UNLCK);
    int counter = eventfd(3, 0);
    uint64_t *count = at(14);
    DOES(eventfd_read(counter, count) == 0 && *count == 3);
    DOES(write(counter, count, 8) == 8 && read(counter, count, 8) == 8 && *count == 3);
    struct itimerspec *timer = at(15), *before = at(16);
    int clock = timerfd_create(CLOCK_MONOTONIC, 0);
    timer->it_value.tv_sec = 1000;
    DOES(timerfd_settime(clock, 0, timer, before) == 0 && timerfd_gettime(clock, before) == 0 && before->it_value.tv_sec > 900);
    end();
}

static void sockets(void)
{
    begin();
    struct sockaddr_in *address = at(2), *whose = at(3);
    socklen_t *size = at(4);
    int *value = at(5), one = socket(AF_INET, SOCK_DGRAM, 0);
    address->sin_family = AF_INET, address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    DOES(bind(one, (void *)address, sizeof *address) == 0);
    *size = sizeof *address;
    DOES(getsockname(one, (void *)address, size) == 0 && address->sin_port != 0);
    *value = 100000;
    DOES(setsockopt(one, SOL_SOCKET, SO_RCVBUF, value, sizeof *value) == 0);
    *size = sizeof *value, *value = 0;
    DOES(getsockopt(one, SOL_SOCKET, SO_RCVBUF, value, size) == 0 && *value >= 100000);
    strcpy(at(6), "hello");
    DOES(sendto(one, at(6), 6, 0, (void *)address, sizeof *address) == 6);
    *size = sizeof *whose;
    DOES(recvfrom(one, at(7), 100, 0, (void *)whose, size) == 6 && !strcmp(at(7), "hello") && whose->sin_port == address->sin_port);
    DOES(connect(one, (void *)address, sizeof *address) == 0);
    *size = sizeof *whose;
    memset(whose, 0, sizeof *whose);
    DOES(getpeername(one, (void *)whose, size) == 0 && whose->sin_port == address->sin_port);

    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), got;
    address->sin_port = 0, *size = sizeof *address;
    DOES(bind(server, (void *)address, sizeof *address) == 0 && listen(server, 2) == 0 && getsockname(server, (void *)address, size) == 0);
    DOES(connect(client, (void *)address, sizeof *address) == 0);
    *size = sizeof *whose;
    DOES((got = accept(server, (void *)whose, size)) >= 0 && whose->sin_family == AF_INET && !close(got));
    close(client), client = socket(AF_INET, SOCK_STREAM, 0);
    DOES(connect(client, (void *)address, sizeof *address) == 0);
    *size = sizeof *whose;
    DOES((got = accept4(server, (void *)whose, size, SOCK_CLOEXEC)) >= 0 && whose->sin_family == AF_INET && !close(got));

    struct sockaddr_un *place = at(8);
    place->sun_family = AF_UNIX;
    sprintf(place->sun_path, "%s.s", here);
    int local = socket(AF_UNIX, SOCK_STREAM, 0), peer = socket(AF_UNIX, SOCK_STREAM, 0);
    DOES(bind(local, (void *)place, sizeof *place) == 0 && listen(local, 1) == 0);
    DOES(connect(peer, (void *)place, sizeof *place) == 0);
    CHECK(unlink(place->sun_path) == 0);

    int pair[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    struct msghdr *message = at(9);
    struct iovec *part = at(10);
    char *control = at(11);
    *part = (struct iovec){strcpy(at(12), "a descriptor"), 13};
    *message = (struct msghdr){.msg_iov = part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(sizeof(int))};
    *CMSG_FIRSTHDR(message) = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(message)), &file, sizeof file);
    DOES(sendmsg(pair[0], message, 0) == 13);
    memset(control, 0, 64), memset(at(12), 0, 13);
    message->msg_controllen = CMSG_SPACE(sizeof(int));
    DOES(recvmsg(pair[1], message, 0) == 13 && !strcmp(at(12), "a descriptor"));
    struct stat stats;
    CHECK(CMSG_FIRSTHDR(message));
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(message)), sizeof got);
    CHECK(got > 2 && fstat(got, &stats) == 0 && stats.st_size == 10 && close(got) == 0);

    char few[20];
    *part = (struct iovec){strcpy(few, "not paged"), 10};
    *message = (struct msghdr){.msg_iov = part, .msg_iovlen = 1, .msg_name = address, .msg_namelen = sizeof *address};
    *size = sizeof *address;
    DOES(getsockname(one, (void *)address, size) == 0 && sendmsg(one, message, 0) == 10);
    memset(few, 0, sizeof few), memset(address, 0, sizeof *address);
    DOES(recvmsg(one, message, 0) == 10 && !strcmp(few, "not paged") && address->sin_port != 0 && message->msg_namelen == sizeof *address);

    struct mmsghdr *many = at(13);
    for (int i = 0; i < 2; i++) {
        part[i] = (struct iovec){text(14 + i, "number %s", i ? "two" : "one"), 11};
        many[i].msg_hdr = (struct msghdr){.msg_iov = part + i, .msg_iovlen = 1};
    }
    DOES(sendmmsg(one, many, 2, 0) == 2 && many[1].msg_len == 11);
    memset(at(14), 0, 11), memset(at(15), 0, 11);
    struct timespec *limit = at(16);
    limit->tv_sec = 100;
    DOES(recvmmsg(one, many, 2, MSG_WAITFORONE, limit) == 2 && !strcmp(at(14), "number one") && !strcmp(at(15), "number two"));
    DOES(recvmmsg(one, many, 2, MSG_DONTWAIT, NULL) == -1 && errno == EAGAIN);
    end();
}

static void times_and_facts(void)
{
    begin();
    struct timespec *time = at(2), *rest = at(3);
    DOES(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, time) == 0 && (time->tv_sec || time->tv_nsec));
    DOES(clock_getres(CLOCK_THREAD_CPUTIME_ID, time) == 0 && time->tv_nsec > 0);
    *time = (struct timespec){0, 1000};
    DOES(nanosleep(time, rest) == 0);
    DOES(clock_nanosleep(CLOCK_MONOTONIC, 0, time, rest) == 0);
    DOES(gettimeofday(at(4), NULL) == 0 && ((struct timeval *)at(4))->tv_sec > 0);
    struct itimerval *timer = at(5), *old = at(6);
    timer->it_value.tv_sec = 1000;
    DOES(setitimer(ITIMER_VIRTUAL, timer, old) == 0 && getitimer(ITIMER_VIRTUAL, old) == 0 && old->it_value.tv_sec > 900);
    timer_t *id = at(7);
    struct sigevent *event = at(8);
    struct itimerspec *exact = at(9);
    event->sigev_notify = SIGEV_NONE, exact->it_value.tv_sec = 1000;
    DOES(timer_create(CLOCK_MONOTONIC, event, id) == 0 && timer_settime(*id, 0, exact, NULL) == 0);
    DOES(timer_gettime(*id, at(10)) == 0 && ((struct itimerspec *)at(10))->it_value.tv_sec > 900 && timer_delete(*id) == 0);
    DOES(times(at(11)) != -1);
    memset(at(12), 0, sizeof(struct timex));
    DOES(adjtimex(at(12)) >= 0 && ((struct timex *)at(12))->time.tv_sec > 0);
    DOES(uname(at(13)) == 0 && !strcmp(((struct utsname *)at(13))->sysname, "Linux"));
    DOES(getrusage(RUSAGE_SELF, at(14)) == 0 && ((struct rusage *)at(14))->ru_maxrss > 0);
    DOES(sysinfo(at(15)) == 0 && ((struct sysinfo *)at(15))->totalram > 0);
    struct rlimit *limit = at(16);
    DOES(getrlimit(RLIMIT_NOFILE, limit) == 0 && limit->rlim_cur > 0);
    DOES(setrlimit(RLIMIT_NOFILE, limit) == 0 && prlimit(0, RLIMIT_NOFILE, limit, at(17)) == 0 && ((struct rlimit *)at(17))->rlim_cur == limit->rlim_cur);
    DOES(getresuid(at(2), at(3), at(4)) == 0 && *(uid_t *)at(3) == geteuid());
    DOES(getresgid(at(2), at(3), at(4)) == 0 && *(gid_t *)at(3) == getegid());
    int groups = getgroups(0, NULL);
    DOES(getgroups(100, at(5)) == groups);
    DOES(sched_getaffinity(0, sizeof(cpu_set_t), at(6)) == 0 && CPU_COUNT((cpu_set_t *)at(6)) > 0);
    DOES(sched_setaffinity(0, sizeof(cpu_set_t), at(6)) == 0);
    DOES(pthread_getaffinity_np(pthread_self(), sizeof(cpu_set_t), at(7)) == 0 && CPU_EQUAL((cpu_set_t *)at(6), (cpu_set_t *)at(7)));
    DOES(sched_getparam(0, at(8)) == 0 && sched_setscheduler(0, SCHED_OTHER, at(8)) == 0 && sched_rr_get_interval(0, at(9)) == 0);
    DOES(prctl(PR_SET_NAME, text(10, "%s", "a name")) == 0 && prctl(PR_GET_NAME, at(11)) == 0 && !strcmp(at(11), "a name"));
    DOES(gethostname(at(12), 100) == 0);
    end();
}

static void processes(void)
{
    begin();
    int *status = at(2);
    char **arguments = at(3), **variables = at(6);
    pid_t child, *spawned = at(4);
    arguments[0] = text(5, "%s", "/bin/sh"), arguments[1] = text(7, "%s", "-c"), arguments[2] = text(8, "%s", "exit $CODE");
    variables[0] = text(9, "%s", "CODE=7");
    DOES((child = vfork()) >= 0 && (child || (execve(arguments[0], arguments, variables), _exit(1), 1)));
    DOES(waitpid(child, status, 0) == child && WEXITSTATUS(*status) == 7);
    DOES((child = fork()) >= 0 && (child || (execve(arguments[0], arguments, variables), _exit(1), 1)));
    DOES(wait(status) == child && WEXITSTATUS(*status) == 7);
    DOES(posix_spawn(spawned, arguments[0], NULL, NULL, arguments, variables) == 0);
    DOES(wait4(*spawned, status, 0, at(10)) == *spawned && WEXITSTATUS(*status) == 7 && ((struct rusage *)at(10))->ru_maxrss > 0);
    arguments[2] = text(8, "%s", "exit 9");
    for (volatile int i = 0; i < 2; i++) {
        DOES((child = vfork()) >= 0 && (child || ((i ? execvp : execv)(arguments[0], arguments), _exit(1), 1)));
        DOES(waitid(P_PID, child, at(11), WEXITED) == 0 && ((siginfo_t *)at(11))->si_status == 9);
    }
    DOES(posix_spawnp(spawned, arguments[0], NULL, NULL, arguments, environ) == 0);
    DOES(wait3(status, 0, at(10)) == *spawned && WEXITSTATUS(*status) == 9);
    DOES(waitpid(-1, status, 0) == -1 && errno == ECHILD);
    DOES((*status = system(at(8))) != -1 && WEXITSTATUS(*status) == 9);
    FILE *stream;
    DOES((stream = popen(text(9, "%s", "echo popen"), text(10, "%s", "r"))) != NULL);
    DOES(fgets(at(11), 100, stream) && !strcmp(at(11), "popen\n") && pclose(stream) == 0);
    DOES(execve(text(5, "%s", "/nonexistent"), arguments, variables) == -1 && errno == ENOENT);
    end();
}

static void handle(int signal) { (void)signal; }
static void signals(void)
{
    begin();
    sigset_t *set = at(2), *old = at(3);
    struct sigaction *action = at(4), *before = at(5);
    action->sa_handler = handle;
    sigemptyset(&action->sa_mask);
    DOES(sigaction(SIGUSR1, action, before) == 0 && before->sa_handler == SIG_DFL);
    sigemptyset(set), sigaddset(set, SIGUSR1);
    DOES(sigprocmask(SIG_BLOCK, set, old) == 0 && !sigismember(old, SIGUSR1));
    DOES(pthread_sigmask(SIG_BLOCK, set, old) == 0 && sigismember(old, SIGUSR1));
    CHECK(raise(SIGUSR1) == 0);
    DOES(sigpending(old) == 0 && sigismember(old, SIGUSR1));
    int *got = at(6);
    siginfo_t *info = at(7);
    struct timespec *limit = at(8);
    limit->tv_sec = 100;
    DOES(sigwait(set, got) == 0 && *got == SIGUSR1);
    CHECK(raise(SIGUSR1) == 0);
    DOES(sigwaitinfo(set, info) == SIGUSR1 && info->si_signo == SIGUSR1);
    CHECK(raise(SIGUSR1) == 0);
    memset(info, 0, sizeof *info);
    DOES(sigtimedwait(set, info, limit) == SIGUSR1 && info->si_signo == SIGUSR1);
    int descriptor;
    DOES((descriptor = signalfd(-1, set, 0)) >= 0);
    CHECK(raise(SIGUSR1) == 0);
    DOES(read(descriptor, at(9), 128) == 128 && ((struct signalfd_siginfo *)at(9))->ssi_signo == SIGUSR1);
    CHECK(raise(SIGUSR1) == 0);
    sigemptyset(old);
    DOES(sigsuspend(old) == -1 && errno == EINTR);
    stack_t *stack = at(10);
    stack->ss_flags = SS_DISABLE;
    DOES(sigaltstack(stack, at(11)) == 0 && sigaltstack(NULL, at(11)) == 0);
    end();
}

static void queues(void)
{
    begin();
    struct { long kind; char text[100]; } *letter = at(2);
    int queue = msgget(IPC_PRIVATE, 0600), memory = shmget(IPC_PRIVATE, PAGE, 0600), set = semget(IPC_PRIVATE, 1, 0600);
    if (queue < 0 || memory < 0 || set < 0) {
        CHECK(errno == ENOSYS || errno == ENOSPC);
        end();
        return;
    }
    letter->kind = 5, strcpy(letter->text, "a letter");
    DOES(msgsnd(queue, letter, 9, 0) == 0);
    memset(letter, 0, sizeof *letter);
    DOES(msgrcv(queue, letter, 100, 0, 0) == 9 && letter->kind == 5 && !strcmp(letter->text, "a letter"));
    DOES(msgctl(queue, IPC_STAT, at(3)) == 0 && ((struct msqid_ds *)at(3))->msg_qnum == 0 && msgctl(queue, IPC_RMID, NULL) == 0);
    DOES(shmctl(memory, IPC_STAT, at(4)) == 0 && ((struct shmid_ds *)at(4))->shm_segsz == PAGE && shmctl(memory, IPC_RMID, NULL) == 0);
    struct sembuf *operation = at(5);
    *operation = (struct sembuf){0, 3, 0};
    DOES(semop(set, operation, 1) == 0);
    operation->sem_op = -1;
    DOES(semtimedop(set, operation, 1, at(6)) == 0 && semctl(set, 0, GETVAL) == 2);
    unsigned short *values = at(7);
    DOES(semctl(set, 0, GETALL, values) == 0 && values[0] == 2 && semctl(set, 0, IPC_RMID) == 0);
    struct mq_attr *attributes = at(8);
    attributes->mq_maxmsg = 2, attributes->mq_msgsize = 100;
    mqd_t box = mq_open(text(9, "/vellum-calls-%s", here + sizeof here - 7), O_RDWR | O_CREAT, 0600, attributes);
    if (box != (mqd_t)-1) {
        DOES(mq_getattr(box, attributes) == 0 && attributes->mq_msgsize == 100);
        DOES(mq_send(box, strcpy(at(10), "posted"), 7, 3) == 0);
        DOES(mq_receive(box, at(11), 100, at(12)) == 7 && !strcmp(at(11), "posted") && *(unsigned *)at(12) == 3);
        DOES(mq_unlink(at(9)) == 0 && mq_close(box) == 0);
    } else
        CHECK(errno != EFAULT);
    end();
}

/* The same and others by their numbers. */
static void by_number(void)
{
    begin();
    int *ends = at(2), got, *word = at(3);
    struct stat *stats = at(4);
    DOES((got = syscall(SYS_openat, AT_FDCWD, name, O_RDONLY)) >= 0 && !close(got));
    DOES(syscall(SYS_newfstatat, AT_FDCWD, name, stats, 0) == 0 && stats->st_size == 10);
    DOES(syscall(SYS_pread64, file, at(5), 10, 0) == 10 && !memcmp(at(5), "0123456789", 10));
    DOES(syscall(SYS_pwrite64, file, at(5), 10, 10) == 10);
    DOES(syscall(SYS_getrandom, block + MIB, 500000, 0) == 500000 && !is_zero(block + MIB + 499900, 100));
    DOES(syscall(SYS_clock_gettime, CLOCK_REALTIME, at(6)) == 0 && ((struct timespec *)at(6))->tv_sec > 0);
    DOES(syscall(SYS_gettimeofday, at(7), NULL) == 0 && ((struct timeval *)at(7))->tv_sec > 0);
    DOES((got = syscall(SYS_open, "/", O_RDONLY)) >= 0 && syscall(SYS_getdents64, got, at(8), 8000) > 0 && !close(got));
    DOES(syscall(SYS_pipe2, ends, O_NONBLOCK) == 0 && ends[0] != ends[1]);
    DOES(syscall(SYS_getcwd, at(9), PAGE) > 0);
    DOES(syscall(SYS_getcpu, at(10), at(11), NULL) == 0);
    DOES(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, at(12), 8) == 0);
    DOES(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, at(13)) == 0 && ((struct rlimit *)at(13))->rlim_cur > 0);
    DOES(syscall(SYS_sched_getattr, 0, at(14), 48, 0) == 0 && *(uint32_t *)at(14) >= 48);
    DOES(syscall(SYS_ioctl, ends[0], FIONREAD, at(15)) == 0);
    *word = 1;
    DOES(syscall(SYS_futex, word, FUTEX_WAIT, 2, NULL) == -1 && errno == EAGAIN);
    DOES(syscall(SYS_futex, word, FUTEX_WAKE, 1) == 0);
    struct timespec *limit = at(16);
    limit->tv_nsec = 1000000;
    DOES(syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 1, limit) == -1 && errno == ETIMEDOUT);
    pid_t child = syscall(SYS_fork);
    if (!child) _exit(6);
    DOES(syscall(SYS_wait4, child, word, 0, NULL) == child && WEXITSTATUS(*word) == 6);
    DOES(syscall(SYS_openat, AT_FDCWD, 1, O_RDONLY) == -1 && errno == EFAULT);
    DOES(syscall(-1) == -1 && errno == ENOSYS);
    end();
}

/* Where the program has protected its memory the kernel may not write, and does not end the program. */
static void protected(void)
{
    begin();
    char *page = block + MIB;
    page = (char *)(((uintptr_t)page + PAGE - 1) & ~(PAGE - 1));
    CHECK(mprotect(page, PAGE, PROT_READ) == 0);
    DOES(ioctl(file, FIONREAD, page) == -1 && errno == EFAULT);
    CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
    DOES(ioctl(file, FIONREAD, page) == 0);
    end();
}

static const struct scenario scenarios[] = {
    {"paths", paths}, {"data", data}, {"descriptors", descriptors}, {"sockets", sockets}, {"times_and_facts", times_and_facts},
    {"processes", processes}, {"signals", signals}, {"queues", queues}, {"by_number", by_number}, {"protected", protected},
};

int main(int count, char **arguments) { return DISPATCH(count, arguments, scenarios); }
