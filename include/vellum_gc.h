/* Vellum's garbage collector: memory that is given back when nothing refers to it any more.
 *
 * Link with -lvellum. There is one heap a process; it starts at the first call, or with vel_gc_init().
 *
 * An object is kept alive by a pointer to any byte of it. The pointer may be in a register or on the stack of any thread that has
 * called the collector, in the static data of the program and its libraries, in memory added by vel_gc_roots_add(), or in an
 * object that is itself alive. A pointer to the first byte after an object is not a pointer to it. Memory from malloc() and
 * mmap() is not scanned.
 *
 * Objects are of three sorts: untyped (any aligned word may be a pointer), typed (a bitmap says which words may be) and
 * atomic (none is). Small objects have no header. Every object is aligned to 16 bytes at least. Untyped and typed objects
 * come filled with zeros, atomic ones with whatever was there.
 *
 * All functions may be called from any thread, but not from signal handlers, and not from the callbacks that say so.
 * Functions that allocate return NULL, with errno ENOMEM, when there is no memory (see vel_gc_on_full()).
 */
#ifndef VELLUM_GC_H
#define VELLUM_GC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The heap ---------------------------------------------------------------------------------------------------- */

/* Plans. Marks live objects and uses the room between them again; nothing ever moves. */
#define VEL_GC_MARK_SWEEP 0
/* Empties blocks with few live objects: these move, unless an ambiguous word may refer to them: in a register or on a stack, in static
 * data, or in an untyped object. For programs that declare the types of nearly everything. The pointers to an object that moves are its
 * fields alone. So a pointer word of a typed object must hold a pointer, or a value that is no address in the heap (null, a small number).
 * An address that is hashed or sorted by must be taken again after each collection (vel_gc_get_stats(): collections), unless a pointer on
 * the stack, a finalizer or a link keeps the object where it is. */
#define VEL_GC_MOSTLY_COPYING 1
/* Generations. Minor collections copy live new objects to the old region; major ones copy that whole. Objects move as described above.
 * Minor collections need to know which old objects were written to: see `tells_writes`. Where writes are not tracked, every collection is
 * a major one. */
#define VEL_GC_APPEL 2

/* What collections under VEL_GC_APPEL copy, and what becomes of the region that a major one has vacated. Blocks of which
 * seven eighths or more are alive stay where they are, and only the others are copied; new objects are made in what is vacated. */
#define VEL_GC_STAY 0
/* Everything alive is copied, and the vacated region is left alone as long as there is other memory, so that the heap drifts through its
 * address space; */
#define VEL_GC_DRIFT 1
/* everything alive is copied, and by a second pass back to the lowest addresses; */
#define VEL_GC_COPY_BACK 2
/* everything alive is copied, and new objects are made in the vacated region at once, while it is in memory. */
#define VEL_GC_REUSE 3

/* Ways to size the heap. By the costs of collections and page faults and by the memory available (control groups, the machine, a governor's
 * advice, swap or none): nothing to tune. */
#define VEL_GC_KNEE 0
/* The strategy of Standard ML of New Jersey: ratio times the live bytes up to mem_limit, then mem_limit, then three times the live bytes. */
#define VEL_GC_ORIGINAL 1
/* That of Cooper, Nettles and Subramanian 1992: the part of mem_limit that live objects leave is for new ones, min_new_size at least. Where
 * there are minor collections, a major one is due when the old region has mem_limit / 2, or min_old_incr more than the live bytes. */
#define VEL_GC_MODIFIED 2
/* That of Kirisame, Shenoy and Panchekha 2022: M = L + sqrt(L g / (c s)). */
#define VEL_GC_SQUARE_ROOT 3

/* Settings of a heap. Zero means the default everywhere, so that `= { sizeof(struct vel_gc_config) }` is all defaults. */
struct vel_gc_config {
    size_t config_bytes; /* sizeof(struct vel_gc_config): lets the structure grow in later versions */
    int plan;            /* VEL_GC_MARK_SWEEP (the default), VEL_GC_MOSTLY_COPYING or VEL_GC_APPEL */
    int only_starts;     /* 1: in the heap, only pointers to an object's first byte count; roots may point inside */
    size_t limit_bytes;  /* blocks and large objects together never exceed this; metadata comes on top (see max_bytes); 0: no limit */
    size_t fixed_bytes;  /* collect when the heap has this size at the latest, sooner where that costs less; 0: by live size */
    unsigned percent;    /* room beyond live size before the next collection, in percent of it (small heaps get more); 0: 75 */
    int poison;          /* 1: dead objects are overwritten, so that one that was freed too early is noticed at once */
    unsigned slice_us;   /* collect in slices of this many microseconds between which the program runs; 0: at one go */
    int safepoints;      /* 1: threads stop for collections where they allocate and in vel_gc_safepoint() only; 0: by a signal */
    int tells_writes;    /* 1: every store of a pointer into an object is made by vel_gc_write() */
    size_t max_bytes;    /* the heap with everything the collector keeps beside it (descriptors, mark stack, tables, threads' records) never
                          * exceeds this, 1 MiB at least; 0: no maximum */
    int paranoid;        /* 1: every invariant is checked after each phase of each collection; a broken one ends the process. Slow */
    unsigned eager;      /* one allocation in this many, at random, collects, or makes a slice, once 64 KiB were allocated; 1: every one, from the first on,
                          * which is very slow. For tests */
    int idle_thread;     /* 1: a thread of the collector's own does what vel_gc_idle() does while all others are in vel_gc_blocking() */
    unsigned markers;    /* threads that mark in a collection at one go while 32 MiB or more live, 16 at most; 0: one for each processor, four at
                          * most; 1: only the thread that collects */
    int sizing;          /* VEL_GC_KNEE (the default) or another way to size the heap; percent and fixed_bytes are for that one only */
    unsigned ratio;      /* VEL_GC_ORIGINAL: the target ratio of heap size to live size, 2 at least; 0: 3 */
    size_t mem_limit;    /* VEL_GC_ORIGINAL, VEL_GC_MODIFIED: the memory use target, in bytes */
    size_t min_new_size; /* VEL_GC_MODIFIED: the minimum new heap size, in bytes */
    size_t min_old_incr; /* VEL_GC_MODIFIED: the minimum old heap increment, in bytes */
    unsigned c_thousandths; /* VEL_GC_SQUARE_ROOT: c, in thousandths a MiB; 0: 20 */
    int after_major;     /* VEL_GC_STAY (the default), VEL_GC_DRIFT, VEL_GC_COPY_BACK or VEL_GC_REUSE */
    int precise_stacks;  /* 1: stacks and registers are not scanned; every pointer on a stack that is needed beyond the next call that may
                          * collect is in a frame (vel_gc_push()). Implies `safepoints`: a thread stops where it allocates beyond the inlined path, in
                          * other functions of this header, and in vel_gc_safepoint() */
    unsigned divisor;    /* replaces percent: the bytes allocated between collections are those that the last one scanned, divided by this
                          * number, or as many as are free in a heap as large as this one was; 0: percent */
    uint64_t seed;       /* the seed of the random points of `eager` */
    int sticky_marks;    /* VEL_GC_MARK_SWEEP without slice_us: 1: the marks of old objects may stay, so that most collections trace new
                          * objects only. Needs tells_writes, or a kernel that tracks writes (Linux 6.7); otherwise it changes nothing */
};

/* Starts the heap. Returns 0; or -1 with errno: EBUSY if it has started already; EINVAL for settings that are not served; ENOMEM. Not served
 * are a plan or a sizing that this library lacks, percent, max_bytes or ratio out of range, and a parameter of another sizing than the one
 * named. Without this call the heap starts with the defaults. */
int vel_gc_init(const struct vel_gc_config *config);

/* ---- Allocation -------------------------------------------------------------------------------------------------- */

/* A type: how large an object is and where its pointers are. Made once, never freed; equal ones are shared.
 * The fields are for the inline functions below. */
struct vel_gc_layout {
    uint32_t slot;
    uint32_t bytes;
};
typedef const struct vel_gc_layout *vel_gc_type;

/* The type of objects of `bytes` bytes, of which word i (8 bytes each) may hold a pointer if bit i % 64 of
 * `pointers[i / 64]` is set. NULL with errno EINVAL if `bytes` is 0 or more than VEL_GC_TYPE_MAX, ENOMEM if there are too many types. */
vel_gc_type vel_gc_type_of(size_t bytes, const uint64_t *pointers);
#define VEL_GC_TYPE_MAX 4096

/* Where a bitmap cannot say it: the type of objects whose pointers `procedure` names, each by vel_gc_visit() or a range of them by
 * vel_gc_visit_words(). During collections, with all threads stopped, it is called for every live object of the type, from the object's
 * allocation on (it reads zero then). It must not call any other function of this header, allocate, lock or block. Pointers that it leaves
 * out keep nothing; those it names may lie anywhere. Objects are made by vel_gc_new_array(type, words). NULL with errno EINVAL without a
 * procedure, or ENOMEM, also under plans that move objects, which have no such types. From the first such type on, collections are made at
 * one go and by one thread. */
struct vel_gc_visitor;
typedef void (*vel_gc_trace_fn)(void *object, size_t bytes, void *data, const struct vel_gc_visitor *visitor);
vel_gc_type vel_gc_type_by(vel_gc_trace_fn procedure, void *data);
void vel_gc_visit(const struct vel_gc_visitor *visitor, const void *pointer);
void vel_gc_visit_words(const struct vel_gc_visitor *visitor, const void *start, const void *end);

/* An array of `count` elements of a type, which follow each other at the type's size rounded up to words. */
void *vel_gc_new_array(vel_gc_type type, size_t count);

/* Objects that are kept until vel_gc_free(), and whose contents keep others alive; the second without pointers, not cleared. */
void *vel_gc_alloc_uncollectable(size_t bytes);
void *vel_gc_alloc_atomic_uncollectable(size_t bytes);

/* Has an object stay until vel_gc_free(), as one of vel_gc_alloc_uncollectable(). 0, or -1 with errno EINVAL (not the start of an object) or
 * ENOMEM. */
int vel_gc_keep(void *object);

/* Aligned to `align` bytes, a power of two up to 16384. Untyped, or atomic if `atomic`. */
void *vel_gc_alloc_aligned(size_t bytes, size_t align, int atomic);

/* Changes an object's size, moving it if it must; `object` NULL allocates an untyped one, `bytes` 0 frees. Added bytes
 * read zero unless the object is atomic. NULL: nothing has changed. Finalizers and links stay with the old object. */
void *vel_gc_realloc(void *object, size_t bytes);

/* Frees an object now. NULL is ignored; anything but the start of a live object ends the process with one line. */
void vel_gc_free(void *object);

/* The same, but the memory of an object of up to 4 KiB is not used again before the next collection, and keeps its contents until then. A
 * mark written there when it is freed can be found if it is freed once more. */
void vel_gc_free_later(void *object);

/* The inline functions call these when a run of free memory ends. Not for users. */
void *vel_gc_slow(size_t bytes);
void *vel_gc_slow_atomic(size_t bytes);
void *vel_gc_slow_type(vel_gc_type type);

/* Runs of free memory of one thread, one for each size and sort. Not for users. */
struct vel_gc_run {
    char *next;
    char *end;
};
#define VEL_GC_GRANULE 16
#define VEL_GC_INLINE_MAX 512
#define VEL_GC_ATOMIC_SLOTS 64
#if defined(__GNUC__)
extern __thread struct vel_gc_run *vel_gc_local __attribute__((tls_model("initial-exec")));
#define VEL_GC_LIKELY(condition) __builtin_expect(!!(condition), 1)
/* Read and written once for each object and in order: a collection may stop the thread in between, and relies on it. */
#define VEL_GC_NEXT(run) (*(char *volatile *)&(run)->next)
#else
#error "vellum_gc.h needs a compiler with __thread and GNU attributes (gcc, clang)"
#endif

/* An untyped object. */
static inline void *vel_gc_alloc(size_t bytes)
{
    if (VEL_GC_LIKELY(bytes - 1 < VEL_GC_INLINE_MAX)) {
        size_t granules = (bytes + VEL_GC_GRANULE - 1) / VEL_GC_GRANULE;
        struct vel_gc_run *run = vel_gc_local + granules;
        char *object = VEL_GC_NEXT(run);
        if (VEL_GC_LIKELY((size_t)(run->end - object) >= granules * VEL_GC_GRANULE)) {
            VEL_GC_NEXT(run) = object + granules * VEL_GC_GRANULE;
            return object;
        }
    }
    return vel_gc_slow(bytes);
}

/* An object without pointers. */
static inline void *vel_gc_alloc_atomic(size_t bytes)
{
    if (VEL_GC_LIKELY(bytes - 1 < VEL_GC_INLINE_MAX)) {
        size_t granules = (bytes + VEL_GC_GRANULE - 1) / VEL_GC_GRANULE;
        struct vel_gc_run *run = vel_gc_local + VEL_GC_ATOMIC_SLOTS + granules;
        char *object = VEL_GC_NEXT(run);
        if (VEL_GC_LIKELY((size_t)(run->end - object) >= granules * VEL_GC_GRANULE)) {
            VEL_GC_NEXT(run) = object + granules * VEL_GC_GRANULE;
            return object;
        }
    }
    return vel_gc_slow_atomic(bytes);
}

/* An object of a type. */
static inline void *vel_gc_new(vel_gc_type type)
{
    struct vel_gc_run *run = vel_gc_local + type->slot;
    char *object = VEL_GC_NEXT(run);
    if (VEL_GC_LIKELY((size_t)(run->end - object) >= type->bytes)) {
        VEL_GC_NEXT(run) = object + type->bytes;
        return object;
    }
    return vel_gc_slow_type(type);
}

/* With `tells_writes`, a pointer is stored into an object by this: *place = value. `place` may also be static data or on a stack.
 * A store into a new object before the same thread allocates again, and stores that are no pointers, may be made directly. Without `tells_writes`
 * the kernel tells which pages were written to (Linux 6.7; where it does not, pages are protected: see docs/gc.md), and this is just a store. */
extern unsigned char *vel_gc_cards; /* Not for users: a byte for each page of memory, from address 0. */
struct vel_gc_span { /* Not for users: the addresses that objects can have; none while there are no cards. */
    uintptr_t start, bytes;
};
extern struct vel_gc_span vel_gc_span;
#define VEL_GC_PAGE_SHIFT 12
static inline void vel_gc_write(void *place, const void *value)
{
    uintptr_t bytes = *(volatile uintptr_t *)&vel_gc_span.bytes; /* set after the other words: read before them */
    uintptr_t at = (uintptr_t)place;
    *(const void *volatile *)place = value;
    if (at - *(volatile uintptr_t *)&vel_gc_span.start < bytes)
        *(volatile unsigned char *)((uintptr_t)vel_gc_cards + (at >> VEL_GC_PAGE_SHIFT)) = 1;
}

/* ---- Collection -------------------------------------------------------------------------------------------------- */

/* Collects now. Returns 0, or -1 if collection is held off. */
int vel_gc_collect(void);

/* For a program with nothing else to do: goes on with the collection in slices that is on, or begins one if enough was allocated, for `us`
 * microseconds at most. It yields when another thread comes out of vel_gc_blocking() or waits for memory. While another thread that the
 * collector knows is not in vel_gc_blocking(), nothing is done. 1 if there may be more to do, 0 if not or if collection is held off. Needs
 * no `slice_us`. */
int vel_gc_idle(unsigned us);

/* Has `hook(kind, start_ns, end_ns)` called after each pause, with its times of CLOCK_MONOTONIC: 0 a minor collection, 1 a whole one or a slice
 * driven by allocation, 2 a slice in idle time. These are VEL_MINOR, VEL_MAJOR and VEL_IDLE of vellum_measure.h, so that a hook that makes them marks there is
 * one line. The hook runs with the collector's lock held, the world going on: it must call nothing of this header and not
 * allocate. NULL, the default: none. Returns what was. */
typedef void (*vel_gc_pause_fn)(int kind, uint64_t start_ns, uint64_t end_ns);
vel_gc_pause_fn vel_gc_on_pause(vel_gc_pause_fn hook);

/* Has `hook()` called when a collection begins, on the thread that collects, the world going on: it must call nothing of this header. NULL:
 * none. Returns what was. */
typedef void (*vel_gc_told_fn)(void);
vel_gc_told_fn vel_gc_on_begin(vel_gc_told_fn hook);

/* Holds collection off, and lets it on again; calls nest. The heap grows meanwhile, up to its limit. */
void vel_gc_hold(void);
void vel_gc_let(void);

/* Changes the heap's limit; 0: none. Takes effect at the next allocation that needs memory. */
void vel_gc_set_limit(size_t bytes);
/* Has the heap not collect before it has this size, as if it had been made with it by `fixed_bytes`, but grow beyond it as it would; less where memory is short, or
 * little is alive. 0: when it is best. */
void vel_gc_set_least(size_t bytes);
/* Changes `max_bytes`; 0: none. Memory in use already stays in use until a collection finds it dead. 0, or -1 with errno EINVAL if it is less than
 * 1 MiB. */
int vel_gc_set_max(size_t bytes);

/* Called when there is no memory for `bytes` bytes, after a collection; what it returns is returned in the object's
 * place. NULL, the default: NULL is returned. It may free, collect, or not return at all. */
typedef void *(*vel_gc_full_fn)(size_t bytes);
vel_gc_full_fn vel_gc_on_full(vel_gc_full_fn hook);

/* ---- Roots and threads ------------------------------------------------------------------------------------------- */

/* Has the bytes from `start` up to `end` scanned for pointers, as static data is. 0, or -1 with errno ENOMEM. */
int vel_gc_roots_add(const void *start, const void *end);
/* The same for pointers only: each word from `start` up to `end` holds a pointer, or what is no address in the heap, and may be
 * changed when what it points to moves. Under a plan that moves nothing there is no difference. */
int vel_gc_roots_add_precise(void *start, void *end);
/* Undoes every vel_gc_roots_add() and vel_gc_roots_add_precise() of ranges that lie in this one. Returns how many there were. */
size_t vel_gc_roots_remove(const void *start, const void *end);

/* Has `hook(visitor)` called at each collection, as a trace procedure is, to name roots that no range holds. NULL: none. Returns what was. */
typedef void (*vel_gc_roots_fn)(const struct vel_gc_visitor *visitor);
vel_gc_roots_fn vel_gc_on_roots(vel_gc_roots_fn hook);

/* Leaves static data from `start` up to `end` out: a cache that is to keep nothing, a table of numbers that look like pointers. Such a range
 * should be let in again before its library is unloaded. 0, or -1 with errno ENOMEM. */
int vel_gc_roots_exclude(const void *start, const void *end);
/* Undoes every vel_gc_roots_exclude() of ranges that lie in this one. Returns how many there were. */
size_t vel_gc_roots_include(const void *start, const void *end);

/* A frame: pointers of a function's that are known one by one. Each of `count` pointers from `roots` on leads into the heap or is no address in it
 * (null, a small number), and may be changed wherever a collection may happen, when what it leads to moves. Linked as the function begins, by
 *     void *mine[2] = {0};  struct vel_gc_frame frame;  vel_gc_push(&frame, mine, 2);
 * and unlinked before it returns; frames nest. With `precise_stacks` frames are all that is scanned of a stack, and thread-local data is not
 * scanned either; without, what they lead to stays where it is like all that a stack leads to. After longjmp() the frame that is the last one now is linked anew, or
 * vel_gc_pop() is called for the one above it. */
struct vel_gc_frame {
    struct vel_gc_frame *below;
    size_t count;
    void *roots;
};
extern __thread struct vel_gc_frame *vel_gc_frames __attribute__((tls_model("initial-exec"))); /* Not for users. */
static inline void vel_gc_push(struct vel_gc_frame *frame, void *roots, size_t count)
{
    frame->below = vel_gc_frames;
    frame->count = count;
    frame->roots = roots;
    /* Linked when it is whole: a thread may be stopped anywhere. */
    __asm__ __volatile__("" ::: "memory");
    vel_gc_frames = frame;
}
static inline void vel_gc_pop(struct vel_gc_frame *frame)
{
    __asm__ __volatile__("" ::: "memory");
    vel_gc_frames = frame->below;
}

/* A thread is known to the collector from its first call that allocates until it ends. A thread that holds
 * pointers but has never allocated makes itself known with this. 0, or -1 with errno ENOMEM. */
int vel_gc_thread_enter(void);

/* The same for as long as the calling thread lives, beside its stack: for thread-local data of libraries loaded by dlopen(), say.
 * vel_gc_roots_remove() removes these too. 0, or -1 with errno ENOMEM. */
int vel_gc_thread_roots_add(const void *start, const void *end);

/* With `safepoints`: stops here if a collection waits. A thread that runs long without allocating and without calling this, outside
 * vel_gc_blocking(), makes all others wait. */
void vel_gc_safepoint(void);

/* Calls `function(argument)` as the body of a blocking region: it must not touch the heap, and collections do not wait for
 * it or interrupt it. The thread's stack beneath stays a root. */
void *vel_gc_blocking(void *(*function)(void *), void *argument);

/* Within vel_gc_blocking(): calls `function(argument)` as if outside of it, so that it may touch the heap. Elsewhere it just calls it. */
void *vel_gc_active(void *(*function)(void *), void *argument);

/* ---- Looking ----------------------------------------------------------------------------------------------------- */

/* The start of the object that holds the byte at `address`; NULL if there is none. */
void *vel_gc_base(const void *address);
/* Bytes of room in the object that starts at `object`; 0 if none does. */
size_t vel_gc_size(const void *object);

struct vel_gc_stats {
    uint64_t collections;
    uint64_t heap_bytes;         /* blocks and large objects now */
    uint64_t heap_peak_bytes;
    uint64_t live_bytes;         /* after the last collection */
    uint64_t allocated_bytes;    /* since the start, as far as runs were handed out */
    uint64_t metadata_bytes;     /* descriptors, bitmaps and stacks of the collector itself */
    uint64_t pause_ns_last;      /* wall time for which the world stood still */
    uint64_t pause_ns_longest;
    uint64_t pause_ns_total;
    uint64_t root_ns_total;      /* of which: looking through stacks and static data */
    uint64_t mark_ns_total;      /* of which: tracing from there */
    uint64_t sweep_ns_total;     /* of which: finding what died */
    uint64_t marked_objects_last;
    uint64_t overflows;          /* times the mark stack was full and part of the heap was scanned again */
    uint64_t copied_bytes;       /* of objects that were moved */
    uint64_t pauses;             /* times the world stood still: collections at one go; slices, beginnings and ends of others */
    uint64_t slices;
    uint64_t pause_cpu_ns_longest; /* CPU time of the thread that collected */
    uint64_t pause_cpu_ns_total;
    uint64_t pause_cpu_ns_last;
    uint64_t partial;            /* of the collections: those that followed only what was new since the one before (under VEL_GC_APPEL: minor ones) */
    uint64_t protected_collections; /* those in slices for which written pages were found out by page protection */
    uint64_t unsliced;           /* those that were made at one go despite `slice_us`, or were major ones under VEL_GC_APPEL, as nobody told what is written */
    uint64_t parallel;           /* those that several threads marked at once */
    uint64_t helped_objects;     /* objects that threads of the collector's own marked in these */
    uint64_t freed_bytes;        /* of objects that their users freed */
    /* The following are sums over all collections. Of one in slices its end counts. */
    uint64_t roots_found;        /* words of registers, stacks and static data that led to an object, which they keep where it is */
    uint64_t rooted_blocks;      /* blocks (16 KiB) and large objects that they led into */
    uint64_t promoted_blocks;    /* blocks that were to be emptied and were not, as something in them had to stay where it was */
    uint64_t promoted_free_bytes; /* in these, what held nothing alive afterwards: the next objects go there */
};
/* Fills in the first `stats_bytes` bytes: sizeof(struct vel_gc_stats). */
void vel_gc_get_stats(struct vel_gc_stats *stats, size_t stats_bytes);

/* Calls `visit(object, bytes, argument)` for every object that is alive or may be, with the world stopped: it must not call any other
 * function of this header or block. Collect first to see only what is alive. */
void vel_gc_walk(void (*visit)(void *object, size_t bytes, void *argument), void *argument);

/* Checks every invariant of the heap. NULL, or the first that is broken. Slow. */
const char *vel_gc_validate(void);

/* ---- Finalizers and weak references ------------------------------------------------------------------------------ */

/* Has `finalizer(object, data)` called once after `object` has died, in place of the finalizer it had. It is called in vel_gc_finalize() or on
 * the thread whose allocation collected (with `idle_thread` also on that one). Objects that the dead one refers to stay for it.
 *
 * If several dead objects with finalizers refer to each other, those referred to wait for a later collection (cycles of them are never
 * finalized), unless `unordered` is 1. With 2, references of an object to itself do not count (in a collection that moves objects they do: it
 * leaves such an object to a later one). With 3, an object that one with an unordered finalizer refers to waits, too. NULL takes a finalizer
 * away. 0, or -1 with errno EINVAL (not the start of an object) or ENOMEM. */
typedef void (*vel_gc_finalizer)(void *object, void *data);
int vel_gc_set_finalizer(void *object, vel_gc_finalizer finalizer, void *data, int unordered);
/* The same; stores the finalizer and the data that there were (NULL if none) where `old_finalizer` and `old_data` lead, unless those are NULL.
 * The old one will not run, even if its object has died already. */
int vel_gc_replace_finalizer(void *object, vel_gc_finalizer finalizer, void *data, int unordered,
                             vel_gc_finalizer *old_finalizer, void **old_data);
/* Runs the finalizers that are due. Returns how many ran. */
size_t vel_gc_finalize(void);
/* The same, but for a call from within a finalizer, which does nothing: for hooks that collections call. */
size_t vel_gc_finalize_unless_within(void);
/* How many finalizers are due. */
size_t vel_gc_due(void);
/* Runs every finalizer there is, those of objects that are alive, too, until there is none: for a program's end. Returns how many ran. */
size_t vel_gc_finalize_all(void);
/* 1: finalizers run only in vel_gc_finalize(); 0, the default: also after collections. */
void vel_gc_finalize_on_demand(int on);

/* Has `hook()` called after a collection that finds finalizers due, where they run on demand only: to wake the thread that runs them, say. It
 * may call anything. NULL: none. Returns what was. */
vel_gc_told_fn vel_gc_on_due(vel_gc_told_fn hook);

/* Has `*link` set to NULL when `object` dies: before its finalizer runs, or after if `after_finalizer`. `link` is anywhere the
 * collector does not look (malloc, an atomic object). One within a dead object is forgotten. An earlier registration of the same `link` is
 * replaced. Where objects move, the link follows its object if it holds a pointer to it; if it holds anything else (a pointer in disguise), the
 * object stays where it is. 0, or -1 with errno ENOMEM or EINVAL. */
int vel_gc_link(void **link, void *object, int after_finalizer);
/* Undoes vel_gc_link(). The start of the object it was to; NULL if there was no such link, or its object has died. */
void *vel_gc_unlink(void **link);
/* Has what vel_gc_link() said of `from` be so of `to`, and of `from` no more; the pointer itself is the caller's to copy. 1; 0 if `from` is no
 * link; or -1 with errno ENOMEM. */
int vel_gc_move_link(void **from, void **to);

/* Has `value` live as long as the object `key`, in place of the value it had; NULL takes that away. The value does not keep the key, even if
 * it refers to it. 0, or -1 with errno EINVAL (`key` is not the start of an object) or ENOMEM. */
int vel_gc_set_ephemeron(void *key, void *value);
/* The value of the object `key`; NULL if it has none. */
void *vel_gc_ephemeron(const void *key);

/* Has `disclaimer(object, data)` called whenever a collection has found `object` dead, right after it, in place of the disclaimer it had. If
 * it returns 0, the object goes (it is garbage at the next collection); else the object stays until it is found dead again. It may call
 * anything. With `follows`, objects that the object refers to are not dead, nor finalized, before it has gone; without, they are asked about or
 * finalized at once with it. NULL takes it away. 0, or -1 with errno EINVAL (not the start of an object) or ENOMEM. */
typedef int (*vel_gc_disclaimer)(void *object, void *data);
int vel_gc_set_disclaimer(void *object, vel_gc_disclaimer disclaimer, void *data, int follows);
/* A program that reaches an object by a disguised pointer calls vel_gc_want(address, 1), so that the object is not let go. vel_gc_is_marked()
 * returns 1 if the object that holds `address` was alive at the last collection, is newer, or is wanted; 0 if it was found dead, or there is
 * none. A disclaimer asks under the lock that the program's threads hold when they call vel_gc_want(). */
void vel_gc_want(const void *address, int wanted);
int vel_gc_is_marked(const void *address);

/* ---- Other collectors' interfaces -------------------------------------------------------------------------------- */

/* The sort of the object that starts at `object`: 0 untyped, 1 atomic, 2 typed by a bitmap, 3 by a procedure, whose data is stored at `data` unless that
 * is NULL; and VEL_GC_KEPT beside it for those of vel_gc_keep(). -1 if none starts there. */
#define VEL_GC_KEPT 4
int vel_gc_sort(const void *object, void **data);

/* Has `hook(event, value)` called as a collection goes on: VEL_GC_EVENT_*. The value is the heap's size in bytes, or, of the last three, the thread or the object. The hook
 * runs with the collector's lock held, and with the world stopped from STOP_END to GO_ON_BEGIN: it must call nothing of this header but
 * vel_gc_get_stats(), which says what was at the last event, not allocate and not lock. NULL, the default: none. Returns what was. */
enum {
    VEL_GC_EVENT_BEGIN,       /* a collection begins */
    VEL_GC_EVENT_MARK_BEGIN,  /* what is alive is looked for (in slices: at the end only) */
    VEL_GC_EVENT_MARK_END,
    VEL_GC_EVENT_SWEEP_BEGIN, /* what is dead is let go of */
    VEL_GC_EVENT_SWEEP_END,
    VEL_GC_EVENT_END,
    VEL_GC_EVENT_STOP_BEGIN,  /* threads are stopped */
    VEL_GC_EVENT_STOP_END,
    VEL_GC_EVENT_GO_ON_BEGIN, /* and go on */
    VEL_GC_EVENT_GO_ON_END,
    VEL_GC_EVENT_STOPPED,     /* one of them (pthread_t) */
    VEL_GC_EVENT_GOES_ON,
    VEL_GC_EVENT_DUE          /* a finalizer became due */
};
typedef void (*vel_gc_event_fn)(int event, size_t value);
vel_gc_event_fn vel_gc_on_event(vel_gc_event_fn hook);

/* Has `hook()` asked whenever an allocation wants a collection: 0 has the heap grow instead. Called with the collector's lock held: it must call
 * nothing of this header. NULL, the default: collect. Returns what was. */
typedef int (*vel_gc_need_fn)(void);
vel_gc_need_fn vel_gc_on_need(vel_gc_need_fn hook);

/* Has `hook(library, start, bytes)` asked about each writable segment of a library (by its path, as the loader has it) whether it is scanned.
 * It is called now and when libraries come or go, with the collector's lock and the loader's held: it must call nothing of this header or of
 * the loader. NULL, the default: all are. Returns what was. */
typedef int (*vel_gc_image_fn)(const char *library, const void *start, size_t bytes);
vel_gc_image_fn vel_gc_on_image(vel_gc_image_fn hook);

/* Stops every other thread that the collector knows until vel_gc_start_world(); in between the caller must call nothing of this header, not
 * allocate and not lock. 0, or -1 with errno ENOMEM. */
int vel_gc_stop_world(void);
void vel_gc_start_world(void);

/* The calling thread's handle, for vel_gc_set_stack_end(); NULL if there is no memory. */
void *vel_gc_thread(void);
/* For programs whose threads change stacks: one beyond the highest byte of the stack that a thread, the caller or one that waits, is on. The rest of the
 * stack it has left is a root only if named elsewhere. 0, or -1 with errno EINVAL. */
int vel_gc_set_stack_end(void *thread, const void *end);
/* The same of the calling thread, by what `*place` is at each collection; NULL: by what the C library says. 0, or -1 with errno ENOMEM. */
int vel_gc_stack_end_at(const void *const *place);

/* Stops one thread until vel_gc_resume(): at once, or when it comes out of vel_gc_blocking(). It may hold any lock but the collector's. 0, or -1
 * with errno EINVAL if the collector does not know the thread. (pthread_t is an unsigned long on Linux.) */
int vel_gc_suspend(unsigned long thread);
int vel_gc_resume(unsigned long thread);

/* The signal by which threads are stopped; to be changed before the collector knows a thread. 0, or -1 with errno EBUSY or EINVAL. */
int vel_gc_signal(void);
int vel_gc_set_signal(int signal);

#ifdef __cplusplus
}
#endif

#endif
