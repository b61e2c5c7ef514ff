/* Tests of kinds with mark procedures: a table with weak keys and strong values, references in malloc's memory, further roots. */
#include "check.h"
#include <gc.h>
#include <gc_mark.h>
#include <string.h>

enum { ENTRIES = 2000, EVERY = 10, FINALIZED = 20 };
struct entry {
    void *key;
    long *value;
};
struct table {
    GC_word entries;
    struct entry entry[ENTRIES];
};
/* The only reference lies in memory that the collector does not scan. */
struct outside {
    void **cell;
};

static int begun, told;
static struct table *table;
static struct outside *outside;
static void **secret_root;
static GC_push_other_roots_proc before;

static struct GC_ms_entry *mark_values(GC_word *object, struct GC_ms_entry *top, struct GC_ms_entry *limit, GC_word environment)
{
    struct table *this = (struct table *)object;
    CHECK(environment == 5);
    for (GC_word i = 0; i < this->entries; i++)
        top = GC_MARK_AND_PUSH(this->entry[i].value, top, limit, (void **)&this->entry[i].value);
    return top;
}

static struct GC_ms_entry *mark_outside(GC_word *object, struct GC_ms_entry *top, struct GC_ms_entry *limit, GC_word environment)
{
    (void)environment;
    struct outside *this = (struct outside *)object;
    if (this->cell) {
        CHECK(top + 1 < limit);
        top++;
        top->start = this->cell;
        top->descr = GC_DS_LENGTH | sizeof *this->cell;
    }
    return top;
}

static void push_secret(void)
{
    before();
    if (secret_root)
        GC_push_all(secret_root, secret_root + 1);
}

static void begins(void)
{
    begun++;
}

static void is_due(void)
{
    told++;
}

static void nothing(void *object, void *data)
{
    (void)object, (void)data;
}

static __attribute__((noinline)) void make(void)
{
    GC_word values = GC_MAKE_PROC(GC_new_proc(mark_values), 5), elsewhere = GC_MAKE_PROC(GC_new_proc(mark_outside), 0);
    unsigned tables = GC_new_kind(GC_new_free_list(), values, 0, 1), outsides = GC_new_kind(GC_new_free_list(), elsewhere, 0, 1);
    table = GC_generic_malloc(sizeof *table, (int)tables);
    CHECK(table->entries == 0 && !table->entry[ENTRIES - 1].key);
    for (long i = 0; i < ENTRIES; i++) {
        void *key = GC_MALLOC(32);
        table->entry[i].key = key;
        CHECK(GC_GENERAL_REGISTER_DISAPPEARING_LINK(&table->entry[i].key, key) == GC_SUCCESS);
        table->entry[i].value = GC_MALLOC(sizeof(long));
        *table->entry[i].value = i;
        table->entries++;
        if (i % EVERY == 0) {
            void **kept = GC_MALLOC_UNCOLLECTABLE(sizeof *kept);
            *kept = key;
        }
        GC_reachable_here(key);
    }
    outside = GC_generic_malloc(sizeof *outside, (int)outsides);
    outside->cell = malloc(sizeof *outside->cell);
    *outside->cell = GC_STRDUP("outside");
    secret_root = malloc(sizeof *secret_root);
    *secret_root = GC_STRDUP("named by a procedure");
    for (int i = 0; i < FINALIZED; i++)
        GC_REGISTER_FINALIZER(GC_MALLOC(16), nothing, NULL, NULL, NULL);
}

static __attribute__((noinline)) void churn(void)
{
    for (int i = 0; i < many(300000); i++)
        memset(GC_MALLOC(32), 0xee, 32);
    GC_gcollect();
}

/* Lists of objects of one size, of the library's kinds: each object occurs once and is intact. */
static void test_lists(void)
{
    for (int kind = 0; kind <= 1; kind++)
        for (size_t bytes = 16; bytes <= 512; bytes *= 2) {
            void *next = NULL;
            int many = 0;
            GC_generic_malloc_many(bytes, kind, &next);
            for (void *object; (object = next) != NULL; many++) {
                next = GC_NEXT(object);
                CHECK(GC_base(object) == object && GC_size(object) >= bytes);
                CHECK(kind == 0 || !((void **)object)[1]);
                memset(object, 0x5a, bytes);
            }
            CHECK(many >= 1);
        }
}

int main(void)
{
    GC_INIT();
    GC_set_finalize_on_demand(1);
    test_lists();
    GC_set_finalizer_notifier(is_due);
    GC_set_start_callback(begins);
    CHECK(GC_get_finalizer_notifier() == is_due && GC_get_start_callback() == begins);
    before = GC_get_push_other_roots();
    GC_set_push_other_roots(push_secret);
    make();
    GC_word collections = GC_get_gc_no();
    churn();
    churn();
    CHECK((GC_word)begun >= GC_get_gc_no() - collections && told > 0);
    /* A word on the stack may keep one or two objects by accident. */
    int finalized = GC_invoke_finalizers();
    CHECK(finalized >= FINALIZED - 2 && finalized <= FINALIZED);
    long cleared = 0;
    for (long i = 0; i < ENTRIES; i++) {
        CHECK(*table->entry[i].value == i);
        CHECK(i % EVERY || table->entry[i].key);
        cleared += !table->entry[i].key;
    }
    CHECK(cleared > ENTRIES * (EVERY - 1) / EVERY * 9 / 10);
    CHECK(strcmp(*outside->cell, "outside") == 0);
    CHECK(strcmp(*secret_root, "named by a procedure") == 0);
    puts("kinds: as promised");
    return 0;
}
