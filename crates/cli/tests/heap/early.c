/* A child that has allocated before its parent does. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int work(void) {
    for (int turn = 0; turn < 1000; turn++)
        free(malloc(1000));
    return 0;
}

int main(void) {
    pid_t child = fork();
    if (child == 0)
        _exit(work());
    int status;
    waitpid(child, &status, 0);
    return work() | status;
}
