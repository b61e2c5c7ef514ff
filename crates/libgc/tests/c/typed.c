/* Tests of typed objects: words in the bitmap keep their referents alive, other words are not scanned. */
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

/* Objects longer than the heap's longest type: only word LEADS is a pointer, and HIDES is not. */
enum { WORDS = 1000, LEADS = 900, HIDES = 500, LONG = 200 };
static GC_word *longs[LONG], *rows;
static GC_hidden_pointer *hidden_by[2 * LONG];

static void fill(GC_word *of, long number)
{
    for (long i = 0; i < WORDS; i++)
        CHECK(of[i] == 0);
    struct item *item = GC_NEW(struct item);
    item->number = number;
    of[LEADS] = (GC_word)item;
    void *weak = GC_MALLOC_ATOMIC(16);
    of[HIDES] = (GC_word)weak;
    GC_hidden_pointer *hidden = GC_MALLOC_ATOMIC_UNCOLLECTABLE(sizeof *hidden);
    *hidden = GC_HIDE_POINTER(weak);
    CHECK(GC_general_register_disappearing_link((void **)hidden, weak) == GC_SUCCESS);
    hidden_by[number] = hidden;
}

static __attribute__((noinline)) void make_long(void)
{
    GC_word bitmap[WORDS / GC_WORDSZ + 1] = { 0 };
    GC_set_bit(bitmap, LEADS);
    GC_descr descriptor = GC_make_descriptor(bitmap, WORDS);
    for (long i = 0; i < LONG; i++) {
        longs[i] = GC_MALLOC_EXPLICITLY_TYPED(WORDS * sizeof(GC_word), descriptor);
        fill(longs[i], i);
    }
    struct GC_calloc_typed_descr_s described;
    CHECK(GC_calloc_prepare_explicitly_typed(&described, sizeof described, LONG, WORDS * sizeof(GC_word), descriptor));
    rows = GC_calloc_do_explicitly_typed(&described, sizeof described);
    for (long i = 0; i < LONG; i++)
        fill(rows + i * WORDS, LONG + i);
    CHECK(!GC_calloc_prepare_explicitly_typed(&described, sizeof described, (size_t)-1, WORDS, descriptor));
    CHECK(!GC_calloc_do_explicitly_typed(&described, sizeof described));
    /* Objects without pointers read zero, whatever their length. */
    GC_descr none = GC_make_descriptor(bitmap, LEADS);
    memset(GC_MALLOC_ATOMIC(50000), 0xee, 50000);
    char *clear = GC_MALLOC_EXPLICITLY_TYPED(50000, none);
    for (int i = 0; i < 50000; i++)
        CHECK(clear[i] == 0);
}

static void check_long(void)
{
    long gone = 0;
    for (long i = 0; i < LONG; i++) {
        CHECK(((struct item *)longs[i][LEADS])->number == i);
        CHECK(((struct item *)rows[i * WORDS + LEADS])->number == LONG + i);
    }
    for (long i = 0; i < 2 * LONG; i++)
        gone += *hidden_by[i] == 0;
    CHECK(gone > 2 * LONG * 9 / 10);
}

/* Equal bitmaps give one descriptor, because programs make a descriptor at each allocation. */
static void share(void)
{
    GC_word bitmap[3] = { 5, 0, ~(GC_word)0 };
    GC_descr first = GC_make_descriptor(bitmap, 128);
    for (int i = 0; i < 1000; i++)
        CHECK(GC_make_descriptor(bitmap, 3 + i % 126) == first);
    CHECK(GC_make_descriptor(bitmap, 2) != first && GC_make_descriptor(bitmap, 129) != first);
}

int main(void)
{
    GC_INIT();
    make();
    make_long();
    share();
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
    check_long();
    puts("typed: as promised");
    return 0;
}
