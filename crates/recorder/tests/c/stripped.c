/* A library without debug information. What it does for a caller is the caller's; what it does in a thread of its own has no line. */
#include <pthread.h>
#include <stdlib.h>

static void *volatile kept;

void *made(int bytes) {
    void *block = malloc(bytes);
    kept = block;
    return block;
}

static void *work(void *rounds) {
    for (long i = 0; i < (long)rounds; i++) {
        void *block = malloc(48);
        kept = block;
        free(block);
    }
    return NULL;
}

void in_a_thread(long rounds) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, (void *)rounds);
    pthread_join(thread, NULL);
}
