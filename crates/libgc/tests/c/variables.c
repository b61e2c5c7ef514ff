/* Tests of assignments to exported variables, of callbacks during collections, and of figures. */
#include "check.h"
#include <gc.h>
#include <gc_mark.h>
#include <string.h>

static unsigned last_event = GC_EVENT_END;
static int events[GC_EVENT_THREAD_UNSUSPENDED + 1], in_order = 1, stopped, asked, refused, resized, filtered;

static void happens(GC_EventType event)
{
    events[event]++;
    /* As with libgc, functions that take no lock there may be called here. */
    CHECK(GC_get_heap_size() < GC_get_obtained_from_os_bytes());
    if (event <= GC_EVENT_END) {
        if ((unsigned)event != (last_event + 1) % (GC_EVENT_END + 1))
            in_order = 0;
        last_event = event;
    }
    if (event == GC_EVENT_POST_STOP_WORLD)
        stopped++;
    if (event == GC_EVENT_PRE_START_WORLD)
        stopped--;
}

static int not_now(void)
{
    asked++;
    return refused;
}

static void grows(GC_word bytes)
{
    resized += bytes > 0;
}

static int has_roots(const char *library, void *start, size_t bytes)
{
    filtered += library && start && bytes;
    return 1;
}

static void *none(size_t bytes)
{
    (void)bytes;
    return &asked;
}

static void count(void *object, size_t bytes, void *counter)
{
    CHECK(bytes > 0 && GC_base(object) == object && GC_size(object) == bytes);
    ++*(unsigned *)counter;
}

static void churn(size_t bytes)
{
    for (long i = 0; i < many((long)(bytes / 64)); i++)
        memset(GC_MALLOC(60), 1, 60);
}

int main(void)
{
    GC_INIT();
    CHECK(GC_stackbottom > (char *)&events && GC_find_leak == 0 && GC_dont_gc == 0);
    GC_set_on_collection_event(happens);
    CHECK(GC_get_on_collection_event() == happens);
    GC_set_on_heap_resize(grows);
    GC_word before = GC_gc_no;
    /* The heap has grown only if something lives. */
    static void *live;
    live = GC_MALLOC(1 << 20);
    churn(16 << 20);
    GC_gcollect();
    CHECK(live && GC_gc_no > before && GC_gc_no == GC_get_gc_no() && resized > 0 && in_order && stopped == 0);
    for (int event = GC_EVENT_START; event <= GC_EVENT_POST_START_WORLD; event++)
        CHECK(events[event] >= (int)(GC_gc_no - before));

    /* Collection held off by the variable, by the function, for automatic collections only, and by the stop procedure. */
    GC_dont_gc = 1;
    CHECK(GC_is_disabled());
    before = GC_gc_no;
    churn(16 << 20);
    GC_gcollect();
    CHECK(GC_gc_no == before);
    GC_enable();
    CHECK(GC_dont_gc == 0 && !GC_is_disabled());
    GC_set_disable_automatic_collection(1);
    churn(16 << 20);
    CHECK(GC_gc_no == before);
    GC_gcollect();
    CHECK(GC_gc_no == before + 1);
    GC_set_disable_automatic_collection(0);
    GC_set_stop_func(not_now);
    refused = 1;
    churn(16 << 20);
    GC_gcollect();
    CHECK(GC_gc_no == before + 1 && asked > 0);
    refused = 0;
    churn(16 << 20);
    GC_gcollect();
    CHECK(GC_gc_no > before + 1);
    GC_set_stop_func(NULL);

    GC_register_has_static_roots_callback(has_roots);
    GC_gcollect();
    CHECK(filtered > 0);
    GC_register_has_static_roots_callback(NULL);
    GC_no_dls = 1;
    static void *kept;
    kept = GC_STRDUP("in the program's own data");
    GC_set_no_dls(1);
    GC_gcollect();
    churn(1 << 20);
    CHECK(strcmp(kept, "in the program's own data") == 0);
    GC_set_no_dls(0);

    GC_oom_fn = none;
    CHECK(GC_get_oom_fn() == none && GC_malloc((size_t)1 << 60) == &asked);

    unsigned objects = 0;
    GC_alloc_lock();
    GC_enumerate_reachable_objects_inner(count, &objects);
    GC_alloc_unlock();
    CHECK(objects > 0);
    struct GC_prof_stats_s stats;
    CHECK(GC_get_prof_stats(&stats, sizeof stats) == sizeof stats && stats.heapsize_full == GC_get_heap_size() && stats.gc_no == GC_gc_no);
    CHECK(GC_get_size_map_at(-1) == (size_t)-1 && GC_get_size_map_at(1) == 16);
    struct GC_timeval_s limit = { 7, 500 };
    GC_set_time_limit_tv(limit);
    CHECK(GC_get_time_limit_tv().tv_ms == 7 && GC_get_time_limit_tv().tv_nsec == 500 && GC_time_limit == 7);
    /* More arguments than fit in registers. */
    GC_printf("%s%c %s%.*s%s%s%c%s\n", "variables", 58, "as", 0, "no", " pro", "mise", 100, "");
    return 0;
}
