/* What a program sees of its big blocks when they have few frames: nothing. Scenarios by name; without one, their names. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { printf("line %d: %s: errno %d\n", __LINE__, #what, errno); exit(1); } } while (0)
/* Four times the frames that the tests give, for each of two blocks. */
#define BYTES (8u << 20)
#define WORDS (BYTES / 8)

static uint64_t mixed(uint64_t x) { x *= 0x9e3779b97f4a7c15u; return x ^ x >> 29; }
static void fill(uint64_t *block, uint64_t seed) { for (size_t i = 0; i < WORDS; i++) block[i] = mixed(i + seed); }
static void verify(const uint64_t *block, uint64_t seed) { for (size_t i = 0; i < WORDS; i++) CHECK(block[i] == mixed(i + seed)); }
/* Has every page of `block` go. */
static void evict(void) {
    uint64_t *other = malloc(BYTES);
    CHECK(other);
    fill(other, 1);
    verify(other, 1);
    free(other);
}
static int scratch(void) {
    char name[] = "/tmp/vellum-paging-XXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0 && !unlink(name));
    return file;
}

static void walk(void) {
    uint64_t *a = malloc(BYTES), *b = calloc(BYTES, 1), x = 1;
    CHECK(a && b);
    fill(a, 3);
    for (size_t i = 0; i < WORDS; i++) CHECK(!b[i]);
    verify(a, 3);
    for (int i = 0; i < 3000; i++) {
        x = mixed(x + 1);
        CHECK(a[x % WORDS] == mixed(x % WORDS + 3));
        b[x % WORDS] = x;
    }
    a = realloc(a, 2 * BYTES);
    CHECK(a);
    verify(a, 3);
    a = realloc(a, BYTES);
    verify(a, 3);
    free(a);
    free(b);
    b = calloc(2 * BYTES, 1);
    CHECK(b && !posix_memalign((void **)&a, 1 << 20, BYTES) && (uintptr_t)a % (1 << 20) == 0);
    for (size_t i = 0; i < 2 * WORDS; i++) CHECK(!b[i]);
    free(a);
    free(b);
    CHECK(!malloc((size_t)1 << 46) && errno == ENOMEM);
}

static void files(void) {
    char *a = malloc(BYTES), *b = malloc(BYTES);
    CHECK(a && b);
    int file = scratch();
    fill((uint64_t *)a, 5);
    evict();
    CHECK(write(file, a, BYTES) == BYTES);
    evict();
    CHECK(pwrite(file, a + 12345, 700000, 12345) == 700000);
    CHECK(lseek(file, 0, SEEK_SET) == 0 && read(file, b, BYTES) == BYTES);
    verify((uint64_t *)b, 5);
    memset(b, 0, BYTES);
    evict();
    CHECK(pread(file, b + 777, 3000000, 777) == 3000000 && !memcmp(b + 777, a + 777, 3000000));
    CHECK(read(file, b, 100) == 0);
    struct iovec parts[3] = {{b, 1000000}, {b + 1000000, 1}, {b + 1000001, 2000000}};
    memset(b, 0, BYTES);
    evict();
    CHECK(preadv(file, parts, 3, 0) == 3000001 && !memcmp(a, b, 3000001));
    CHECK(lseek(file, 8, SEEK_SET) == 8 && readv(file, parts, 2) == 1000001 && !memcmp(a + 8, b, 1000001));
    evict();
    CHECK(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0);
    CHECK(writev(file, parts, 3) == 3000001 && pwritev(file, parts, 1, 3000001) == 1000000);
    memset(a, 1, BYTES);
    CHECK(pread(file, a, BYTES, 0) == 4000001 && !memcmp(a, b, 3000001) && !memcmp(a + 3000001, b, 1000000));
    CHECK(read(-1, b, BYTES) == -1 && errno == EBADF && write(-1, b, BYTES) == -1 && errno == EBADF);
    int zeros = open("/dev/zero", O_RDONLY);
    evict();
    CHECK(zeros >= 0);
    for (size_t done = 0; done < BYTES;) { ssize_t got = read(zeros, b + done, BYTES - done); CHECK(got > 0); done += got; }
    for (size_t i = 0; i < BYTES; i++) CHECK(!b[i]);
}

static void streams(void) {
    char *a = malloc(BYTES), *b = malloc(BYTES);
    FILE *file = fdopen(scratch(), "w+");
    CHECK(a && b && file);
    fill((uint64_t *)a, 6);
    evict();
    CHECK(fwrite(a, 8, WORDS, file) == WORDS && !fflush(file));
    rewind(file);
    evict();
    CHECK(fread(b, 1000, BYTES / 1000, file) == BYTES / 1000 && !memcmp(a, b, BYTES / 1000 * 1000));
    CHECK(fread(b, BYTES, 2, file) == 0 && feof(file));
    rewind(file);
    CHECK(!setvbuf(file, b, _IOFBF, BYTES));
    evict();
    for (size_t i = 0; i < 100000; i++) CHECK(fgetc(file) == (unsigned char)a[i]);
    char *line = NULL;
    size_t room = 0;
    rewind(file);
    memset(a, 'x', BYTES);
    a[BYTES - 1] = '\n';
    evict();
    CHECK(fwrite_unlocked(a, 1, BYTES, file) == BYTES);
    rewind(file);
    CHECK(getline(&line, &room, file) == BYTES && !memcmp(line, a, BYTES));
    CHECK(fclose(file) == 0);
}

/* What a program drops reads as zero, whether it was in memory or in the store; what lies beside it stays. */
static void dropped(void) {
    char *a = malloc(BYTES), *start = (char *)(((uintptr_t)a + 4095) & ~4095ul);
    CHECK(a);
    size_t pages = (BYTES - (start - a)) / 4096;
    int advice[] = {MADV_DONTNEED, MADV_FREE};
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < pages; i++) memset(start + i * 4096, 1 + i % 100, 4096);
        if (round > 1) evict();
        for (size_t i = 0; i < pages; i += 3) CHECK(madvise(start + i * 4096, 4096, advice[round % 2]) == 0);
        for (size_t i = 0; i < pages; i++) {
            char expected = i % 3 ? 1 + i % 100 : 0;
            int may_stay = advice[round % 2] == MADV_FREE && i % 3 == 0;
            CHECK(start[i * 4096] == start[i * 4096 + 4095] && (start[i * 4096] == expected || (may_stay && start[i * 4096] == (char)(1 + i % 100))));
        }
    }
    CHECK(madvise(start + 1, 4096, MADV_DONTNEED) == -1 && errno == EINVAL);
    CHECK(madvise(start, BYTES / 2, MADV_HUGEPAGE) == 0);
    fill((uint64_t *)a, 8);
    evict();
    verify((uint64_t *)a, 8);
    free(a);
}

struct sender { int socket; char *from; };
static void *send_all(void *argument) {
    struct sender *sender = argument;
    CHECK(send(sender->socket, sender->from, BYTES, 0) == BYTES);
    CHECK(sendto(sender->socket, sender->from, 5000, 0, NULL, 0) == 5000);
    struct iovec parts[2] = {{sender->from, 60000}, {"end", 3}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    CHECK(sendmsg(sender->socket, &message, 0) == 60003);
    return NULL;
}
static void messages(void) {
    char *a = malloc(BYTES), *b = malloc(BYTES), end[3];
    int pair[2];
    pthread_t thread;
    CHECK(a && b && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    fill((uint64_t *)a, 7);
    evict();
    struct sender sender = {pair[0], a};
    CHECK(!pthread_create(&thread, NULL, send_all, &sender));
    CHECK(recv(pair[1], b, BYTES, MSG_WAITALL) == BYTES);
    verify((uint64_t *)b, 7);
    evict();
    CHECK(recvfrom(pair[1], b, 5000, MSG_WAITALL, NULL, NULL) == 5000 && !memcmp(a, b, 5000));
    struct iovec parts[2] = {{b + 100000, 60000}, {end, 3}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    CHECK(recvmsg(pair[1], &message, MSG_WAITALL) == 60003 && !memcmp(a, b + 100000, 60000) && !memcmp(end, "end", 3));
    CHECK(!pthread_join(thread, NULL));
    int boxes[2], size = 1 << 20;
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, boxes));
    setsockopt(boxes[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    evict();
    CHECK(send(boxes[0], a, 100000, 0) == 100000 && send(boxes[0], a + 1, 1000, 0) == 1000);
    evict();
    CHECK(recv(boxes[1], b, BYTES, 0) == 100000 && !memcmp(a, b, 100000));
    CHECK(recv(boxes[1], b, 10, MSG_TRUNC) == 1000 && !memcmp(a + 1, b, 10));
    CHECK(send(boxes[0], a, BYTES, 0) == -1 && errno == EMSGSIZE);
    int ends[2];
    CHECK(!pipe(ends) && write(ends[1], a, 4000) == 4000 && read(ends[0], b, BYTES) == 4000 && !memcmp(a, b, 4000));
}

static uint64_t *shared;
static void *own_words(void *argument) {
    uint64_t thread = (uintptr_t)argument, x = thread;
    for (int i = 0; i < 20000; i++) {
        x = mixed(x + 1);
        size_t word = x % (WORDS / 512) * 512 + thread;
        CHECK(!shared[word] || shared[word] == mixed(word));
        shared[word] = mixed(word);
    }
    return NULL;
}
static void threads(void) {
    pthread_t ids[4];
    CHECK(shared = calloc(BYTES, 1));
    for (uintptr_t i = 0; i < 4; i++) CHECK(!pthread_create(&ids[i], NULL, own_words, (void *)i));
    for (int i = 0; i < 4; i++) CHECK(!pthread_join(ids[i], NULL));
    for (size_t i = 0; i < WORDS; i++) CHECK(!shared[i] || (i % 512 < 4 && shared[i] == mixed(i)));
}

static volatile sig_atomic_t ticks;
static void tick(int signal) { (void)signal; shared[mixed(ticks) % WORDS]++; ticks++; }
static void signals(void) {
    CHECK(shared = calloc(BYTES, 1));
    struct sigaction action = {.sa_handler = tick};
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    CHECK(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &often, NULL));
    for (int i = 0; ticks < 200; i++) {
        uint64_t *other = malloc(BYTES / 4);
        CHECK(other);
        other[i % 1000] = i;
        free(other);
    }
    CHECK(!setitimer(ITIMER_REAL, &never, NULL));
    uint64_t sum = 0;
    for (size_t i = 0; i < WORDS; i++) sum += shared[i];
    CHECK(sum == (uint64_t)ticks);
}

static void forks(void) {
    uint64_t *a = malloc(BYTES);
    int status;
    CHECK(a);
    fill(a, 8);
    evict();
    for (int round = 0; round < 3; round++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            verify(a, 8);
            uint64_t *b = calloc(BYTES, 1);
            CHECK(b && !b[WORDS - 1]);
            fill(b, 9);
            a[5] = 0;
            free(a);
            b = realloc(b, 2 * BYTES);
            verify(b, 9);
            _exit(0);
        }
        a[0]++;
        a[0]--;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        verify(a, 8);
    }
    CHECK(system("true") == 0);
    char *arguments[] = {"true", NULL};
    pid_t child;
    CHECK(!posix_spawnp(&child, "true", NULL, NULL, arguments, environ) && waitpid(child, &status, 0) == child && !status);
    evict();
    verify(a, 8);
}

/* Behind the library's back: the right data, or no memory; never other data. */
static void vellum_behind_our_back(void) {
    uint64_t *a = malloc(BYTES), kept[512];
    int file = scratch(), status;
    CHECK(a);
    fill(a, 10);
    evict();
    for (size_t page = 0; page < BYTES / 4096; page++) {
        long got = syscall(SYS_pwrite64, file, a + page * 512, 4096, 0);
        CHECK(got == 4096 && pread(file, kept, 4096, 0) == 4096);
        for (size_t i = 0; i < 512; i++) CHECK(kept[i] == mixed(page * 512 + i + 10));
    }
    pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (!child) { volatile uint64_t first = a[0]; _exit(first == mixed(10) ? 0 : 1); }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    verify(a, 10);
}

static const struct { const char *name; void (*run)(void); } scenarios[] = {
    {"walk", walk}, {"dropped", dropped}, {"files", files}, {"streams", streams}, {"messages", messages}, {"threads", threads},
    {"signals", signals}, {"forks", forks}, {"vellum_behind_our_back", vellum_behind_our_back},
};

int main(int count, char **arguments) {
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (count < 2) puts(scenarios[i].name);
        else if (!strcmp(arguments[1], scenarios[i].name)) { scenarios[i].run(); puts("right"); }
    }
    return 0;
}
