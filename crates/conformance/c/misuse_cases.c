/* 116 ways to misuse memory, to compare allocators by: in the manner of mimalloc-bench's security tests, each in several sizes.
 *
 * Without arguments it lists the cases; with one it commits it. The case is caught if the process is ended by a signal, or by an allocator's own
 * exit, or if no harm came of it where the case can tell (exit status 10: a request was refused, old data could not be read). It is not caught if the
 * program gets to its end: status 0. */
#include "check.h"
#include "in_thread.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

enum { HARMLESS = 10, NEIGHBOURS = 12, PRESSURE = 40000 };

/* Accesses that no compiler may leave out. */
static void put(char *at, char byte) { *(volatile char *)at = byte; }
static char get(const char *at) { return *(volatile const char *)at; }

static void harmless(void) { _exit(HARMLESS); }

/* Whether `fill` is read anywhere. Two in a row: one may be a byte of an address, or of a canary. */
static bool holds(const char *block, size_t size, char fill)
{
    bool found = false;
    for (size_t i = 1; i < size; i++)
        found |= get(block + i - 1) == fill && get(block + i) == fill;
    return found;
}

static void *fresh(size_t size)
{
    char *block = malloc(size);
    CHECK(block != NULL);
    for (size_t i = 0; i < size; i++)
        put(block + i, 's');
    return block;
}

/* As much allocation and freeing as makes most allocators use freed memory again. */
static void press(size_t size)
{
    size_t rounds = size > 64 * KIB ? 600 : PRESSURE;
    for (size_t i = 0; i < rounds; i++)
        free(malloc(size));
}

static void double_free(size_t size)
{
    char *block = fresh(size);
    free(block);
    free(block);
    press(size);
}

static void double_free_delayed(size_t size)
{
    char *block = fresh(size), *others[16];
    free(block);
    for (int i = 0; i < 16; i++)
        others[i] = fresh(size + 200);
    for (int i = 0; i < 16; i++)
        free(others[i]);
    free(block);
    press(size);
}

static void double_free_interleaved(size_t size)
{
    char *one = fresh(size), *other = fresh(size);
    free(one);
    free(other);
    free(one);
    press(size);
}

static void double_free_by_thread(size_t size)
{
    char *block = fresh(size);
    in_thread(free_it, block);
    free(block);
    press(size);
}

static void double_free_of_moved(size_t size)
{
    char *block = fresh(size), *in_the_way = fresh(size);
    char *moved = realloc(block, size * 8);
    if (moved == block)
        harmless();
    free(block);
    free(in_the_way);
    press(size);
}

static void free_inside(size_t size)
{
    char *block = fresh(size * 2);
    free(block + (size > 32 ? 32 : 16));
    press(size);
}

static void free_inside_at_a_page(size_t size)
{
    char *block = fresh(size * 2);
    char *page = (char *)(((uintptr_t)block + PAGE) & ~(PAGE - 1));
    free(page == block ? block + PAGE : page);
    press(size);
}

static void free_unaligned(size_t size)
{
    char *block = fresh(size);
    free(block + 1);
    press(size);
}

static void free_past_the_end(size_t size)
{
    char *block = fresh(size);
    free(block + malloc_usable_size(block));
    press(size);
}

static char global[256];

static void free_stack(size_t size)
{
    _Alignas(64) char local[256] = {0};
    free(local + 64);
    press(size);
}

static void free_global(size_t size)
{
    free(global + 64);
    press(size);
}

static void free_function(size_t size)
{
    free((void *)((uintptr_t)free_function & ~(uintptr_t)15));
    press(size);
}

static void free_garbage(size_t size)
{
    free((void *)0x5555deadbe00);
    press(size);
}

static void free_environment(size_t size)
{
    extern char **environ;
    free((void *)((uintptr_t)environ[0] & ~(uintptr_t)15));
    press(size);
}

static void free_far_away(size_t size)
{
    char *block = fresh(size);
    free(block + 40 * GIB);
    press(size);
}

static void free_protected(size_t size)
{
    char *map = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    free(map);
    press(size);
}

static void free_mapping(size_t size)
{
    char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    free(map + 16);
    press(size);
}

/* Blocks of one size side by side; `wrong` misuses the one in the middle, and then all are freed. */
static void among_neighbours(size_t size, void (*wrong)(char *, size_t))
{
    char *blocks[NEIGHBOURS];
    for (int i = 0; i < NEIGHBOURS; i++)
        blocks[i] = fresh(size);
    wrong(blocks[NEIGHBOURS / 2], size);
    for (int i = 0; i < NEIGHBOURS; i++)
        free(blocks[i]);
    press(size);
}

static void write_one_past(char *block, size_t size) { put(block + size, 'o'); }
static void write_eight_past(char *block, size_t size)
{
    for (int i = 0; i < 8; i++)
        put(block + size + i, 'o');
}
static void write_pages_past(char *block, size_t size)
{
    for (size_t i = 0; i < 2 * PAGE; i++)
        put(block + size + i, 'o');
}
static void write_one_before(char *block, size_t size) { put(block - 1, 'o'); }
static void write_past_usable(char *block, size_t size)
{
    size_t usable = malloc_usable_size(block);
    put(block + (usable > size ? usable : size), 'o');
}
static void string_past(char *block, size_t size)
{
    memset(block, 'a', size);
    strcpy(block + size - 8, "a string that is longer than 8");
}

static void overflow_1(size_t size) { among_neighbours(size, write_one_past); }
static void overflow_8(size_t size) { among_neighbours(size, write_eight_past); }
static void overflow_pages(size_t size) { among_neighbours(size, write_pages_past); }
static void underflow_1(size_t size) { among_neighbours(size, write_one_before); }
static void overflow_usable(size_t size) { among_neighbours(size, write_past_usable); }
static void string_overflow(size_t size) { among_neighbours(size, string_past); }

static void string_without_end(size_t size)
{
    char *block = fresh(size), *next = fresh(size);
    if (strlen(block) == size)
        harmless();
    free(next);
}

static void write_after_free(size_t size)
{
    char *block = fresh(size);
    free(block);
    for (size_t i = 0; i < 16; i++)
        put(block + i, 'w');
    press(size);
}

static void write_after_free_reused(size_t size)
{
    char *block = fresh(size), *others[64];
    free(block);
    for (int i = 0; i < 64; i++)
        others[i] = fresh(size);
    for (size_t i = 0; i < size; i++)
        put(block + i, 'w');
    bool changed = false;
    for (int i = 0; i < 64; i++)
        for (size_t j = 0; j < size; j++)
            changed |= get(others[i] + j) != 's';
    if (!changed)
        harmless();
}

static void read_after_free(size_t size)
{
    char *block = fresh(size);
    free(block);
    if (!holds(block, size, 's'))
        harmless();
}

static void read_after_free_reused(size_t size)
{
    char *block = fresh(size), *others[64];
    free(block);
    for (int i = 0; i < 64; i++)
        memset(others[i] = fresh(size), 'k', size);
    if (!holds(block, size, 'k') && !holds(block, size, 's'))
        harmless();
}

static void uninitialised(size_t size)
{
    for (int i = 0; i < 8; i++) {
        char *block = fresh(size);
        free(block);
    }
    bool old = false;
    for (int i = 0; i < 8; i++)
        old |= holds(malloc(size), size, 's');
    if (!old)
        harmless();
}

static void write_zero_size(size_t size)
{
    char *block = malloc(0);
    put(block, 'z');
    free(block);
    press(0);
}

static void read_zero_size(size_t size)
{
    char *block = malloc(0);
    printf("%d\n", get(block));
}

static void refused(void *block)
{
    if (block == NULL)
        harmless();
}

static volatile size_t huge = SIZE_MAX;

static void malloc_of_everything(size_t size) { refused(malloc(huge)); }
static void malloc_of_half(size_t size) { refused(malloc(huge / 2 + 1)); }
static void calloc_overflow(size_t size) { refused(calloc(huge / size + 2, size)); }
static void reallocarray_overflow(size_t size) { refused(reallocarray(NULL, huge / size + 2, size)); }
static void realloc_to_everything(size_t size) { refused(realloc(fresh(size), huge - 8)); }
static void aligned_to_everything(size_t size) { refused(aligned_alloc(64, huge - 63)); }
static void aligned_to_three(size_t size)
{
    void *block = NULL;
    if (posix_memalign(&block, 3, size) != 0)
        harmless();
}

static void realloc_freed(size_t size)
{
    char *block = fresh(size);
    free(block);
    char *again = realloc(block, size + 8);
    (void)again;
    press(size);
}

static void realloc_inside(size_t size)
{
    char *block = fresh(size * 2);
    char *again = realloc(block + 32, size * 4);
    (void)again;
    press(size);
}

static void realloc_stack(size_t size)
{
    _Alignas(64) char local[256] = {0};
    void *again = realloc(local + 64, size);
    (void)again;
    press(size);
}

static void realloc_garbage(size_t size)
{
    void *again = realloc((void *)0x5555deadbe00, size);
    (void)again;
    press(size);
}

static void usable_size_of_freed(size_t size)
{
    char *block = fresh(size);
    free(block);
    if (malloc_usable_size(block) == 0)
        harmless();
}

static void usable_size_inside(size_t size)
{
    char *block = fresh(size * 2);
    if (malloc_usable_size(block + 32) == 0)
        harmless();
}

static void usable_size_of_stack(size_t size)
{
    _Alignas(64) char local[256];
    memset(local, 0x41, sizeof local);
    if (malloc_usable_size(local + 64) == 0)
        harmless();
}

static void delete_with_wrong_size(size_t size)
{
    extern void *vellum_new(size_t) __asm__("_Znwm");
    extern void vellum_delete(void *, size_t) __asm__("_ZdlPvm");
    char *block = vellum_new(size);
    vellum_delete(block, size * 3);
    press(size);
}

static void *allocate_there(void *size) { return fresh((size_t)size); }

static void free_inside_of_ended_thread(size_t size)
{
    pthread_t thread;
    void *block;
    CHECK(pthread_create(&thread, NULL, allocate_there, (void *)(size * 2)) == 0 && pthread_join(thread, &block) == 0);
    free((char *)block + 32);
    press(size);
}

#define SMALL 16
#define ODD 100
#define FOUR_K 4096
#define SIXTEEN_K 16384
#define HUNDRED_K 102400
#define FOUR_M 4194304

static const struct {
    const char *name;
    void (*run)(size_t);
    size_t sizes[6];
} kinds[] = {
#define EVERY {SMALL, ODD, FOUR_K, SIXTEEN_K, HUNDRED_K, FOUR_M}
#define KIND(name, ...) {#name, name, __VA_ARGS__}
    KIND(double_free, EVERY),
    KIND(double_free_delayed, EVERY),
    KIND(double_free_interleaved, EVERY),
    KIND(double_free_by_thread, {ODD, SIXTEEN_K, FOUR_M}),
    KIND(double_free_of_moved, {ODD, FOUR_K, HUNDRED_K}),
    KIND(free_inside, EVERY),
    KIND(free_inside_at_a_page, {SIXTEEN_K, HUNDRED_K, FOUR_M}),
    KIND(free_unaligned, EVERY),
    KIND(free_past_the_end, {ODD, FOUR_K}),
    KIND(free_stack, {ODD}),
    KIND(free_global, {ODD}),
    KIND(free_function, {ODD}),
    KIND(free_garbage, {ODD}),
    KIND(free_environment, {ODD}),
    KIND(free_far_away, {ODD}),
    KIND(free_protected, {HUNDRED_K}),
    KIND(free_mapping, {HUNDRED_K}),
    KIND(overflow_1, EVERY),
    KIND(overflow_8, EVERY),
    KIND(overflow_pages, {ODD, SIXTEEN_K, FOUR_M}),
    KIND(underflow_1, {ODD, FOUR_K, FOUR_M}),
    KIND(overflow_usable, {ODD, HUNDRED_K}),
    KIND(string_overflow, {SMALL, ODD}),
    KIND(string_without_end, {SMALL, FOUR_K}),
    KIND(write_after_free, EVERY),
    KIND(write_after_free_reused, {ODD, FOUR_K, HUNDRED_K}),
    KIND(read_after_free, EVERY),
    KIND(read_after_free_reused, {ODD, HUNDRED_K}),
    KIND(uninitialised, {ODD, FOUR_K, HUNDRED_K}),
    KIND(write_zero_size, {ODD}),
    KIND(read_zero_size, {ODD}),
    KIND(malloc_of_everything, {ODD}),
    KIND(malloc_of_half, {ODD}),
    KIND(calloc_overflow, {ODD}),
    KIND(reallocarray_overflow, {ODD}),
    KIND(realloc_to_everything, {ODD}),
    KIND(aligned_to_everything, {ODD}),
    KIND(aligned_to_three, {ODD}),
    KIND(realloc_freed, {ODD, SIXTEEN_K, FOUR_M}),
    KIND(realloc_inside, {ODD, FOUR_M}),
    KIND(realloc_stack, {ODD}),
    KIND(realloc_garbage, {ODD}),
    KIND(usable_size_of_freed, {ODD, FOUR_M}),
    KIND(usable_size_inside, {ODD}),
    KIND(usable_size_of_stack, {ODD}),
    KIND(delete_with_wrong_size, {ODD, FOUR_K}),
    KIND(free_inside_of_ended_thread, {ODD}),
};

int main(int argc, char **argv)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (int j = 0; j < 6 && kinds[i].sizes[j]; j++) {
            char name[64];
            snprintf(name, sizeof name, "%s/%zu", kinds[i].name, kinds[i].sizes[j]);
            if (argc < 2)
                puts(name);
            else if (strcmp(argv[1], name) == 0)
                kinds[i].run(kinds[i].sizes[j]);
        }
    return 0;
}
