/* Allocators for containers of C++, as libgc declares them.
 *
 *     std::vector<T *, gc_allocator<T *> >                its memory is collected, and scanned unless T has no pointers
 *     std::vector<T *, gc_allocator_ignore_off_page<T *> > the same
 *     std::list<T *, traceable_allocator<T *> >           its memory stays until it is deallocated, and is scanned
 *
 * GC_DECLARE_PTRFREE(T) says that T has no pointers; of the arithmetic types that is known.
 */
#ifndef GC_ALLOCATOR_H
#define GC_ALLOCATOR_H

#include "gc.h"
#include <new>

struct GC_true_type {};
struct GC_false_type {};
template <class T>
struct GC_type_traits {
    GC_false_type GC_is_ptr_free;
};
#define GC_DECLARE_PTRFREE(T)          \
    template <>                        \
    struct GC_type_traits<T> {         \
        GC_true_type GC_is_ptr_free;   \
    }
GC_DECLARE_PTRFREE(char);
GC_DECLARE_PTRFREE(signed char);
GC_DECLARE_PTRFREE(unsigned char);
GC_DECLARE_PTRFREE(signed short);
GC_DECLARE_PTRFREE(unsigned short);
GC_DECLARE_PTRFREE(signed int);
GC_DECLARE_PTRFREE(unsigned int);
GC_DECLARE_PTRFREE(signed long);
GC_DECLARE_PTRFREE(unsigned long);
GC_DECLARE_PTRFREE(float);
GC_DECLARE_PTRFREE(double);
GC_DECLARE_PTRFREE(long double);

/* Memory for containers: collected, without pointers or with, or kept. */
inline void *GC_selective_alloc(size_t bytes, GC_false_type)
{
    return GC_MALLOC(bytes);
}
inline void *GC_selective_alloc(size_t bytes, GC_true_type)
{
    return GC_MALLOC_ATOMIC(bytes);
}

/* What the allocators have in common; `get` is the class that gets and gives back their memory. */
#define VELLUM_LIBGC_ALLOCATOR(name, get, give)                                      \
    template <class T>                                                               \
    class name {                                                                     \
      public:                                                                        \
        typedef size_t size_type;                                                    \
        typedef ptrdiff_t difference_type;                                           \
        typedef T *pointer;                                                          \
        typedef const T *const_pointer;                                              \
        typedef T &reference;                                                        \
        typedef const T &const_reference;                                            \
        typedef T value_type;                                                        \
        template <class U>                                                           \
        struct rebind {                                                              \
            typedef name<U> other;                                                   \
        };                                                                           \
        name() GC_NOEXCEPT {}                                                        \
        name(const name &) GC_NOEXCEPT {}                                            \
        template <class U>                                                           \
        GC_ATTR_EXPLICIT name(const name<U> &) GC_NOEXCEPT                           \
        {                                                                            \
        }                                                                            \
        ~name() GC_NOEXCEPT {}                                                       \
        pointer address(reference value) const                                       \
        {                                                                            \
            return &value;                                                           \
        }                                                                            \
        const_pointer address(const_reference value) const                           \
        {                                                                            \
            return &value;                                                           \
        }                                                                            \
        T *allocate(size_type count, const void * = 0)                               \
        {                                                                            \
            void *memory = count > max_size() ? 0 : get;                             \
            if (!memory)                                                             \
                throw std::bad_alloc();                                              \
            return static_cast<T *>(memory);                                         \
        }                                                                            \
        void deallocate(pointer memory, size_type) GC_NOEXCEPT                       \
        {                                                                            \
            give;                                                                    \
        }                                                                            \
        size_type max_size() const GC_NOEXCEPT                                       \
        {                                                                            \
            return static_cast<size_type>(-1) / 2 / sizeof(T);                       \
        }                                                                            \
        void construct(pointer place, const T &value)                                \
        {                                                                            \
            ::new (static_cast<void *>(place)) T(value);                             \
        }                                                                            \
        void destroy(pointer place)                                                  \
        {                                                                            \
            place->~T();                                                             \
        }                                                                            \
    };                                                                               \
    template <>                                                                      \
    class name<void> {                                                               \
      public:                                                                        \
        typedef size_t size_type;                                                    \
        typedef ptrdiff_t difference_type;                                           \
        typedef void *pointer;                                                       \
        typedef const void *const_pointer;                                           \
        typedef void value_type;                                                     \
        template <class U>                                                           \
        struct rebind {                                                              \
            typedef name<U> other;                                                   \
        };                                                                           \
    };                                                                               \
    template <class T, class U>                                                      \
    inline bool operator==(const name<T> &, const name<U> &) GC_NOEXCEPT             \
    {                                                                                \
        return true;                                                                 \
    }                                                                                \
    template <class T, class U>                                                      \
    inline bool operator!=(const name<T> &, const name<U> &) GC_NOEXCEPT             \
    {                                                                                \
        return false;                                                                \
    }

VELLUM_LIBGC_ALLOCATOR(gc_allocator, GC_selective_alloc(count * sizeof(T), GC_type_traits<T>().GC_is_ptr_free), GC_FREE(memory))
VELLUM_LIBGC_ALLOCATOR(gc_allocator_ignore_off_page, GC_selective_alloc(count * sizeof(T), GC_type_traits<T>().GC_is_ptr_free), GC_FREE(memory))
VELLUM_LIBGC_ALLOCATOR(traceable_allocator, GC_MALLOC_UNCOLLECTABLE(count * sizeof(T)), GC_FREE(memory))
#undef VELLUM_LIBGC_ALLOCATOR

#endif
