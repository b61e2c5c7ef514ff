/* Threads that wait, in locks and in system calls, with what they wait for in big blocks whose pages are out. */
#include "calls.h"
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

/* Locks that lie in a big block, while everything goes in and out. */
struct locks { pthread_mutex_t mutex; pthread_cond_t condition; sem_t semaphore; int turn, sum; };
static struct locks *locks;
static _Atomic int is_over;
static void *stir(void *argument)
{
    (void)argument;
    while (!is_over)
        out();
    return NULL;
}
static void *take_turns(void *argument)
{
    int own = (int)(intptr_t)argument;
    for (int i = 0; i < 3000; i++) {
        CHECK(pthread_mutex_lock(&locks->mutex) == 0);
        while (locks->turn % 2 != own)
            CHECK(pthread_cond_wait(&locks->condition, &locks->mutex) == 0);
        locks->turn++;
        CHECK(pthread_cond_broadcast(&locks->condition) == 0 && pthread_mutex_unlock(&locks->mutex) == 0);
        CHECK(sem_wait(&locks->semaphore) == 0);
        locks->sum++;
        CHECK(sem_post(&locks->semaphore) == 0);
    }
    return NULL;
}
static void locks_in_blocks(void)
{
    begin();
    locks = at(2);
    locks = (struct locks *)(((uintptr_t)locks + 63) & ~(uintptr_t)63);
    CHECK(pthread_mutex_init(&locks->mutex, NULL) == 0 && pthread_cond_init(&locks->condition, NULL) == 0 && sem_init(&locks->semaphore, 0, 1) == 0);
    pthread_t stirrer, takers[2];
    CHECK(pthread_create(&stirrer, NULL, stir, NULL) == 0);
    for (intptr_t i = 0; i < 2; i++) CHECK(pthread_create(&takers[i], NULL, take_turns, (void *)i) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(takers[i], NULL) == 0);
    is_over = 1;
    CHECK(pthread_join(stirrer, NULL) == 0 && locks->turn == 6000 && locks->sum == 6000);
    end();
}

/* A thread that waits in a call with its arguments in a big block can be cancelled, many times. */
static void *wait_for_ever(void *argument)
{
    int *ends = argument;
    read(ends[0], at(20), 1);
    return NULL;
}
static void *poll_for_ever(void *argument)
{
    struct pollfd *polled = at(21);
    *polled = (struct pollfd){((int *)argument)[0], POLLIN, 0};
    poll(polled, 1, -1);
    return NULL;
}
static void cancellation(void)
{
    begin();
    int ends[2];
    CHECK(pipe(ends) == 0);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, NULL, i % 2 ? wait_for_ever : poll_for_ever, ends) == 0);
        if (i % 3) nap_ms(1);
        CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
    end();
}

static const struct scenario scenarios[] = {
    {"locks_in_blocks", locks_in_blocks}, {"cancellation", cancellation},
};

int main(int count, char **arguments) { return DISPATCH(count, arguments, scenarios); }
