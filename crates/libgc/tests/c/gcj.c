/* Tests of objects whose class has their mark descriptor (length, bitmap or procedure), and of mark procedures that push such objects. */
#include "check.h"
#include <gc.h>
#include <gc_gcj.h>
#include <gc_inline.h>
#include <gc_mark.h>
#include <string.h>

enum { COUNT = 2000 };
struct class {
    void *unused;
    GC_word descriptor;
};
struct pair {
    struct class *class;
    struct pair *next;
    GC_word *number;
};

static struct class by_length = { NULL, sizeof(struct pair) }, by_bitmap = { NULL, ((GC_word)3 << 61) | GC_DS_BITMAP }, by_procedure;
static struct pair *list;

static struct GC_ms_entry *mark_pair(GC_word *object, struct GC_ms_entry *top, struct GC_ms_entry *limit, GC_word environment)
{
    struct pair *pair = environment == 1 ? GC_USR_PTR_FROM_BASE(object) : (void *)object;
    top = GC_MARK_AND_PUSH(pair->number, top, limit, (void **)&pair->number);
    return GC_MARK_AND_PUSH(pair->next, top, limit, (void **)&pair->next);
}

/* ---- Records outside the heap, each marked by a procedure that the previous one pushes. ---- */
struct record {
    struct record *next;
    char *text;
};
static GC_word record_descriptor;
static int records_marked;

static struct GC_ms_entry *mark_record(GC_word *object, struct GC_ms_entry *top, struct GC_ms_entry *limit, GC_word environment)
{
    struct record *record = (struct record *)object;
    if (environment == 9) {
        /* The heap object points only to the first record. */
        record = record->next;
        if (!record)
            return top;
    }
    records_marked++;
    top = GC_MARK_AND_PUSH(record->text, top, limit, (void **)&record->text);
    if (record->next) {
        CHECK(top + 1 < limit);
        top++;
        top->start = record->next;
        top->descr = record_descriptor;
    }
    return top;
}

static struct record *first_record(void)
{
    struct record *first = NULL;
    for (int i = 0; i < COUNT; i++) {
        struct record *record = malloc(sizeof *record);
        record->next = first;
        record->text = GC_STRDUP("told by a record");
        first = record;
    }
    return first;
}

int main(void)
{
    GC_INIT();
    by_procedure.descriptor = GC_MAKE_PROC(3, 0);
    GC_init_gcj_malloc(3, (void *)mark_pair);
    struct class *classes[] = { &by_length, &by_bitmap, &by_procedure };
    for (long i = 0; i < COUNT; i++) {
        struct pair *pair = GC_GCJ_MALLOC(sizeof *pair, classes[i % 3]);
        CHECK(pair->class == classes[i % 3] && !pair->next && !pair->number);
        /* Bit 63 stands for the first word: the bitmap has the class and the next object. */
        if (pair->class == &by_bitmap)
            pair->number = GC_MALLOC_UNCOLLECTABLE(sizeof(GC_word));
        else
            pair->number = GC_MALLOC_ATOMIC(sizeof(GC_word));
        *pair->number = (GC_word)i;
        pair->next = list;
        list = pair;
    }

    int own = (int)GC_new_proc(mark_record);
    record_descriptor = GC_MAKE_PROC(own, 1);
    int kind = (int)GC_new_kind(GC_new_free_list(), GC_MAKE_PROC(own, 9), 0, 1);
    static struct record *root;
    GC_disable();
    root = GC_generic_malloc(sizeof *root, kind);
    root->next = first_record();
    GC_enable();
    size_t bytes;
    CHECK(GC_get_kind_and_size(root, &bytes) == kind && bytes == GC_size(root));

    /* Lists that the program's roots keep alive. */
    static void *lists[GC_TINY_FREELISTS];
    void *pair, *tail = NULL;
    for (int i = 0; i < COUNT; i++) {
        GC_CONS(pair, (void *)(GC_word)i, tail, lists);
        tail = pair;
    }

    for (int i = 0; i < many(200000); i++)
        memset(GC_MALLOC(32), 0xee, 32);
    GC_gcollect();
    long expected = COUNT;
    for (struct pair *this = list; this; this = this->next)
        CHECK(*this->number == (GC_word)--expected);
    CHECK(expected == 0 && records_marked >= COUNT);
    for (struct record *record = root->next; record; record = record->next)
        CHECK(strcmp(record->text, "told by a record") == 0);
    expected = COUNT;
    for (void **this = tail; this; this = this[1])
        CHECK((long)(GC_word)this[0] == --expected);
    CHECK(expected == 0);

    int kinds[] = { GC_get_kind_and_size(GC_malloc_atomic(8), NULL), GC_get_kind_and_size(GC_malloc(8), NULL),
                    GC_get_kind_and_size(GC_malloc_uncollectable(8), NULL), GC_get_kind_and_size(GC_malloc_atomic_uncollectable(8), NULL) };
    for (int i = 0; i < 4; i++)
        CHECK(kinds[i] == i);
    puts("gcj: as promised");
    return 0;
}
