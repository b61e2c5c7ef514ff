/* Allocation from lists of free objects that a program keeps itself, as libgc declares it.
 *
 * The lists are refilled by GC_generic_malloc_many(). Here GC_MALLOC() allocates inline already, so that these are no faster; they are
 * for programs that are written with them.
 */
#ifndef GC_INLINE_H
#define GC_INLINE_H

#include "gc.h"
#include "gc_tiny_fl.h"

#ifdef __cplusplus
extern "C" {
#endif

#if GC_GNUC_PREREQ(3, 0)
#define GC_EXPECT(expression, outcome) __builtin_expect((expression), (outcome))
#else
#define GC_EXPECT(expression, outcome) (expression)
#endif
#ifndef GC_ASSERT
#define GC_ASSERT(expression) ((void)0)
#endif
#ifndef GC_PREFETCH_FOR_WRITE
#if GC_GNUC_PREREQ(3, 0)
#define GC_PREFETCH_FOR_WRITE(place) __builtin_prefetch((place), 1)
#else
#define GC_PREFETCH_FOR_WRITE(place) ((void)0)
#endif
#endif

/* Kinds that there are from the start: objects without pointers, and those in which any word may be one. */
#define GC_I_PTRFREE 0
#define GC_I_NORMAL 1

GC_API void GC_generic_malloc_many(size_t bytes, int kind, void **result);
GC_API void *GC_malloc_kind(size_t bytes, int kind);
GC_API void *GC_malloc_kind_global(size_t bytes, int kind);
GC_API void GC_print_free_list(int kind, size_t granules);

/* Sets `result` to an object of `granules` granules: off `lists[granules]`, or, while fewer than `direct` were made and for long ones, what
 * `otherwise` is. An entry of a list up to `direct` is a count, not an object. `initialise` is done with an object off a list, whose first word
 * leads to the next. */
#define GC_FAST_MALLOC_GRANS(result, granules, lists, direct, kind, otherwise, initialise)                                    \
    do {                                                                                                                      \
        if (GC_EXPECT((granules) >= GC_TINY_FREELISTS, 0)) {                                                                  \
            (result) = (otherwise);                                                                                           \
        } else {                                                                                                              \
            void **GC_list = (lists) + (granules);                                                                            \
            GC_word GC_first = (GC_word)*GC_list;                                                                             \
            if (GC_first != 0 && GC_first <= (GC_word)(direct)) {                                                             \
                *GC_list = (char *)*GC_list + (granules) + 1;                                                                 \
                (result) = (otherwise);                                                                                       \
            } else {                                                                                                          \
                if (GC_first <= (GC_word)(direct) + GC_TINY_FREELISTS + 1)                                                    \
                    GC_generic_malloc_many((granules) ? GC_RAW_BYTES_FROM_INDEX(granules) : GC_GRANULE_BYTES, (kind), GC_list); \
                if (GC_EXPECT(*GC_list == NULL, 0)) {                                                                         \
                    (result) = (*GC_get_oom_fn())((granules) * GC_GRANULE_BYTES);                                             \
                } else {                                                                                                      \
                    (result) = *GC_list;                                                                                      \
                    *GC_list = GC_NEXT(*GC_list);                                                                             \
                    initialise;                                                                                               \
                }                                                                                                             \
            }                                                                                                                 \
        }                                                                                                                     \
    } while (0)

#define GC_WORDS_TO_WHOLE_GRANULES(words) GC_WORDS_TO_GRANULES((words) + GC_GRANULE_WORDS - 1)
#define GC_MALLOC_WORDS_KIND(result, words, lists, kind, initialise)                                          \
    do {                                                                                                      \
        size_t GC_granules = GC_WORDS_TO_WHOLE_GRANULES(words);                                               \
        GC_FAST_MALLOC_GRANS(result, GC_granules, lists, 0, kind,                                             \
                             GC_malloc_kind(GC_granules * GC_GRANULE_BYTES, kind), initialise);               \
    } while (0)
#define GC_MALLOC_WORDS(result, words, lists) \
    GC_MALLOC_WORDS_KIND(result, words, lists, GC_I_NORMAL, *(void **)(result) = NULL)
#define GC_MALLOC_ATOMIC_WORDS(result, words, lists) GC_MALLOC_WORDS_KIND(result, words, lists, GC_I_PTRFREE, (void)0)
/* A pair. */
#define GC_CONS(result, first, second, lists)                                          \
    do {                                                                               \
        void *GC_car = (void *)(first), *GC_cdr = (void *)(second);                    \
        GC_MALLOC_WORDS_KIND(result, 2, lists, GC_I_NORMAL, (void)0);                  \
        if ((result) != NULL) {                                                        \
            ((void **)(result))[0] = GC_car;                                           \
            GC_PTR_STORE_AND_DIRTY((void **)(result) + 1, GC_cdr);                     \
            GC_reachable_here(GC_car);                                                 \
        }                                                                              \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
