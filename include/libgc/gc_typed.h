/* Objects of which a bitmap says where pointers are, as libgc declares them. */
#ifndef VELLUM_LIBGC_GC_TYPED_H
#define VELLUM_LIBGC_GC_TYPED_H
#define GC_TYPED_H

#include "gc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef GC_word *GC_bitmap;
typedef GC_word GC_descr;
#define GC_WORDSZ (8 * sizeof(GC_word))
#define GC_BITMAP_SIZE(type) ((sizeof(type) + sizeof(GC_word) - 1) / sizeof(GC_word) / GC_WORDSZ + 1)
#define GC_get_bit(bitmap, index) (((bitmap)[(index) / GC_WORDSZ] >> ((index) % GC_WORDSZ)) & 1)
#define GC_set_bit(bitmap, index) ((bitmap)[(index) / GC_WORDSZ] |= (GC_word)1 << ((index) % GC_WORDSZ))
#define GC_WORD_OFFSET(type, field) (offsetof(type, field) / sizeof(GC_word))
#define GC_WORD_LEN(type) (sizeof(type) / sizeof(GC_word))
extern GC_descr GC_make_descriptor(const GC_word *bitmap, size_t bits);
extern void *GC_malloc_explicitly_typed(size_t bytes, GC_descr descriptor);
extern void *GC_malloc_explicitly_typed_ignore_off_page(size_t bytes, GC_descr descriptor);
extern void *GC_calloc_explicitly_typed(size_t count, size_t bytes, GC_descr descriptor);
/* An array described once and made by GC_calloc_do_explicitly_typed(), perhaps many times. */
#define GC_CALLOC_TYPED_DESCR_PTRS 1
#define GC_CALLOC_TYPED_DESCR_WORDS 8
struct GC_calloc_typed_descr_s {
    GC_word opaque[GC_CALLOC_TYPED_DESCR_WORDS];
};
extern int GC_calloc_prepare_explicitly_typed(struct GC_calloc_typed_descr_s *place, size_t room, size_t count, size_t bytes, GC_descr descriptor);
extern void *GC_calloc_do_explicitly_typed(const struct GC_calloc_typed_descr_s *place, size_t room);
#define GC_MALLOC_EXPLICITLY_TYPED(bytes, descriptor) GC_malloc_explicitly_typed(bytes, descriptor)
#define GC_CALLOC_EXPLICITLY_TYPED(count, bytes, descriptor) GC_calloc_explicitly_typed(count, bytes, descriptor)

#ifdef __cplusplus
}
#endif

#endif
