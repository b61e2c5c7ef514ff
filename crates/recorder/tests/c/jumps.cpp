// A new-handler that jumps out of operator new, and operations further down the stack afterwards.
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <new>

static jmp_buf out;
static void *volatile kept;
static volatile std::size_t too_much = PTRDIFF_MAX - 4096;

static void leave() {
    longjmp(out, 1);
}

__attribute__((noinline)) static int deeper(int depth) {
    volatile char room[128];
    room[0] = static_cast<char>(depth);
    if (depth > 0)
        return deeper(depth - 1) + room[0];
    kept = std::malloc(100); //= malloc=1000
    std::free(kept); //= free=1000
    return room[0];
}

int main() {
    std::set_new_handler(leave);
    for (volatile int i = 0; i < 10; i = i + 1) {
        if (setjmp(out) == 0)
            kept = operator new(too_much); //= new=10
        for (int j = 0; j < 100; j++)
            deeper(4);
    }
    return 0;
}
