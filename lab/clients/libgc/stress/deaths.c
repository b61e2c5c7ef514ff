/* Everything that reacts to the death of an object: finalizers in every order, both kinds of links, toggle
 * references. */
#include "stress.h"

static atomic_long asked, done;
static atomic_int drops;
_Atomic(struct thing *) resurrected[8];

static void finalize(void *object, void *data)
{
    struct thing *thing = object;
    CHECK((uint64_t)(uintptr_t)data == thing->number);
    look_at_one(thing);
    for (int i = 0; i < REFS; i++)
        if (get_ref(thing, i))
            look_at_one(get_ref(thing, i));
    unsigned before = 1;
    CHECK_OF(atomic_compare_exchange_strong(&thing->finalized, &before, 2), before);
    atomic_fetch_add(&done, 1);
    /* Finalizers may allocate, and keep their object. */
    if (thing->number % 4 == 0)
        CHECK(GC_MALLOC(thing->number % 1000));
    if (thing->number % 8 == 1)
        atomic_store(&resurrected[thing->number / 8 % 8], thing);
}

void ask_to_finalize(struct local *local, struct thing *thing)
{
    unsigned before = 0;
    if ((thing->sort != DEBUG && !is_whole(thing)) || !atomic_compare_exchange_strong(&thing->finalized, &before, 1))
        return;
    atomic_fetch_add(&asked, 1);
    GC_finalization_proc old = finalize;
    void *old_data = thing, *data = (void *)(uintptr_t)thing->number;
    if (thing->sort == DEBUG) {
        if (below(local, 2))
            GC_debug_register_finalizer(thing, finalize, data, &old, &old_data);
        else
            GC_debug_register_finalizer_no_order(thing, finalize, data, &old, &old_data);
    } else {
        switch (below(local, 4)) {
        case 0: GC_register_finalizer(thing, finalize, data, &old, &old_data); break;
        case 1: GC_register_finalizer_ignore_self(thing, finalize, data, &old, &old_data); break;
        case 2: GC_register_finalizer_no_order(thing, finalize, data, &old, &old_data); break;
        default: GC_register_finalizer_unreachable(thing, finalize, data, &old, &old_data); break;
        }
    }
    CHECK(!old && !old_data);
}

long not_finalized(void)
{
    return atomic_load(&asked) - atomic_load(&done);
}

/* ---- Links: cells of malloc's that hold things in disguise. ---- */
static void *reveal(void *cell)
{
    void *hidden = *(void **)cell;
    return hidden ? (void *)~(uintptr_t)hidden : NULL;
}

void use_a_link(struct local *local)
{
    void **cell = &local->cell[below(local, CELLS)], **other = &local->cell[below(local, CELLS)];
    struct thing *thing = GC_call_with_alloc_lock(reveal, cell);
    if (thing) {
        look(local, thing);
        if (cell != other && !*other && below(local, 2)) {
            /* The thing is on the stack, and stays meanwhile. */
            *other = *cell;
            CHECK(GC_move_disappearing_link(cell, other) == GC_SUCCESS || GC_move_long_link(cell, other) == GC_SUCCESS);
            *cell = NULL;
        } else if (below(local, 3) == 0) {
            CHECK(GC_unregister_disappearing_link(cell) || GC_unregister_long_link(cell));
            *cell = NULL;
        }
        look_at_one(thing);
        return;
    }
    thing = local->slot[below(local, SLOTS)];
    if (!thing || !is_whole(thing))
        return;
    *cell = (void *)~(uintptr_t)thing;
    int made = below(local, 2) ? GC_general_register_disappearing_link(cell, thing) : GC_register_long_link(cell, thing);
    CHECK_OF(made == GC_SUCCESS, made);
    look_at_one(thing);
}

void forget_links(struct local *local)
{
    for (int i = 0; i < CELLS; i++) {
        GC_unregister_disappearing_link(&local->cell[i]);
        GC_unregister_long_link(&local->cell[i]);
        local->cell[i] = NULL;
    }
}

/* ---- Toggle references. ---- */
static GC_ToggleRefStatus decide(void *object)
{
    struct thing *thing = object;
    if (atomic_load(&drops))
        return GC_TOGGLE_REF_DROP;
    return thing->number % 5 == 0 ? GC_TOGGLE_REF_DROP : thing->number % 3 ? GC_TOGGLE_REF_WEAK : GC_TOGGLE_REF_STRONG;
}

void toggle(struct thing *thing)
{
    if (is_whole(thing))
        CHECK(GC_toggleref_add(thing, (int)(thing->number % 2)) == GC_SUCCESS);
}

void drop_toggled(int on)
{
    atomic_store(&drops, on);
}

static void are_due(void)
{
    /* Called by whoever has collected: it may run them, as it holds no lock of this program's. */
    GC_invoke_finalizers();
}

void prepare_deaths(struct local *local)
{
    GC_set_toggleref_func(decide);
    GC_set_java_finalization((int)below(local, 2));
    if (below(local, 3) == 0) {
        GC_set_finalize_on_demand(1);
        GC_set_finalizer_notifier(are_due);
    }
}
