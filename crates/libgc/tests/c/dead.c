/* Tests of dead objects beyond plain finalizers: toggle references, disclaim procedures of kinds and objects, finalizers that wait for all others,
 * and running all finalizers. */
#include "check.h"
#include <gc.h>
#include <gc_disclaim.h>
#include <gc_mark.h>
#include <javaxfc.h>
#include <string.h>

enum { COUNT = 60 };
struct node {
    struct node *next;
    long number;
};

static void clear_stack(void)
{
    volatile char stack[16384];
    memset((char *)stack, 0, sizeof stack);
}

static __attribute__((noinline)) void collect(void)
{
    clear_stack();
    GC_gcollect();
}

/* ---- Toggle references: odd numbers are strong. ---- */
static int asked_of[2 * COUNT];
static GC_hidden_pointer toggled[COUNT];

static GC_ToggleRefStatus toggle(void *object)
{
#ifdef GC_DEBUG
    object = GC_USR_PTR_FROM_BASE(object);
#endif
    long number = ((struct node *)object)->number;
    asked_of[number]++;
    return number % 2 ? GC_TOGGLE_REF_STRONG : number % 4 ? GC_TOGGLE_REF_WEAK : GC_TOGGLE_REF_DROP;
}

static __attribute__((noinline)) void make_toggled(void)
{
    for (long i = 0; i < COUNT; i++) {
        struct node *node = GC_NEW(struct node);
        node->number = i;
        toggled[i] = GC_HIDE_POINTER(node);
        CHECK(GC_general_register_disappearing_link((void **)&toggled[i], GC_base(node)) == GC_SUCCESS);
        CHECK(GC_toggleref_add(GC_base(node), 1) == GC_SUCCESS);
    }
}

/* ---- Objects with disclaim procedures. ---- */
static int ended, ended_before_its_child, spared, let_go;

static void ends(void *object, void *data)
{
    struct node *node = object;
    CHECK(data == &ended && (!node->next || node->next->number >= 0));
    if (node->next && node->next->number < 0)
        ended_before_its_child++;
    node->number = -1;
    ended++;
}
static const struct GC_finalizer_closure closure = { ends, &ended };

static int disclaim(void *object)
{
    struct node *node = object;
    if (GC_is_marked(object)) {
        spared++;
        return 1;
    }
    /* Each object stays for one more collection. */
    if (node->number++ == 0)
        return 1;
    let_go++;
    return 0;
}

static __attribute__((noinline)) void make_asked(unsigned kind)
{
    for (long i = 0; i < COUNT; i++) {
        struct node *parent = GC_finalized_malloc(sizeof *parent, &closure);
        CHECK(!parent->next && !parent->number);
        parent->next = GC_finalized_malloc(sizeof *parent, &closure);
        struct node *node = GC_generic_malloc(sizeof *node, (int)kind);
        node->number = 0;
    }
}

/* ---- Orders of finalizers. ---- */
static int unordered, waiting, too_early, awaited;

static void is_unordered(void *object, void *data)
{
    (void)data;
    unordered++;
    /* The referent has not been finalized yet. */
    too_early += ((struct node *)object)->next->number != 7;
}

static void waits(void *object, void *data)
{
    (void)data;
    ((struct node *)object)->number = 8;
    waiting++;
}

static void is_awaited(void *object)
{
    awaited += object != NULL;
}

static __attribute__((noinline)) void make_ordered(void)
{
    for (int i = 0; i < COUNT; i++) {
        struct node *first = GC_NEW(struct node), *second = GC_NEW(struct node);
        first->next = second;
        second->number = 7;
        GC_REGISTER_FINALIZER_NO_ORDER(first, is_unordered, NULL, NULL, NULL);
        GC_REGISTER_FINALIZER_UNREACHABLE(second, waits, NULL, NULL, NULL);
    }
}

int main(void)
{
    GC_INIT();
    GC_init_finalized_malloc();

    GC_set_toggleref_func(toggle);
    CHECK(GC_get_toggleref_func() == toggle);
    make_toggled();
    for (int i = 0; i < 3; i++)
        collect();
    int strong = 0, weak = 0;
    for (int i = 0; i < COUNT; i++)
        (i % 2 ? &strong : &weak)[0] += toggled[i] != 0;
    CHECK(strong == COUNT / 2 && weak <= 2 && asked_of[1] >= 3);

    unsigned kind = GC_new_kind(GC_new_free_list(), GC_DS_LENGTH, 1, 1);
    GC_register_disclaim_proc((int)kind, disclaim, 1);
    make_asked(kind);
    collect();
    CHECK(is_eager() || (ended >= COUNT - 2 && let_go == 0));
    for (int i = 0; i < 4; i++)
        collect();
    CHECK(ended >= 2 * COUNT - 4 && ended <= 2 * COUNT && !ended_before_its_child);
    CHECK(let_go >= COUNT - 2 && let_go <= COUNT && spared == 0);

    GC_set_await_finalize_proc(is_awaited);
    GC_set_java_finalization(1);
    make_ordered();
    for (int i = 0; i < 5; i++)
        collect();
    /* Pointers to due objects were on the stack, where some still count. */
    CHECK(unordered >= COUNT * 3 / 4 && waiting >= COUNT / 2 && !too_early && awaited >= unordered + waiting);
    GC_set_await_finalize_proc(NULL);

    static struct node *alive;
    alive = GC_NEW(struct node);
    int before = waiting;
    GC_REGISTER_FINALIZER(alive, waits, NULL, NULL, NULL);
    CHECK(!GC_should_invoke_finalizers());
    GC_finalize_all();
    CHECK(waiting > before && alive->number == 8);
    puts("dead: as promised");
    return 0;
}
