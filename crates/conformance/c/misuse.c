/* Misuse that Vellum promises to catch. Each scenario prints the address that the one line on standard error must name,
 * does the wrong thing, and, if it gets so far, says so and exits with 3. */
#include "check.h"
#include "in_thread.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

static void tell(void *address)
{
    printf("%p\n", address);
    fflush(stdout);
}

static void free_twice(size_t size)
{
    char *block = malloc(size);
    memset(block, 1, size);
    tell(block);
    free(block);
    free(block);
}

static void twice_16_bytes(void) { free_twice(16); }
static void twice_1000_bytes(void) { free_twice(1000); }
static void twice_6000_bytes(void) { free_twice(6000); }
static void twice_12_kib(void) { free_twice(12 * KIB); }
static void twice_100_kib(void) { free_twice(100 * KIB); }
static void twice_300_kib(void) { free_twice(300 * KIB); }
static void twice_1_mib(void) { free_twice(MIB); }
static void twice_64_mib(void) { free_twice(64 * MIB); }
static void twice_1_gib(void)
{
    char *block = malloc(GIB);
    tell(block);
    free(block);
    free(block);
}

static void twice_with_others_between(void)
{
    char *before = malloc(2 * MIB), *block = malloc(2 * MIB), *after = malloc(2 * MIB);
    tell(block);
    free(block);
    free(before);
    free(after);
    free(block);
}

static void twice_aligned(void)
{
    void *block = aligned_alloc(2 * MIB, 3 * MIB);
    tell(block);
    free(block);
    free(block);
}

/* One block in a while stays, so that the pages between go back and the slabs do not. */
static void free_twice_after_a_trim(size_t size, bool elsewhere)
{
    enum { BLOCKS = 4096 };
    static char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(size);
        memset(blocks[i], 1, size);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % (65536 / size) != 0)
            free(blocks[i]);
    malloc_trim(0);
    /* Half a slab away from the next that stays. */
    char *block = blocks[BLOCKS / 2 + 32768 / size];
    tell(block);
    if (elsewhere) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, free_it, block) == 0);
        pthread_join(thread, NULL);
    } else {
        free(block);
    }
}

static void twice_on_a_page_that_went_back(void) { free_twice_after_a_trim(64, false); }
static void twice_of_a_page_that_went_back(void) { free_twice_after_a_trim(4096, false); }
static void twice_on_a_page_that_went_back_by_another_thread(void) { free_twice_after_a_trim(64, true); }

static void twice_by_two_threads(void)
{
    void *block = malloc(MIB);
    tell(block);
    in_thread(free_it, block);
    free(block);
}

static void twice_and_reallocated(void)
{
    void *block = malloc(3 * MIB);
    tell(block);
    free(block);
    CHECK(realloc(block, 5 * MIB) != block);
}

static void size_of_a_freed_block(void)
{
    void *block = malloc(3 * MIB);
    tell(block);
    free(block);
    printf("%zu\n", malloc_usable_size(block));
}

static void twice_small_with_others_between(void)
{
    char *block = malloc(64), *other = malloc(64), *third = malloc(64);
    tell(block);
    free(block);
    free(other);
    CHECK(malloc(1000) != NULL);
    free(third);
    free(block);
}

static void twice_small_by_two_threads(void)
{
    char *block = malloc(64), *other = malloc(64);
    tell(block);
    in_thread(free_it, block);
    free(other);
    free(block);
}

static void resized_small(void)
{
    char *block = malloc(64);
    tell(block);
    free(block);
    CHECK(realloc(block, 60) == NULL);
}

static void size_of_a_freed_small_block(void)
{
    char *block = malloc(64);
    tell(block);
    free(block);
    printf("%zu\n", malloc_usable_size(block));
}

static void inside_a_small_block(void)
{
    char *block = malloc(100);
    tell(block + 16);
    free(block + 16);
}

static void inside_a_small_block_by_a_byte(void)
{
    char *block = malloc(5000);
    tell(block + 1);
    free(block + 1);
}

static void resized_inside_a_small_block(void)
{
    char *block = malloc(100);
    tell(block + 32);
    CHECK(realloc(block + 32, 200) == NULL);
}

static void small_beyond_the_last(void)
{
    /* In a slab, where no block has been laid out yet. */
    char *block = malloc(48 * 48);
    tell(block + 20 * 48 * 48);
    free(block + 20 * 48 * 48);
}

static void overwritten_after_free(void)
{
    char *blocks[64];
    for (int i = 0; i < 64; i++)
        blocks[i] = malloc(112);
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    tell(blocks[30]);
    memset(blocks[30], 'x', 8);
    for (int i = 0; i < 200; i++)
        CHECK(malloc(112) != NULL);
}

static void inside_by_a_word(void)
{
    char *block = malloc(MIB);
    tell(block + 16);
    free(block + 16);
}

static void inside_by_a_page(void)
{
    char *block = malloc(MIB);
    tell(block + 8 * PAGE);
    free(block + 8 * PAGE);
}

static void inside_by_megabytes(void)
{
    char *block = malloc(64 * MIB);
    tell(block + 30 * MIB);
    free(block + 30 * MIB);
}

static void inside_reallocated(void)
{
    char *block = malloc(2 * MIB);
    tell(block + MIB);
    CHECK(realloc(block + MIB, 4 * MIB) == NULL);
}

static void inside_a_freed_block(void)
{
    char *block = malloc(8 * MIB);
    tell(block + 2 * MIB);
    free(block);
    free(block + 2 * MIB);
}

static char global[64];

static void never_handed_out_static(void)
{
    tell(global + 16);
    free(global + 16);
}

static void never_handed_out_stack(void)
{
    char local[64];
    tell(local);
    free(local);
}

static void never_handed_out_low(void)
{
    tell((void *)0x1000);
    free((void *)0x1000);
}

static void never_handed_out_high(void)
{
    tell((void *)0xffffffff81000000);
    free((void *)0xffffffff81000000);
}

static void never_handed_out_mapping(void)
{
    char *map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    tell(map);
    free(map);
}

static void never_handed_out_beyond_the_last(void)
{
    /* Far from any block, but not far from where Vellum's blocks are. */
    char *block = malloc(4 * MIB);
    char *wrong = block + 40 * GIB;
    tell(wrong);
    free(wrong);
}

static void resized_static(void)
{
    tell(global);
    CHECK(realloc(global, 100) == NULL);
}

static void cpp_style(void)
{
    /* delete of what free has had: the same function in the end. */
    extern void vellum_delete(void *) __asm__("_ZdlPv") __attribute__((weak));
    void *block = malloc(5 * MIB);
    tell(block);
    free(block);
    if (vellum_delete)
        vellum_delete(block);
    else
        free(block);
}

static const struct scenario scenarios[] = {
    {"twice_16_bytes", twice_16_bytes},
    {"twice_1000_bytes", twice_1000_bytes},
    {"twice_6000_bytes", twice_6000_bytes},
    {"twice_12_kib", twice_12_kib},
    {"twice_100_kib", twice_100_kib},
    {"twice_300_kib", twice_300_kib},
    {"twice_1_mib", twice_1_mib},
    {"twice_64_mib", twice_64_mib},
    {"twice_1_gib", twice_1_gib},
    {"twice_on_a_page_that_went_back", twice_on_a_page_that_went_back},
    {"twice_of_a_page_that_went_back", twice_of_a_page_that_went_back},
    {"twice_on_a_page_that_went_back_by_another_thread", twice_on_a_page_that_went_back_by_another_thread},
    {"twice_with_others_between", twice_with_others_between},
    {"twice_aligned", twice_aligned},
    {"twice_by_two_threads", twice_by_two_threads},
    {"twice_and_reallocated", twice_and_reallocated},
    {"size_of_a_freed_block", size_of_a_freed_block},
    {"twice_small_with_others_between", twice_small_with_others_between},
    {"twice_small_by_two_threads", twice_small_by_two_threads},
    {"resized_small", resized_small},
    {"size_of_a_freed_small_block", size_of_a_freed_small_block},
    {"inside_a_small_block", inside_a_small_block},
    {"inside_a_small_block_by_a_byte", inside_a_small_block_by_a_byte},
    {"resized_inside_a_small_block", resized_inside_a_small_block},
    {"small_beyond_the_last", small_beyond_the_last},
    {"overwritten_after_free", overwritten_after_free},
    {"inside_by_a_word", inside_by_a_word},
    {"inside_by_a_page", inside_by_a_page},
    {"inside_by_megabytes", inside_by_megabytes},
    {"inside_reallocated", inside_reallocated},
    {"inside_a_freed_block", inside_a_freed_block},
    {"never_handed_out_static", never_handed_out_static},
    {"never_handed_out_stack", never_handed_out_stack},
    {"never_handed_out_low", never_handed_out_low},
    {"never_handed_out_high", never_handed_out_high},
    {"never_handed_out_mapping", never_handed_out_mapping},
    {"never_handed_out_beyond_the_last", never_handed_out_beyond_the_last},
    {"resized_static", resized_static},
    {"cpp_style", cpp_style},
};

int main(int argc, char **argv)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    int status = DISPATCH(argc, argv, scenarios);
    if (argc < 2)
        return status;
    fprintf(stderr, "the misuse went unnoticed\n");
    return 3;
}
