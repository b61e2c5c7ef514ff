/* What runtimes of Java ask of libgc: every finalizer run at the end, single threads suspended. */
#ifndef GC_JAVAXFC_H
#define GC_JAVAXFC_H

#include "gc.h"

#ifdef __cplusplus
extern "C" {
#endif

GC_API void GC_finalize_all(void);
#ifdef GC_THREADS
#ifndef GC_SUSPEND_THREAD_ID
#define GC_SUSPEND_THREAD_ID pthread_t
#endif
GC_API void GC_suspend_thread(GC_SUSPEND_THREAD_ID thread);
GC_API void GC_resume_thread(GC_SUSPEND_THREAD_ID thread);
GC_API int GC_is_thread_suspended(GC_SUSPEND_THREAD_ID thread);
#endif

#ifdef __cplusplus
}
#endif

#endif
