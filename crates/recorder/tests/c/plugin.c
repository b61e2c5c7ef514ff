/* A library loaded and unloaded again and again; compiled twice, with different lines at the same addresses. */
#include <stdlib.h>

void *plugin(int bytes) {
#ifdef SECOND
    return malloc(bytes); //= malloc=15
#else

    return malloc(bytes); //= malloc=15
#endif
}
