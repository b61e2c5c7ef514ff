/* Loads and unloads the library named by the first argument, over and over, from several threads; blocks cross over. */
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>

static const char *path;
static int flags;

static void *load(void *argument)
{
    for (long i = 0; i < (long)argument; i++) {
        void *handle = dlopen(path, flags);
        if (handle == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            _exit(1);
        }
        char *(*make)(void) = (char *(*)(void))dlsym(handle, "early_block");
        void (*release)(void *) = (void (*)(void *))dlsym(handle, "early_free");
        CHECK(make && release);
        char *theirs = make(), *ours = malloc(1000);
        CHECK(strncmp(theirs, "a word", 6) == 0);
        theirs = realloc(theirs, 5000);
        free(theirs);
        release(ours);
        release(malloc(3 * MIB));
        CHECK(dlclose(handle) == 0);
        CHECK(dlopen("/no/such/library.so", RTLD_NOW) == NULL && dlerror() != NULL);
    }
    return NULL;
}

static void repeat(int threads, long count)
{
    pthread_t ids[8];
    for (int t = 0; t < threads; t++)
        CHECK(pthread_create(&ids[t], NULL, load, (void *)count) == 0);
    for (int t = 0; t < threads; t++)
        CHECK(pthread_join(ids[t], NULL) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    path = argv[1];
    /* A library loaded "deep" finds the C library's malloc before the preloaded one. */
    bool deep = argc > 2 && strcmp(argv[2], "deep") == 0;
    flags = RTLD_NOW | (deep ? RTLD_DEEPBIND : 0);
    load((void *)50L);
    size_t before = resident_bytes();
    load((void *)100L);
    repeat(3, 30);
    CHECK(resident_bytes() <= before + 16 * MIB);
    puts("done");
    return 0;
}
