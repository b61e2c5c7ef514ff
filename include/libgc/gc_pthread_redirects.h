/* With GC_THREADS defined: threads that a program starts are known to the collector from their start. Included by gc.h. */
#ifndef VELLUM_LIBGC_PTHREAD_REDIRECTS_H
#define VELLUM_LIBGC_PTHREAD_REDIRECTS_H

#include <pthread.h>
#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif
extern int GC_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument);
extern int GC_pthread_join(pthread_t thread, void **result);
extern int GC_pthread_detach(pthread_t thread);
extern int GC_pthread_cancel(pthread_t thread);
extern void GC_pthread_exit(void *value) __attribute__((noreturn));
/* A strictly standard program has no sets of signals. */
#if defined(_POSIX_C_SOURCE) && _POSIX_C_SOURCE >= 199506L
extern int GC_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
#endif
extern void *GC_dlopen(const char *path, int mode);
#ifdef __cplusplus
}
#endif

#ifndef GC_NO_THREAD_REDIRECTS
#undef pthread_create
#undef pthread_join
#undef pthread_detach
#undef pthread_cancel
#undef pthread_exit
#undef pthread_sigmask
#undef dlopen
#define pthread_create GC_pthread_create
#define pthread_join GC_pthread_join
#define pthread_detach GC_pthread_detach
#define pthread_cancel GC_pthread_cancel
#define pthread_exit GC_pthread_exit
#define pthread_sigmask GC_pthread_sigmask
#define dlopen GC_dlopen
#endif

#endif
