/* What libgc's headers are written with: attributes, where the compiler has them, and which threads there are. Included by gc.h.
 * A program that defines one of these before is heeded. */
#ifndef GC_CONFIG_MACROS_H
#define GC_CONFIG_MACROS_H

#include <stddef.h>

/* Whether the compiler is GNU's, or one that says so, of this version at least. */
#ifndef GC_GNUC_PREREQ
#if defined(__GNUC__) && defined(__GNUC_MINOR__)
#define GC_GNUC_PREREQ(major, minor) ((__GNUC__ << 8) + __GNUC_MINOR__ >= ((major) << 8) + (minor))
#else
#define GC_GNUC_PREREQ(major, minor) 0
#endif
#endif

/* Threads are POSIX's: GC_THREADS asks for them to be known from their start. */
#if defined(GC_THREADS) || defined(GC_PTHREADS) || defined(GC_LINUX_THREADS)
#ifndef GC_THREADS
#define GC_THREADS
#endif
#ifndef GC_PTHREADS
#define GC_PTHREADS
#endif
#ifndef GC_LINUX_THREADS
#define GC_LINUX_THREADS
#endif
#ifndef _REENTRANT
#define _REENTRANT 1
#endif
#define GC_HAVE_PTHREAD_EXIT
#define GC_PTHREAD_EXIT_ATTRIBUTE __attribute__((__noreturn__))
#endif

#ifndef GC_API
#define GC_API extern
#endif
#ifndef GC_CALL
#define GC_CALL
#endif
#ifndef GC_CALLBACK
#define GC_CALLBACK GC_CALL
#endif

#ifndef GC_ATTR_MALLOC
#if defined(GC_OOM_FUNC_RETURNS_ALIAS) || !GC_GNUC_PREREQ(3, 1)
#define GC_ATTR_MALLOC
#else
#define GC_ATTR_MALLOC __attribute__((__malloc__))
#endif
#endif
#ifndef GC_ATTR_ALLOC_SIZE
#if GC_GNUC_PREREQ(4, 3) || defined(__clang__)
#define GC_ATTR_ALLOC_SIZE(argument) __attribute__((__alloc_size__(argument)))
#define GC_ATTR_CALLOC_SIZE(count, size) __attribute__((__alloc_size__(count, size)))
#else
#define GC_ATTR_ALLOC_SIZE(argument)
#endif
#endif
#ifndef GC_ATTR_CALLOC_SIZE
#define GC_ATTR_CALLOC_SIZE(count, size)
#endif
#ifndef GC_ATTR_NONNULL
#if GC_GNUC_PREREQ(4, 0)
#define GC_ATTR_NONNULL(argument) __attribute__((__nonnull__(argument)))
#else
#define GC_ATTR_NONNULL(argument)
#endif
#endif
#ifndef GC_ATTR_CONST
#if GC_GNUC_PREREQ(4, 0)
#define GC_ATTR_CONST __attribute__((__const__))
#else
#define GC_ATTR_CONST
#endif
#endif
#ifndef GC_ATTR_DEPRECATED
#define GC_ATTR_DEPRECATED
#endif

#ifdef __cplusplus
#ifndef GC_ATTR_EXPLICIT
#define GC_ATTR_EXPLICIT explicit
#endif
#ifndef GC_NOEXCEPT
#if __cplusplus >= 201103L
#define GC_NOEXCEPT noexcept
#else
#define GC_NOEXCEPT throw()
#endif
#endif
#endif

#endif
