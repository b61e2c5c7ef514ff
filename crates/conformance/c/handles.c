// Memory functions that are looked up by a handle of the C library, or after a library: what one of them
// gives, any other takes. With -DLIBRARY the library that looks up.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef LIBRARY
void *next_of(const char *name) { return dlsym(RTLD_NEXT, name); }
#else
void *next_of(const char *name);
typedef void *look_up_fn(const char *name);
static void *handle;

static void *of_handle(const char *name) { return dlsym(handle, name); }
static void *of_version(const char *name)
{
    void *found = dlvsym(handle, name, "GLIBC_2.2.5");
    return found ? found : dlvsym(handle, name, "GLIBC_2.17");
}
static void *of_all(const char *name) { return dlsym(RTLD_DEFAULT, name); }
static void *of_next(const char *name) { return dlsym(RTLD_NEXT, name); }
static void *of_program(const char *name) { return dlsym(dlopen(NULL, RTLD_NOW), name); }
static look_up_fn *of_plugin;

static void check(const char *what, look_up_fn *look_up)
{
    void (*give)(void *) = look_up("free");
    void *(*get)(size_t) = look_up("malloc"), *(*zeroed)(size_t, size_t) = look_up("calloc");
    void *(*resize)(void *, size_t) = look_up("realloc");
    void *(*map)(void *, size_t, int, int, int, long) = look_up("mmap");
    int (*unmap)(void *, size_t) = look_up("munmap");
    size_t (*usable)(void *) = look_up("malloc_usable_size");
    char *text = NULL;
    for (int i = 1; i < 3000; i += 97) {
        asprintf(&text, "%0*d", i, 5);
        give(text);
        give(strdup("text"));
        give(realpath("/proc/..", NULL));
        give(malloc(i * 200));
        free(get(i * 200));
        free(zeroed(i, 200));
        free(resize(strndup("text", 3), i * 200));
        give(realloc(get(i), i * 200));
        text = get(i);
        if (usable(text) < i)
            puts("too short");
        free(text);
        char *memory = mmap(NULL, i << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memory[0] = 1;
        if (unmap(memory, i << 12))
            puts("still mapped");
    }
    printf("%s\n", what);
}

// What the C library's own functions gave, and still give to those who name them by the other name.
static void *others(void *nothing)
{
    void *(*get)(size_t) = dlsym(handle, "__libc_malloc");
    for (int i = 1; i < 400000; i = i * 5 / 4 + 3) {
        free(get(i));
        char *block = get(i);
        memset(block, 'x', i);
        if (malloc_usable_size(block) < i)
            puts("too short");
        block = realloc(block, i * 2);
        if (block[i - 1] != 'x')
            puts("lost");
        free(block);
    }
    return nothing;
}

int main(int count, char **arguments)
{
    handle = dlopen("libc.so.6", RTLD_NOW);
    of_plugin = dlsym(dlopen(arguments[1], RTLD_NOW), "next_of");
    check("handle", of_handle);
    check("version", of_version);
    check("all", of_all);
    check("next", of_next);
    check("program", of_program);
    check("library", next_of);
    check("plug-in", of_plugin);
    printf("%p\n", of_handle("no_such_function"));
    puts(dlerror());
    printf("%p\n", dlvsym(handle, "free", "NO_SUCH_VERSION"));
    puts(dlerror());
    printf("%d\n", of_handle("strlen") == dlsym(RTLD_DEFAULT, "strlen"));
    others(NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, others, NULL);
    pthread_join(thread, NULL);
    puts("others");
}
#endif
