/* Typed objects: what the bitmap names is kept, what it does not is not looked at. */
#include "check.h"
#include <gc.h>
#include <gc_typed.h>
#include <string.h>

struct item {
    long number;
    struct item *next;
    GC_word not_a_pointer;
};
enum { LENGTH = 3000, ARRAY = 700 };
static struct item *list, *array;
static void *weak[LENGTH];

static __attribute__((noinline)) void make(void)
{
    GC_word bitmap[GC_BITMAP_SIZE(struct item)] = { 0 };
    GC_set_bit(bitmap, GC_WORD_OFFSET(struct item, next));
    GC_descr descriptor = GC_make_descriptor(bitmap, GC_WORD_LEN(struct item));
    for (long i = 0; i < LENGTH; i++) {
        struct item *item = GC_MALLOC_EXPLICITLY_TYPED(sizeof *item, descriptor);
        CHECK(item->number == 0 && !item->next && item->not_a_pointer == 0);
        item->number = i;
        item->next = list;
        weak[i] = GC_MALLOC_ATOMIC(16);
        item->not_a_pointer = (GC_word)weak[i];
        GC_hidden_pointer *hidden = GC_MALLOC_ATOMIC_UNCOLLECTABLE(sizeof *hidden);
        *hidden = GC_HIDE_POINTER(weak[i]);
        CHECK(GC_general_register_disappearing_link((void **)hidden, weak[i]) == GC_SUCCESS);
        weak[i] = hidden;
        list = item;
    }
    array = GC_CALLOC_EXPLICITLY_TYPED(ARRAY, sizeof *array, descriptor);
    for (long i = 0; i < ARRAY; i++) {
        array[i].next = GC_NEW(struct item);
        array[i].next->number = i;
    }
}

int main(void)
{
    GC_INIT();
    make();
    for (int i = 0; i < many(300000); i++)
        memset(GC_MALLOC(24), 0xee, 24);
    GC_gcollect();
    GC_gcollect();
    long expected = LENGTH;
    for (struct item *item = list; item; item = item->next)
        CHECK(item->number == --expected);
    CHECK(expected == 0);
    for (long i = 0; i < ARRAY; i++)
        CHECK(array[i].next->number == i);
    long gone = 0;
    for (long i = 0; i < LENGTH; i++)
        gone += *(GC_hidden_pointer *)weak[i] == 0;
    CHECK(gone > LENGTH * 9 / 10);
    puts("typed: as promised");
    return 0;
}
