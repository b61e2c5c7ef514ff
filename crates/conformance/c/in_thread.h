/* What another thread does while this one waits for it. */
#ifndef IN_THREAD_H
#define IN_THREAD_H
#include "check.h"
#include <pthread.h>

static void *free_it(void *block)
{
    free(block);
    return NULL;
}

static void in_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, argument) == 0 && pthread_join(thread, NULL) == 0);
}
#endif
