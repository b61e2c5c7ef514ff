/* Tests of finalizers in each order, and of disappearing links. */
#include "check.h"
#include <gc.h>
#include <string.h>

enum { COUNT = 50 };
struct node {
    struct node *next;
    long number;
};
static int finalized[5], order_broken;
static long ended[2];

static void count(void *object, void *data)
{
    (void)object;
    finalized[(size_t)data]++;
}

/* In a chain of two, the object that refers to the other must be finalized first. */
static void in_order(void *object, void *data)
{
    (void)object;
    long which = (long)data;
    ended[which]++;
    if (which == 1 && ended[0] < ended[1])
        order_broken = 1;
}

static GC_hidden_pointer *hidden;

static __attribute__((noinline)) void make(void)
{
    for (long i = 0; i < COUNT; i++) {
        struct node *second = GC_NEW(struct node), *first = GC_NEW(struct node);
        first->next = second;
        GC_REGISTER_FINALIZER(first, in_order, (void *)0, NULL, NULL);
        GC_REGISTER_FINALIZER(second, in_order, (void *)1, NULL, NULL);
        /* A ring is finalized only by unordered finalizers. */
        struct node *ring = GC_NEW(struct node);
        ring->next = ring;
        GC_REGISTER_FINALIZER_NO_ORDER(ring, count, (void *)1, NULL, NULL);
        struct node *self = GC_NEW(struct node);
        self->next = self;
        GC_REGISTER_FINALIZER_IGNORE_SELF(self, count, (void *)3, NULL, NULL);
        /* A ring with ordered finalizers is never finalized, because it has no first object. */
        struct node *never = GC_NEW(struct node);
        never->next = never;
        GC_REGISTER_FINALIZER(never, count, (void *)4, NULL, NULL);
        struct node *replaced = GC_NEW(struct node);
        GC_finalization_proc old;
        void *old_data;
        GC_REGISTER_FINALIZER(replaced, count, (void *)2, &old, &old_data);
        CHECK(!old && !old_data);
        GC_REGISTER_FINALIZER(replaced, count, (void *)0, &old, &old_data);
        CHECK(old == count && old_data == (void *)2);
    }
    hidden = GC_MALLOC_ATOMIC(2 * COUNT * sizeof *hidden);
    for (long i = 0; i < COUNT; i++) {
        void *object = GC_MALLOC(40);
        hidden[i] = GC_HIDE_POINTER(object);
        CHECK(GC_GENERAL_REGISTER_DISAPPEARING_LINK((void **)&hidden[i], object) == GC_SUCCESS);
        CHECK(GC_GENERAL_REGISTER_DISAPPEARING_LINK((void **)&hidden[i], object) == GC_DUPLICATE);
        hidden[COUNT + i] = hidden[i];
        CHECK(GC_REGISTER_LONG_LINK((void **)&hidden[COUNT + i], object) == GC_SUCCESS);
    }
}

static __attribute__((noinline)) void scrub(void)
{
    volatile char stack[8192];
    memset((char *)stack, 0, sizeof stack);
}

static __attribute__((noinline)) int gone(void)
{
    int count = 0;
    for (int i = 0; i < 2 * COUNT; i++)
        count += hidden[i] == 0;
    return count;
}

int main(void)
{
    GC_INIT();
    make();
    for (int i = 0; i < 5; i++) {
        scrub();
        GC_gcollect();
        GC_invoke_finalizers();
    }
    /* A word on the stack may keep one or two objects by accident. */
    CHECK(ended[0] >= COUNT - 2 && ended[1] >= COUNT - 2 && ended[0] <= COUNT && ended[1] <= COUNT);
    CHECK(!order_broken);
    CHECK(finalized[0] >= COUNT - 2 && finalized[1] >= COUNT - 2 && finalized[2] == 0);
    CHECK(finalized[3] >= COUNT - 2 && finalized[4] == 0);
    CHECK(gone() >= 2 * COUNT - 4);

    void **from = GC_MALLOC_ATOMIC(sizeof *from), **to = GC_MALLOC_ATOMIC(sizeof *to);
    void *object = GC_MALLOC(8);
    *from = object;
    CHECK(GC_unregister_disappearing_link(from) == 0);
    CHECK(GC_move_disappearing_link(from, to) == GC_NOT_FOUND);
    CHECK(GC_general_register_disappearing_link(from, object) == GC_SUCCESS);
    CHECK(GC_move_disappearing_link(from, to) == GC_SUCCESS);
    CHECK(GC_unregister_disappearing_link(from) == 0 && GC_unregister_disappearing_link(to) == 1);

    GC_set_finalize_on_demand(1);
    CHECK(GC_get_finalize_on_demand() == 1);
    puts("finalizers: as promised");
    return 0;
}
