/* For a C library that is not glibc. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *argument)
{
    for (size_t i = 1; i < 3000; i++) {
        char *block = malloc(i * 37 % 9000 + 1);
        memset(block, 1, i * 37 % 9000 + 1);
        block = realloc(block, i * 101 % 300000 + 1);
        free(block);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[3];
    for (int t = 0; t < 3; t++)
        if (pthread_create(&threads[t], NULL, work, NULL) != 0)
            return 2;
    pid_t child = fork();
    if (child == 0) {
        work(NULL);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        return 3;
    for (int t = 0; t < 3; t++)
        pthread_join(threads[t], NULL);
    char *text = strdup("done");
    puts(text);
    free(text);
    return 0;
}
