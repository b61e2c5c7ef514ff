/* Uses libraries: one without debug information, and two that take turns at one place in memory. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *made(int bytes);
void in_a_thread(long rounds);

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    for (int i = 0; i < 20; i++)
        free(made(100)); //= malloc=20 free=20
    in_a_thread(30);
    for (int i = 0; i < 6; i++) {
        void *library = dlopen(argv[1 + i % 2], RTLD_NOW);
        void *(*plugin)(int) = (void *(*)(int))dlsym(library, "plugin");
        for (int j = 0; j < 5; j++)
            free(plugin(200)); //= free=30
        dlclose(library);
    }
    return 0;
}
