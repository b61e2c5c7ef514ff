/* Threads that start and end in every way and keep their objects in different kinds of memory, and timers
 * that send signals. */
#include "stress.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int may_discover;

/* How a thread comes and goes. */
enum way { CREATED, REGISTERED, DISCOVERED, DETACHED, EXITS, CANCELLED, WAYS };
/* Where its slots are. */
enum place { ON_STACK, STATIC, OWN_STATIC, UNCOLLECTABLE_OBJECT, PLACES };

struct worker {
    uint64_t chance;
    unsigned count;
    enum way way;
    int index;
};

/* ---- Who is there: those that may be suspended. ---- */
static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER;
static pthread_t there[THREADS_MAX];
static int is_there[THREADS_MAX];
static atomic_int detached_left;

void forget_threads(void)
{
    pthread_mutex_init(&list, NULL);
    memset(is_there, 0, sizeof is_there);
}

static void enter(int index, int on)
{
    pthread_mutex_lock(&list);
    there[index] = pthread_self();
    is_there[index] = on;
    pthread_mutex_unlock(&list);
}

void suspend_another(struct local *local)
{
    /* From javaxfc.h. */
    extern void GC_suspend_thread(pthread_t), GC_resume_thread(pthread_t);
    if (pthread_mutex_trylock(&list))
        return;
    unsigned index = below(local, THREADS_MAX);
    /* Whoever is suspended may hold any lock, and so nothing is done meanwhile that could need one. It is in the list, so it cannot end. */
    if (is_there[index] && !pthread_equal(there[index], pthread_self())) {
        GC_suspend_thread(there[index]);
        for (volatile int i = 0; i < 2000; i++)
            ;
        GC_resume_thread(there[index]);
    }
    pthread_mutex_unlock(&list);
}

/* ---- Signals ---- */
static atomic_ulong handled;

static void handle(int signal)
{
    int before = errno;
    volatile char stack[2000];
    memset((char *)stack, signal, sizeof stack);
    atomic_fetch_add(&handled, (unsigned long)(stack[1000] == signal));
    errno = before;
}

void prepare_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    action.sa_flags = 0;
    CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
}

enum { TIMERS = 2, ALTSTACK = 64 << 10 };
struct timers {
    timer_t timer[TIMERS];
    char *altstack;
};

static void start_timers(struct local *local, struct timers *timers)
{
    static const int signals[TIMERS] = { SIGUSR1, SIGUSR2 };
    timers->altstack = NULL;
    if (below(local, 3) == 0) {
        stack_t stack = { .ss_size = ALTSTACK };
        stack.ss_sp = timers->altstack = malloc(ALTSTACK);
        CHECK(sigaltstack(&stack, NULL) == 0);
        struct GC_stack_base base;
        CHECK(GC_get_stack_base(&base) == GC_SUCCESS);
        GC_register_altstack((char *)base.mem_base - (64 << 10), 64 << 10, timers->altstack, ALTSTACK);
    }
    for (int i = 0; i < TIMERS; i++) {
        struct sigevent event;
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = signals[i];
        event._sigev_un._tid = gettid();
        CHECK(timer_create(CLOCK_MONOTONIC, &event, &timers->timer[i]) == 0);
        struct timespec time = { 0, 200000 + below(local, 4000000) };
        struct itimerspec every = { time, time };
        CHECK(timer_settime(timers->timer[i], 0, &every, NULL) == 0);
    }
}

static void end_timers(struct timers *timers)
{
    for (int i = 0; i < TIMERS; i++)
        CHECK(timer_delete(timers->timer[i]) == 0);
    if (timers->altstack) {
        /* What was sent may still come. */
        stack_t none = { .ss_flags = SS_DISABLE };
        CHECK(sigaltstack(&none, NULL) == 0);
        free(timers->altstack);
    }
}

/* ---- Where slots are ---- */
static _Atomic(struct thing *) statics[THREADS_MAX][SLOTS];
static __thread _Atomic(struct thing *) own_statics[SLOTS];

/* Also when the thread is cancelled. */
static void leave_slots(void *argument)
{
    struct local *local = argument;
    if (local->is_slot_mine)
        GC_FREE(local->slot);
    else
        memset(local->slot, 0, SLOTS * sizeof *local->slot);
    forget_links(local);
    free(local->cell);
    local->buffer = NULL;
}

static __attribute__((noinline)) void on_stack(struct local *local, void (*body)(struct local *))
{
    _Atomic(struct thing *) slots[SLOTS];
    memset(slots, 0, sizeof slots);
    local->slot = slots;
    pthread_cleanup_push(leave_slots, local);
    body(local);
    pthread_cleanup_pop(1);
}

static int index_of(struct local *local);

void with_own_slots(struct local *local, void (*body)(struct local *), int place)
{
    local->cell = calloc(CELLS, sizeof *local->cell);
    CHECK(local->cell);
    local->is_slot_mine = 0;
    if (place % PLACES == STATIC)
        local->slot = statics[index_of(local)];
    if (place % PLACES == OWN_STATIC)
        local->slot = own_statics;
    if (place % PLACES == UNCOLLECTABLE_OBJECT) {
        local->slot = GC_MALLOC_UNCOLLECTABLE(SLOTS * sizeof *local->slot);
        CHECK(local->slot);
        local->is_slot_mine = 1;
    }
    if (place % PLACES == ON_STACK) {
        on_stack(local, body);
    } else {
        pthread_cleanup_push(leave_slots, local);
        body(local);
        pthread_cleanup_pop(1);
    }
}

/* ---- A thread's life ---- */
struct life {
    struct local local;
    struct worker *worker;
    struct timers timers;
};

static int index_of(struct local *local)
{
    /* The first member of a life. */
    return ((struct life *)local)->worker->index;
}

void let_be_cancelled(struct local *local, void (*where)(void))
{
    int state;
    if (local->may_be_cancelled)
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    where();
    if (local->may_be_cancelled)
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
}

static void live(struct local *local)
{
    struct life *life = (struct life *)local;
    for (unsigned i = 0; i < life->worker->count; i++) {
        step(local);
        if (i > 100)
            let_be_cancelled(local, pthread_testcancel);
    }
    for (int i = 0; i < SLOTS; i++)
        if (local->slot[i])
            look(local, local->slot[i]);
}

static void end(void *argument)
{
    struct life *life = argument;
    enter(life->worker->index, 0);
    end_timers(&life->timers);
}

static struct thing *last_of(struct life *life)
{
    /* A thing that only the thread's result leads to. */
    _Atomic(struct thing *) none[SLOTS];
    memset(none, 0, sizeof none);
    life->local.slot = none;
    return make(&life->local);
}

static __attribute__((noinline)) struct thing *work(struct worker *worker)
{
    struct life life;
    memset(&life, 0, sizeof life);
    life.worker = worker;
    life.local.chance = worker->chance;
    life.local.may_fork = 1;
    life.local.may_be_cancelled = worker->way == CANCELLED;
    int place = (int)below(&life.local, PLACES);
    start_timers(&life.local, &life.timers);
    enter(worker->index, 1);
    pthread_cleanup_push(end, &life);
    with_own_slots(&life.local, live, place);
    pthread_cleanup_pop(1);
    struct thing *result = worker->way == CREATED || worker->way == EXITS ? last_of(&life) : NULL;
    free(worker);
    return result;
}

static void *body(void *argument)
{
    struct worker *worker = argument;
    enum way way = worker->way;
    struct GC_stack_base base;
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (way == REGISTERED)
        CHECK(GC_get_stack_base(&base) == GC_SUCCESS && GC_register_my_thread(&base) == GC_SUCCESS);
    void *result = work(worker);
    if (way == REGISTERED)
        CHECK(GC_unregister_my_thread() == GC_SUCCESS);
    if (way == DETACHED)
        atomic_fetch_sub(&detached_left, 1);
    if (way == EXITS)
        GC_pthread_exit(result);
    return result;
}

void run_threads(struct local *local, unsigned threads, unsigned count)
{
    pthread_t thread[THREADS_MAX];
    enum way ways[THREADS_MAX];
    for (unsigned i = 0; i < threads; i++) {
        struct worker *worker = malloc(sizeof *worker);
        ways[i] = below(local, WAYS);
        if (ways[i] == DISCOVERED && !may_discover)
            ways[i] = REGISTERED;
        *worker = (struct worker){ chance(local), count / 2 + below(local, count), ways[i], (int)i };
        int is_plain = ways[i] == REGISTERED || ways[i] == DISCOVERED;
        if (ways[i] == DETACHED)
            atomic_fetch_add(&detached_left, 1);
        CHECK((is_plain ? pthread_create : GC_pthread_create)(&thread[i], NULL, body, worker) == 0);
        if (ways[i] == DETACHED)
            CHECK(GC_pthread_detach(thread[i]) == 0);
        steps(local, below(local, 50));
    }
    steps(local, count / 4);
    for (unsigned i = 0; i < threads; i++) {
        void *result = NULL;
        if (ways[i] == DETACHED)
            continue;
        if (ways[i] == CANCELLED)
            GC_pthread_cancel(thread[i]);
        int is_plain = ways[i] == REGISTERED || ways[i] == DISCOVERED;
        CHECK((is_plain ? pthread_join : GC_pthread_join)(thread[i], &result) == 0);
        CHECK(result != PTHREAD_CANCELED || ways[i] == CANCELLED);
        if (result && result != PTHREAD_CANCELED)
            look(local, result);
    }
    while (atomic_load(&detached_left)) {
        steps(local, 1);
        sched_yield();
    }
    memset(statics, 0, sizeof statics);
}
