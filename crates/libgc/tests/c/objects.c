/* Tests of objects: cleared, kept alive by references, resized, freed, found. */
#include "check.h"
#include <gc.h>
#include <gc_mark.h>
#include <stdint.h>
#include <string.h>

enum { LENGTH = 5000 };

struct cell {
    struct cell *next;
    long number;
};

static struct cell *list;
static char *past_the_end;
static void *hidden_in_malloc_is_not_seen;

static int is_clear(const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return 0;
    return 1;
}

/* Makes garbage of all sizes, and collections. */
static void churn(void)
{
    for (int i = 0; i < many(200000); i++) {
        size_t bytes = (size_t)(i * 7919 % 700);
        char *object = GC_MALLOC(bytes);
        CHECK(object && is_clear(object, bytes));
        memset(object, 0xff, bytes);
    }
    GC_gcollect();
}

static __attribute__((noinline)) void make(void)
{
    for (long i = 0; i < LENGTH; i++) {
        struct cell *cell = GC_NEW(struct cell);
        cell->next = list;
        cell->number = i;
        list = cell;
    }
    char *block = GC_MALLOC(64);
    memset(block, 7, 64);
    past_the_end = block + 64;
    hidden_in_malloc_is_not_seen = malloc(16);
}

int main(void)
{
    GC_INIT();
    CHECK(GC_is_init_called() && GC_get_version() == ((8u << 16) | (2u << 8) | 12u));
    make();
    GC_word before = GC_get_gc_no();
    churn();
    CHECK(GC_get_gc_no() > before);
    long expected = LENGTH;
    for (struct cell *cell = list; cell; cell = cell->next)
        CHECK(cell->number == --expected);
    CHECK(expected == 0);
    for (int i = 1; i <= 64; i++)
        CHECK(past_the_end[-i] == 7);

    char *text = GC_STRDUP("kept until it is not needed");
    CHECK(strcmp(text, "kept until it is not needed") == 0 && strcmp(GC_STRNDUP(text, 4), "kept") == 0);
    void *base = GC_base(text + 5);
#ifdef GC_DEBUG
    CHECK(GC_USR_PTR_FROM_BASE(base) == text);
#else
    CHECK(base == text);
#endif
    CHECK(GC_size(base) >= strlen(text) + 1 && GC_is_heap_ptr(text + 5));
    int on_stack;
    CHECK(!GC_base(&on_stack) && !GC_is_heap_ptr(&list));
    CHECK(GC_same_obj(text + 1, text) == text + 1);

    char *grown = GC_MALLOC(10);
    strcpy(grown, "123456789");
    for (size_t bytes = 20; bytes < 3000000; bytes *= 3) {
        grown = GC_REALLOC(grown, bytes);
        CHECK(grown && strcmp(grown, "123456789") == 0 && is_clear(grown + 10, bytes - 10));
    }
    CHECK(!GC_REALLOC(grown, 0));
    GC_FREE(GC_MALLOC(1));
    GC_FREE(NULL);
    CHECK(GC_MALLOC(0) && GC_MALLOC_ATOMIC(0));

    for (size_t align = 8; align <= 16384; align *= 2) {
        void *aligned = GC_memalign(align, 100);
        CHECK(aligned && (uintptr_t)aligned % align == 0);
    }
    CHECK((uintptr_t)GC_valloc(10) % 4096 == 0 && GC_size(GC_pvalloc(10)) >= 4096);
    char *wiped = GC_REALLOCF(GC_MALLOC_ATOMIC(10), 2000);
    CHECK(wiped && GC_base(wiped) != NULL);
    memset(wiped, 1, 2000);
    GC_FREEZERO(wiped, 2000);
    GC_FREEZEROALL(GC_MALLOC_ATOMIC(300));
    GC_FREEZERO(NULL, 20);
    CHECK(!GC_REALLOCF(GC_MALLOC_ATOMIC(10), 0));
    void *posix;
    CHECK(GC_posix_memalign(&posix, 64, 10) == 0 && (uintptr_t)posix % 64 == 0);
    CHECK(GC_posix_memalign(&posix, 24, 10) != 0);

    int many = 0;
    for (void *object = GC_malloc_many(48); object; object = GC_NEXT(object))
        many++;
    CHECK(many >= 1);

    /* An uncollectable object with a pointer in malloc's memory only: it stays with its referents, also when it is resized. */
    struct cell **kept = hidden_in_malloc_is_not_seen;
    *kept = GC_MALLOC_UNCOLLECTABLE(sizeof(struct cell));
    (*kept)->next = GC_NEW(struct cell);
    (*kept)->next->number = 42;
    *kept = GC_REALLOC(*kept, 1000);
    churn();
    churn();
    CHECK((*kept)->next->number == 42);
    GC_FREE(*kept);

    /* The requested heap size is used before any collection, if much is alive. */
    if (!getenv("VELLUM_GC_EAGER")) {
        enum { LIVE = 40000, LARGER = 64 << 20 };
        static struct cell *list;
        for (int i = 0; i < LIVE; i++) {
            struct cell *cell = GC_NEW(struct cell);
            cell->next = list;
            list = cell;
        }
        GC_gcollect();
        CHECK(GC_expand_hp(LARGER) == 1);
        before = GC_get_gc_no();
        for (size_t bytes = 0; bytes < LARGER / 2; bytes += 1024)
            CHECK(GC_MALLOC(1000));
        CHECK(GC_get_gc_no() == before);
        list = NULL;
    }

    GC_word heap, free_bytes, unmapped, since, total;
    GC_get_heap_usage_safe(&heap, &free_bytes, &unmapped, &since, &total);
    CHECK(heap > 0 && free_bytes <= heap && total > heap);
    GC_disable();
    CHECK(GC_is_disabled());
    before = GC_get_gc_no();
    GC_gcollect();
    CHECK(GC_get_gc_no() == before);
    GC_enable();
    CHECK(!GC_is_disabled());
    GC_gcollect_and_unmap();
    CHECK(GC_get_gc_no() > before);
    puts("objects: as promised");
    return 0;
}
