/* What is asked of objects that were found dead, as libgc declares it. */
#ifndef GC_DISCLAIM_H
#define GC_DISCLAIM_H

#include "gc.h"

#ifdef __cplusplus
extern "C" {
#endif

GC_API void GC_init_finalized_malloc(void);

/* Has `procedure` asked of objects of `kind`, made from now on, that were found dead: anything but 0 has one stay until the next collection. With
 * `mark_from_all`, what the dead refer to stays at least as long. */
typedef int (GC_CALLBACK *GC_disclaim_proc)(void *object);
GC_API void GC_register_disclaim_proc(int kind, GC_disclaim_proc procedure, int mark_from_all);

/* An object of which `closure->proc(object, closure->cd)` is called, once, when it was found dead; what it refers to is there then. */
struct GC_finalizer_closure {
    GC_finalization_proc proc;
    void *cd;
};
GC_API void *GC_finalized_malloc(size_t bytes, const struct GC_finalizer_closure *closure);

#ifdef __cplusplus
}
#endif

#endif
