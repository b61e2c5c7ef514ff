// Loads each library of Vellum's that is named, uses it in two threads, closes it, and uses it on: it has to
// stay.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *(*get)(size_t);
static void (*give)(void *);

static void *use(void *block)
{
    for (int i = 0; i < 2000; i++) {
        void *other = get(i * 50 + 1);
        memset(other, 1, i * 50 + 1);
        give(other);
    }
    give(block);
    return NULL;
}

static void in_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, use, get(10));
    pthread_join(thread, NULL);
}

int main(int count, char **names)
{
    for (int i = 1; i < count; i++) {
        for (int round = 0; round < 3; round++) {
            char *mine = malloc(100);
            void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
            if (!library || !(get = dlsym(library, "malloc")) || !(give = dlsym(library, "free"))) {
                puts(dlerror());
                return 2;
            }
            // libvellum_cost.so has memory of its own only for a program's start, unless it is preloaded.
            void *much = get(1 << 20);
            if (much) {
                give(much);
                in_thread();
                use(get(10));
            }
            free(mine);
            int closed = dlclose(library);
            printf("%d %d\n", closed, dlopen(names[i], RTLD_NOW | RTLD_NOLOAD) != NULL);
            if (much)
                in_thread();
        }
    }
    return 0;
}
