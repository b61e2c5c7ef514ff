/* Every way to change who one is: when the call has returned, every thread of the process is what the caller is.
 *
 * "once_": beside a big block, which may be paged, and without other threads of the program. "race_": beside threads that allocate, so that background work
 * begins and ends at every moment; many times, each in a child. RACES in the environment says how many.
 * Without privilege only the ways are there that anybody may go. */
#include "check.h"
#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { NOBODY = 65534, WORKERS = 2, RACES = 10 };

int capset(cap_user_header_t header, const cap_user_data_t data);
int capget(cap_user_header_t header, cap_user_data_t data);

struct status {
    char text[2000];
};

/* The lines that say who a thread is; false if it has ended. */
static bool read_status(const char *thread, struct status *status)
{
    static const char *const FIELDS[] = {"Uid:",    "Gid:",    "Groups:", "NoNewPrivs:", "Seccomp:",
                                         "CapInh:", "CapPrm:", "CapEff:", "CapBnd:",     "CapAmb:"};
    char path[300], line[1000];
    snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    status->text[0] = 0;
    bool whole = false;
    while (fgets(line, sizeof line, file))
        for (size_t i = 0; i < sizeof FIELDS / sizeof FIELDS[0]; i++)
            if (strncmp(line, FIELDS[i], strlen(FIELDS[i])) == 0) {
                strncat(status->text, line, sizeof status->text - strlen(status->text) - 1);
                whole |= strcmp(FIELDS[i], "Seccomp:") == 0;
            }
    fclose(file);
    return whole;
}

static void check_every_thread(void)
{
    char own[20];
    struct status wanted, found;
    snprintf(own, sizeof own, "%ld", (long)syscall(SYS_gettid));
    CHECK(read_status(own, &wanted));
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        if (read_status(entry->d_name, &found) && strcmp(wanted.text, found.text) != 0) {
            fprintf(stderr, "thread %s is\n%sthe caller is\n%s", entry->d_name, found.text, wanted.text);
            _exit(1);
        }
    }
    closedir(tasks);
}

/* Gives up all rights but two, or, with `inheritable`, makes two of them such. */
static int change_capabilities(bool by_number, bool inheritable)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    CHECK(capget(&header, data) == 0);
    uint32_t two = 1u << CAP_CHOWN | 1u << CAP_SETUID;
    if (inheritable)
        data[0].inheritable |= two;
    else {
        memset(data, 0, sizeof data);
        data[0].effective = data[0].permitted = two;
    }
    return by_number ? (int)syscall(SYS_capset, &header, data) : capset(&header, data);
}

static gid_t two_groups[] = {4, 24};

static void by_setuid(void) { CHECK(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0); }
static void by_seteuid(void) { CHECK(setegid(NOBODY) == 0 && seteuid(NOBODY) == 0); }
static void by_setreuid(void) { CHECK(setregid(NOBODY, NOBODY) == 0 && setreuid(NOBODY, NOBODY) == 0); }
static void by_setresuid(void)
{
    CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
}
static void there_and_back(void)
{
    for (int i = 0; i < 3; i++) {
        CHECK(seteuid(NOBODY) == 0);
        check_every_thread();
        CHECK(seteuid(0) == 0);
    }
}
static void by_setgroups(void) { CHECK(setgroups(2, two_groups) == 0); }
static void by_initgroups(void) { CHECK(initgroups("nobody", 42) == 0); }
static void by_setfsuid(void)
{
    setfsgid(NOBODY);
    setfsuid(NOBODY);
    CHECK(setfsuid((uid_t)-1) == NOBODY);
}
static void by_capset(void) { CHECK(change_capabilities(false, false) == 0); }
static void by_capset_number(void) { CHECK(change_capabilities(true, false) == 0); }
static void by_setgroups_number(void) { CHECK(syscall(SYS_setgroups, 2, two_groups) == 0); }
static void by_setuid_number(void) { CHECK(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) == 0); }
static void by_bounding_set(void) { CHECK(prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) == 0); }
static void by_no_new_privs(void) { CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0); }
static void by_no_new_privs_number(void) { CHECK(syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0); }
static void by_ambient(void)
{
    CHECK(change_capabilities(false, true) == 0);
    CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) == 0);
}
static void by_securebits(void)
{
    /* Then changing the user changes no rights, of any thread. */
    CHECK(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) == 0);
    CHECK(setuid(NOBODY) == 0);
}
static void by_keepcaps(void)
{
    CHECK(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
    CHECK(setuid(NOBODY) == 0);
}
static void by_landlock(void)
{
    struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (rules < 0)
        return; /* Not on this kernel. */
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_landlock_restrict_self, rules, 0) == 0);
    close(rules);
    CHECK(open("/dev/null", O_WRONLY) == -1 && errno == EACCES);
}

struct way {
    const char *name;
    void (*run)(void);
    /* It concerns the calling thread alone: background work may have been begun by another, which keeps what it has. */
    bool alone;
    /* Anybody may. */
    bool anybody;
};

static const struct way WAYS[] = {
    {"setuid", by_setuid, false, false},
    {"seteuid", by_seteuid, false, false},
    {"setreuid", by_setreuid, false, false},
    {"setresuid", by_setresuid, false, false},
    {"there_and_back", there_and_back, false, false},
    {"setgroups", by_setgroups, false, false},
    {"initgroups", by_initgroups, false, false},
    {"setfsuid", by_setfsuid, true, false},
    {"capset", by_capset, true, false},
    {"capset_number", by_capset_number, true, false},
    {"setgroups_number", by_setgroups_number, true, false},
    {"setuid_number", by_setuid_number, true, false},
    {"bounding_set", by_bounding_set, true, false},
    {"no_new_privs", by_no_new_privs, true, true},
    {"no_new_privs_number", by_no_new_privs_number, true, true},
    {"ambient", by_ambient, true, false},
    {"securebits", by_securebits, true, false},
    {"keepcaps", by_keepcaps, true, false},
    {"landlock", by_landlock, true, true},
};

static void once(const struct way *way)
{
    enum { BIG = 24 };
    char *block = malloc(BIG * MIB);
    fill(block, BIG * MIB, 7);
    for (int i = 0; i < 2; i++) {
        char *other = malloc(10 * MIB);
        memset(other, 1, 10 * MIB);
        free(other);
    }
    way->run();
    check_every_thread();
    CHECK(is_filled(block, BIG * MIB, BIG * MIB, 7));
    fill(block, BIG * MIB, 8);
    char *other = malloc(10 * MIB);
    memset(other, 1, 10 * MIB);
    check_every_thread();
    free(other);
    CHECK(is_filled(block, BIG * MIB, BIG * MIB, 8));
    check_every_thread();
}

static volatile bool stop;

static void *work(void *argument)
{
    while (!stop)
        for (size_t i = 1; i <= 4; i++) {
            char *block = malloc(i * 2 * MIB);
            memset(block, 1, i * 2 * MIB);
            free(block);
        }
    return NULL;
}

static void race(const struct way *way)
{
    const char *asked = getenv("RACES");
    int races = asked != NULL ? atoi(asked) : RACES;
    int bad = 0;
    for (int i = 0; i < races; i++) {
        pid_t child = fork();
        if (child == 0) {
            /* A deadlock is a failure. */
            alarm(30);
            pthread_t threads[WORKERS];
            for (intptr_t worker = 0; worker < WORKERS; worker++)
                CHECK(pthread_create(&threads[worker], NULL, work, NULL) == 0);
            struct timespec moment = {0, 37 * i % 200 * 20000};
            nanosleep(&moment, NULL);
            way->run();
            check_every_thread();
            sched_yield();
            check_every_thread();
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        bad += status != 0;
    }
    CHECK_OF(bad == 0, bad);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof WAYS / sizeof WAYS[0]; i++)
        for (int racing = 0; racing < 2; racing++) {
            char name[100];
            snprintf(name, sizeof name, "%s_%s", racing ? "race" : "once", WAYS[i].name);
            if ((geteuid() != 0 && !WAYS[i].anybody) || (racing && WAYS[i].alone))
                continue;
            if (argc < 2)
                puts(name);
            else if (strcmp(argv[1], name) == 0) {
                (racing ? race : once)(&WAYS[i]);
                return 0;
            }
        }
    return argc < 2 ? 0 : 2;
}
