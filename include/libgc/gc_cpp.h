/* Objects of C++ that are collected, as libgc declares them. Link with -l:libgccpp.so.1 where plain `new` is to be scanned as well.
 *
 *     class A : public gc { ... };            new A is collected, its destructor not run
 *     class B : public gc_cleanup { ... };    its destructor is run when it has died
 *     new (GC) T, new (PointerFreeGC) T       the same of any type; the latter has no pointers
 *     new (NoGC) T                            stays until it is deleted, and is scanned
 *     new (GC, function, data) T              function(object, data) is called when it has died
 */
#ifndef GC_CPP_H
#define GC_CPP_H

#include "gc.h"

#ifdef GC_NAMESPACE
#define GC_NS_QUALIFY(name) boehmgc::name
#else
#define GC_NS_QUALIFY(name) name
#endif

#ifndef GC_NO_OPERATOR_NEW_ARRAY
#define GC_OPERATOR_NEW_ARRAY
#endif

#if defined(GC_NEW_ABORTS_ON_OOM)
#define GC_OP_NEW_OOM_CHECK(object) \
    do {                            \
        if (!(object))              \
            GC_abort_on_oom();      \
    } while (0)
#elif defined(GC_INCLUDE_NEW)
#include <new>
#define GC_OP_NEW_OOM_CHECK(object)    \
    do {                               \
        if (!(object))                 \
            throw std::bad_alloc();    \
    } while (0)
#else
/* In libgccpp.so.1: throws std::bad_alloc. */
GC_API void GC_throw_bad_alloc();
#define GC_OP_NEW_OOM_CHECK(object) \
    do {                            \
        if (!(object))              \
            GC_throw_bad_alloc();   \
    } while (0)
#endif

#ifdef GC_NAMESPACE
namespace boehmgc {
#endif

enum GCPlacement {
    UseGC,
#ifndef GC_NAME_CONFLICT
    GC = UseGC,
#endif
    NoGC,
    PointerFreeGC
#ifdef GC_ATOMIC_UNCOLLECTABLE
    ,
    PointerFreeNoGC
#endif
};

extern "C" {
typedef void (GC_CALLBACK *GCCleanUpFunc)(void *object, void *data);
}

class gc {
  public:
    void *operator new(size_t bytes)
    {
        return operator new(bytes, UseGC);
    }
    void *operator new(size_t bytes, GCPlacement placement)
    {
        void *object;
        switch (placement) {
        case UseGC:
            object = GC_MALLOC(bytes);
            break;
        case PointerFreeGC:
            object = GC_MALLOC_ATOMIC(bytes);
            break;
#ifdef GC_ATOMIC_UNCOLLECTABLE
        case PointerFreeNoGC:
            object = GC_MALLOC_ATOMIC_UNCOLLECTABLE(bytes);
            break;
#endif
        case NoGC:
        default:
            object = GC_MALLOC_UNCOLLECTABLE(bytes);
        }
        GC_OP_NEW_OOM_CHECK(object);
        return object;
    }
    void *operator new(size_t, void *place) GC_NOEXCEPT
    {
        return place;
    }
    void operator delete(void *object) GC_NOEXCEPT
    {
        GC_FREE(object);
    }
    /* Called if construction fails. */
    void operator delete(void *object, GCPlacement) GC_NOEXCEPT
    {
        GC_FREE(object);
    }
    void operator delete(void *, void *) GC_NOEXCEPT {}

#ifdef GC_OPERATOR_NEW_ARRAY
    void *operator new[](size_t bytes)
    {
        return gc::operator new(bytes);
    }
    void *operator new[](size_t bytes, GCPlacement placement)
    {
        return gc::operator new(bytes, placement);
    }
    void *operator new[](size_t, void *place) GC_NOEXCEPT
    {
        return place;
    }
    void operator delete[](void *object) GC_NOEXCEPT
    {
        gc::operator delete(object);
    }
    void operator delete[](void *object, GCPlacement) GC_NOEXCEPT
    {
        gc::operator delete(object);
    }
    void operator delete[](void *, void *) GC_NOEXCEPT {}
#endif
};

/* Its destructor is run when it has died, whether it is a base or a member of the object that was allocated. */
class gc_cleanup : virtual public gc {
  public:
    gc_cleanup()
    {
        void *base = GC_base(this);
        if (!base)
            return;
        /* Nothing is registered in the place of what the program has registered itself. */
        GC_finalization_proc procedure = 0;
        void *data = 0;
        GC_register_finalizer_ignore_self(base, cleanup, reinterpret_cast<void *>(reinterpret_cast<char *>(this) - reinterpret_cast<char *>(base)),
                                          &procedure, &data);
        if (procedure)
            GC_register_finalizer_ignore_self(base, procedure, data, 0, 0);
    }
    virtual ~gc_cleanup()
    {
        void *base = GC_base(this);
        if (base)
            GC_register_finalizer_ignore_self(base, 0, 0, 0, 0);
    }

  private:
    static void GC_CALLBACK cleanup(void *base, void *offset)
    {
        reinterpret_cast<gc_cleanup *>(static_cast<char *>(base) + reinterpret_cast<ptrdiff_t>(offset))->~gc_cleanup();
    }
};

#ifdef GC_NAMESPACE
}
#endif

inline void *operator new(size_t bytes, GC_NS_QUALIFY(GCPlacement) placement, GC_NS_QUALIFY(GCCleanUpFunc) cleanup = 0, void *data = 0)
{
    void *object = GC_NS_QUALIFY(gc)::operator new(bytes, placement);
    if (cleanup && placement == GC_NS_QUALIFY(UseGC))
        GC_REGISTER_FINALIZER_IGNORE_SELF(object, cleanup, data, 0, 0);
    return object;
}
inline void operator delete(void *object, GC_NS_QUALIFY(GCPlacement), GC_NS_QUALIFY(GCCleanUpFunc), void *) GC_NOEXCEPT
{
    GC_FREE(object);
}
#ifdef GC_OPERATOR_NEW_ARRAY
inline void *operator new[](size_t bytes, GC_NS_QUALIFY(GCPlacement) placement, GC_NS_QUALIFY(GCCleanUpFunc) cleanup = 0, void *data = 0)
{
    return ::operator new(bytes, placement, cleanup, data);
}
inline void operator delete[](void *object, GC_NS_QUALIFY(GCPlacement), GC_NS_QUALIFY(GCCleanUpFunc), void *) GC_NOEXCEPT
{
    GC_FREE(object);
}
#endif

#endif
