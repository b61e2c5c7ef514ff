/* The figures that must not grow from round to round of the same work, such as resident memory and open
 * files. */
#include "stress.h"
#include <dirent.h>
#include <gc_mark.h>
#include <string.h>
#include <unistd.h>

/* Growth that chance explains: parts of a hundred, and so much more. */
enum {
    PERCENT = 30,
    /* A word that happens to look like a pointer may keep some things, and the longest have 300,000 bytes. */
    LIVE_MORE = 1 << 20,
    OBJECTS_MORE = 300,
    RESIDENT_MORE = 12 << 20,
    MAPPINGS_MORE = 40,
    DESCRIPTORS_MORE = 0,
    THREADS_MORE = 2,
    NOT_FINALIZED_MORE = 60,
};

static void GC_CALLBACK add(void *object, size_t bytes, void *argument)
{
    struct figures *now = argument;
    (void)object;
    now->live_bytes += (long)bytes;
    now->objects++;
}

static void *live(void *now)
{
    GC_enumerate_reachable_objects_inner(add, now);
    return NULL;
}

static long entries(const char *path)
{
    DIR *directory = opendir(path);
    CHECK(directory);
    long count = 0;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static long lines(const char *path)
{
    FILE *file = fopen(path, "r");
    CHECK(file);
    long count = 0;
    for (int next; (next = getc(file)) != EOF;)
        count += next == '\n';
    fclose(file);
    return count;
}

struct figures figures(void)
{
    struct figures now = { 0 };
    GC_call_with_alloc_lock(live, &now);
    FILE *file = fopen("/proc/self/statm", "r");
    long all;
    CHECK(file && fscanf(file, "%ld %ld", &all, &now.resident_bytes) == 2);
    fclose(file);
    now.resident_bytes *= sysconf(_SC_PAGESIZE);
    now.mappings = lines("/proc/self/maps");
    now.descriptors = entries("/proc/self/fd");
    now.threads = entries("/proc/self/task");
    now.not_finalized = not_finalized();
    return now;
}

static void check_one(const char *name, long most, long now, long more)
{
    long bound = most + most * PERCENT / 100 + more;
    if (now > bound)
        fprintf(stderr, "%s grew from %ld to %ld, beyond %ld\n", name, most, now, bound);
    CHECK_OF(now <= bound, now);
}

void check_growth(const struct figures *most, const struct figures *now)
{
    check_one("bytes alive", most->live_bytes, now->live_bytes, LIVE_MORE);
    check_one("objects alive", most->objects, now->objects, OBJECTS_MORE);
    check_one("bytes resident", most->resident_bytes, now->resident_bytes, RESIDENT_MORE);
    check_one("mappings", most->mappings, now->mappings, MAPPINGS_MORE);
    check_one("open files", most->descriptors, now->descriptors, DESCRIPTORS_MORE);
    check_one("threads", most->threads, now->threads, THREADS_MORE);
    check_one("objects not finalized", most->not_finalized, now->not_finalized, NOT_FINALIZED_MORE);
}

void most_of(struct figures *most, const struct figures *now)
{
#define MOST(field) most->field = now->field > most->field ? now->field : most->field
    MOST(live_bytes);
    MOST(objects);
    MOST(resident_bytes);
    MOST(mappings);
    MOST(descriptors);
    MOST(threads);
    MOST(not_finalized);
}
