/* Programs that change who they are: no thread of the process may keep what the program has given up. Root's to try. */
#include "check.h"
#include <dirent.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>

static void use_memory(void)
{
    /* Large frees are what background work begins with. */
    for (int i = 0; i < 10; i++) {
        char *block = malloc(20 * MIB);
        memset(block, 1, 20 * MIB);
        free(block);
    }
}

/* Checks that in every thread the line of `status` that begins with `field` says `wanted` and nothing else. */
static void every_thread_says(const char *field, const char *wanted)
{
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        char path[300], line[300];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            continue; /* It has ended since. */
        while (fgets(line, sizeof line, file))
            if (strncmp(line, field, strlen(field)) == 0 && strcmp(line + strlen(field), wanted) != 0) {
                fprintf(stderr, "thread %s has %s", entry->d_name, line);
                _exit(1);
            }
        fclose(file);
    }
    closedir(tasks);
}

static void *idle(void *argument)
{
    nap_ms(200000);
    return argument;
}

static void giving_up_root(void)
{
    if (geteuid() != 0)
        return;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, idle, NULL) == 0);
    use_memory();
    CHECK(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
    every_thread_says("Uid:", "\t65534\t65534\t65534\t65534\n");
    every_thread_says("Gid:", "\t65534\t65534\t65534\t65534\n");
    use_memory();
    every_thread_says("Uid:", "\t65534\t65534\t65534\t65534\n");
    CHECK(setuid(0) == -1 && errno == EPERM);
    exit(0);
}

static void for_a_while(void)
{
    if (geteuid() != 0)
        return;
    use_memory();
    CHECK(setegid(65534) == 0 && seteuid(65534) == 0);
    use_memory();
    every_thread_says("Uid:", "\t0\t65534\t0\t65534\n");
    CHECK(seteuid(0) == 0 && setegid(0) == 0);
    CHECK(setresuid(65534, 65534, 65534) == 0);
    every_thread_says("Uid:", "\t65534\t65534\t65534\t65534\n");
}

static void another_namespace(void)
{
    use_memory();
    /* Refused to a process with two threads, and in many containers anyway: then by the same word. */
    errno = 0;
    int made = unshare(CLONE_NEWUSER);
    printf("%d %d\n", made, made ? errno : 0);
    use_memory();
}

static const struct scenario scenarios[] = {
    {"giving_up_root", giving_up_root},
    {"for_a_while", for_a_while},
    {"another_namespace", another_namespace},
};

int main(int argc, char **argv)
{
    return DISPATCH(argc, argv, scenarios);
}
