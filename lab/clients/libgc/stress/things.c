/* Things: objects of every kind that libgc can allocate. An object's number determines its contents,
 * except its references: it can be checked. */
#include "stress.h"
#include <gc_disclaim.h>
#include <gc_gcj.h>
#include <gc_mark.h>
#include <gc_typed.h>
#include <string.h>

/* Text that is looked at whole; of longer ones so many bytes. */
enum { LOOKED_AT = 128 };

static GC_descr typed;
static int kind;
static struct {
    void *unused;
    GC_word descriptor;
} class;

uint64_t mixed(uint64_t number)
{
    number += 0x9e3779b97f4a7c15;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    number = (number ^ number >> 27) * 0x94d049bb133111eb;
    return number ^ number >> 31;
}

uint64_t chance(struct local *local)
{
    return mixed(local->chance++);
}

unsigned below(struct local *local, unsigned end)
{
    return (unsigned)(chance(local) >> 32) % end;
}

static struct thing *disguised(struct thing *thing)
{
    return thing ? (struct thing *)~(uintptr_t)thing : NULL;
}

static struct GC_ms_entry *mark_disguised(GC_word *object, struct GC_ms_entry *top, struct GC_ms_entry *limit, GC_word environment)
{
    struct thing *thing = (struct thing *)object;
    (void)environment;
    for (int i = 0; i < REFS; i++) {
        struct thing *to = disguised(atomic_load_explicit(&thing->ref[i], memory_order_relaxed));
        if (to)
            top = GC_MARK_AND_PUSH(to, top, limit, (void **)&thing->ref[i]);
    }
    return top;
}

static struct GC_ms_entry *mark_by_class(GC_word *object, struct GC_ms_entry *top, struct GC_ms_entry *limit, GC_word environment)
{
    struct thing *thing = (struct thing *)object;
    (void)environment;
    for (int i = 0; i < REFS; i++) {
        struct thing *to = atomic_load_explicit(&thing->ref[i], memory_order_relaxed);
        if (to)
            top = GC_MARK_AND_PUSH(to, top, limit, (void **)&thing->ref[i]);
    }
    return top;
}

void prepare_things(void)
{
    GC_word bitmap[GC_BITMAP_SIZE(struct thing)] = { 0 };
    GC_word first = GC_WORD_OFFSET(struct thing, ref);
    for (GC_word i = 0; i < REFS; i++)
        GC_set_bit(bitmap, first + i);
    typed = GC_make_descriptor(bitmap, GC_WORD_LEN(struct thing));
    kind = (int)GC_new_kind(GC_new_free_list(), GC_MAKE_PROC(GC_new_proc(mark_disguised), 0), 0, 1);
    GC_init_gcj_malloc(5, (void *)mark_by_class);
    for (GC_word i = 0; i < REFS; i++)
        class.descriptor |= (GC_word)1 << (63 - first - i);
    class.descriptor |= GC_DS_BITMAP;
    GC_init_finalized_malloc();
}

static unsigned text_bytes(struct local *local)
{
    switch (below(local, 200)) {
    case 0: return below(local, 300000);
    case 1: case 2: return below(local, 20000);
    case 3 ... 12: return below(local, 3000);
    case 13 ... 60: return below(local, 300);
    default: return below(local, 40);
    }
}

static void is_disclaimed(void *object, void *data)
{
    struct thing *thing = object;
    CHECK(data == &class);
    /* One that could not be finished is all zeros. */
    if (thing->check)
        look_at_one(thing);
}
static const struct GC_finalizer_closure disclaimed = { is_disclaimed, &class };

/* As GC_malloc_many() wants it, but under a lock of the list's own. */
static void *from_a_list(size_t bytes)
{
    void *list = GC_malloc_many(bytes), *object = list;
    CHECK(list);
    /* The rest of the list is forgotten after a look. */
    for (void *next = list; next; next = GC_NEXT(next))
        CHECK(GC_size(next) >= bytes);
    GC_NEXT(object) = NULL;
    return object;
}

static struct thing *allocate(unsigned sort, size_t bytes)
{
    switch (sort) {
    case ATOMIC: return GC_MALLOC_ATOMIC(bytes);
    case UNCOLLECTABLE: return GC_MALLOC_UNCOLLECTABLE(bytes);
    case OFF_PAGE: return GC_MALLOC_IGNORE_OFF_PAGE(bytes);
    case ALIGNED: return GC_memalign(64, bytes);
    case TYPED: return GC_MALLOC_EXPLICITLY_TYPED(bytes, typed);
    case TYPED_ARRAY: return GC_CALLOC_EXPLICITLY_TYPED(2, sizeof(struct thing), typed);
    case KIND: return GC_generic_malloc(bytes, kind);
    case BY_CLASS: return GC_GCJ_MALLOC(bytes, &class);
    case DEBUG: return GC_debug_malloc(bytes, GC_EXTRAS);
    case FROM_A_LIST: return from_a_list(bytes);
    case DISCLAIMED: return GC_finalized_malloc(bytes, &disclaimed);
    default: return GC_MALLOC(bytes);
    }
}

static uint64_t check_of(const struct thing *thing)
{
    return mixed(thing->number ^ (uint64_t)thing->sort << 48 ^ (uint64_t)thing->depth << 32 ^ thing->bytes) | 1;
}

static unsigned char letter(const struct thing *thing, size_t index)
{
    return (unsigned char)(thing->number * 31 + index * 7);
}

static struct thing *make_of(struct local *local, unsigned sort)
{
    size_t bytes = sort == TYPED_ARRAY ? 0 : text_bytes(local);
    struct thing *thing = allocate(sort, sizeof *thing + bytes);
    CHECK_OF(thing, bytes);
    if (sort == ATOMIC)
        memset(thing, 0, sizeof *thing);
    CHECK_OF(!thing->number && !thing->check && !thing->ref[0] && !thing->ref[REFS - 1], sort);
    CHECK(thing->class == (sort == BY_CLASS ? (void *)&class : NULL));
    thing->number = chance(local);
    thing->bytes = (uint32_t)bytes;
    thing->sort = (uint16_t)sort;
    for (size_t i = 0; i < bytes; i++)
        thing->text[i] = letter(thing, i);
    for (int i = 0; i < REFS && sort != ATOMIC; i++) {
        struct thing *to = local->slot[below(local, SLOTS)];
        if (to && to->depth < DEPTH && below(local, 2)) {
            atomic_store(&thing->ref[i], sort == KIND ? disguised(to) : to);
            GC_END_STUBBORN_CHANGE(thing);
            if (thing->depth <= to->depth)
                thing->depth = to->depth + 1;
        }
    }
    thing->check = check_of(thing);
    return thing;
}

struct thing *make(struct local *local)
{
    unsigned sort = below(local, SORTS);
    /* Uncollectable ones are freed by make_and_free(). */
    return make_of(local, sort == UNCOLLECTABLE ? PLAIN : sort);
}

void make_and_free(struct local *local)
{
    unsigned sort = below(local, 5);
    struct thing *thing = make_of(local, sort < 3 ? UNCOLLECTABLE : sort == 3 ? ATOMIC : PLAIN);
    if (below(local, 20) == 0)
        GC_gcollect();
    look(local, thing);
    GC_FREE(thing);
}

struct thing *get_ref(struct thing *thing, int index)
{
    struct thing *to = atomic_load(&thing->ref[index]);
    return thing->sort == KIND ? disguised(to) : to;
}

void set_ref(struct thing *thing, int index, struct thing *to)
{
    if (thing->sort == ATOMIC || (to && to->depth >= thing->depth))
        return;
    atomic_store(&thing->ref[index], thing->sort == KIND ? disguised(to) : to);
    GC_END_STUBBORN_CHANGE(thing);
}

int is_whole(const struct thing *thing)
{
    return thing->sort != DEBUG && thing->sort != DISCLAIMED && thing->sort != ALIGNED;
}

void look_at_one(struct thing *thing)
{
    CHECK_OF(thing->check == check_of(thing), thing->sort);
    for (size_t i = 0; i < thing->bytes; i += thing->bytes / LOOKED_AT + 1)
        CHECK_OF(thing->text[i] == letter(thing, i), thing->sort);
    CHECK(!is_whole(thing) || thing->bytes < 200 || GC_base(&thing->text[100]) == (void *)thing);
}

void look(struct local *local, struct thing *thing)
{
    for (unsigned depth = DEPTH + 1; thing; depth--) {
        CHECK_OF(depth > thing->depth, thing->depth);
        look_at_one(thing);
        depth = thing->depth + 1;
        thing = get_ref(thing, (int)below(local, REFS));
    }
}

void resize_buffer(struct local *local)
{
    size_t bytes = 1 + below(local, below(local, 30) ? 2000 : 200000), both = bytes < local->buffer_bytes ? bytes : local->buffer_bytes;
    int is_debug = below(local, 2);
    /* Now and then one of another allocator. */
    if (!local->buffer || below(local, 50) == 0) {
        local->buffer = below(local, 2) ? GC_MALLOC_ATOMIC(bytes) : GC_MALLOC(bytes);
        both = 0;
    } else {
        local->buffer = GC_REALLOC(local->buffer, bytes);
    }
    CHECK(local->buffer);
    for (size_t i = 0; i < both; i += both / LOOKED_AT + 1)
        CHECK_OF(local->buffer[i] == (unsigned char)(i * 11), i);
    for (size_t i = 0; i < bytes; i++)
        local->buffer[i] = (unsigned char)(i * 11);
    local->buffer_bytes = bytes;
    char *text = is_debug ? GC_debug_strdup("told again", GC_EXTRAS) : GC_STRNDUP("told again and again", 10);
    CHECK(strcmp(text, "told again") == 0);
}
