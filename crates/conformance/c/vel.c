/* Vellum's own interface, as a program finds it: by dlsym, as it is not there without Vellum. */
#include "check.h"
#include "vellum.h"
#include <dlfcn.h>
#include <malloc.h>

#define FIND(name) __typeof__(&name) find_##name = (__typeof__(&name))dlsym(RTLD_DEFAULT, #name); CHECK(find_##name)

static void vellum_batches(void)
{
    FIND(vel_malloc_batch);
    FIND(vel_malloc_sizes);
    FIND(vel_realloc_batch);
    FIND(vel_free_batch);
    enum { COUNT = 50000 };
    static void *blocks[COUNT];
    static size_t sizes[COUNT];
    size_t kinds[] = {1, 16, 48, 1000, 5000, 20000};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        size_t size = kinds[k], count = size > 1000 ? COUNT / 20 : COUNT;
        CHECK(find_vel_malloc_batch(size, count, blocks) == count);
        for (size_t i = 0; i < count; i++)
            fill(blocks[i], size, i);
        for (size_t i = 0; i < count; i++)
            CHECK_OF(is_filled(blocks[i], size, size, i) && malloc_usable_size(blocks[i]) >= size, i);
        /* Ordinary blocks: some are freed one by one, and their places in the list are null. */
        for (size_t i = 0; i < count; i += 3) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
        find_vel_free_batch(blocks, count);
    }
    uint64_t state = seeded(3);
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < COUNT; i++)
            sizes[i] = random_size(&state, 5000);
        CHECK(find_vel_malloc_sizes(sizes, COUNT, blocks) == COUNT);
        for (size_t i = 0; i < COUNT; i++)
            fill(blocks[i], sizes[i], i);
        static size_t others[COUNT];
        for (size_t i = 0; i < COUNT; i++)
            others[i] = 1 + next_random(&state) % 6000;
        CHECK(find_vel_realloc_batch(blocks, others, COUNT) == COUNT);
        for (size_t i = 0; i < COUNT; i++)
            CHECK_OF(is_filled(blocks[i], others[i], sizes[i], i), i);
        for (size_t i = COUNT - 1; i > 0; i--) {
            size_t j = next_random(&state) % (i + 1);
            void *block = blocks[i];
            blocks[i] = blocks[j];
            blocks[j] = block;
        }
        find_vel_free_batch(blocks, COUNT);
    }
    find_vel_free_batch(NULL, 0);
    CHECK(find_vel_malloc_batch(100, 0, blocks) == 0);
    /* The first are there, the rest are null. */
    size_t too_much[] = {100, 200, SIZE_MAX, 300};
    errno = 0;
    CHECK(find_vel_malloc_sizes(too_much, 4, blocks) == 2 && errno == ENOMEM);
    CHECK(blocks[0] && blocks[1] && blocks[2] == NULL && blocks[3] == NULL);
    find_vel_free_batch(blocks, 4);
}

static void vellum_relocation_and_exchange(void)
{
    FIND(vel_relocate);
    FIND(vel_swap);
    for (size_t size = 32 * KIB; size <= 64 * MIB; size *= 4)
        for (size_t align = PAGE; align <= 4 * MIB; align *= 32) {
            char *one = malloc(size), *two = malloc(size);
            fill(one, size, 1);
            fill(two, size, 2);
            char *moved = find_vel_relocate(one, align);
            CHECK_OF(moved && is_aligned(moved, align), size);
            CHECK_OF(is_filled(moved, size, size, 1), size);
            CHECK_OF(find_vel_swap(moved, two) == 0, size);
            CHECK_OF(is_filled(moved, size, size, 2) && is_filled(two, size, size, 1), size);
            moved = realloc(moved, size * 2);
            CHECK_OF(is_filled(moved, size, size, 2), size);
            /* Not of one length any more. */
            CHECK_OF(find_vel_swap(moved, two) == -1, size);
            free(moved);
            free(two);
        }
    char *small = malloc(100);
    fill(small, 100, 3);
    CHECK(find_vel_relocate(small, PAGE) == NULL && is_filled(small, 100, 100, 3));
    free(small);
}

static void vellum_blocks_of_pages(void)
{
    FIND(vel_pages_alloc);
    FIND(vel_pages_resize);
    FIND(vel_pages_free);
    FIND(vel_trim);
    for (int round = 0; round < 3; round++)
        for (size_t size = 1; size <= 32 * MIB; size = size * 5 + 1) {
            char *block = find_vel_pages_alloc(size, round == 1 ? MIB : 0, round != 2);
            CHECK_OF(block && is_aligned(block, round == 1 ? MIB : PAGE), size);
            CHECK_OF(round == 2 || is_zero(block, size), size);
            fill(block, size, size);
            char *same = find_vel_pages_resize(block, size * 2, 0);
            CHECK_OF(same == NULL || same == block, size);
            block = find_vel_pages_resize(block, size * 3, 1);
            CHECK_OF(block && is_filled(block, size, size, size), size);
            memset(block, 1, size * 3);
            CHECK_OF(find_vel_pages_free(block + PAGE) == -1, size);
            CHECK_OF(find_vel_pages_free(block) == 0, size);
            CHECK_OF(find_vel_pages_free(block) == -1, size);
        }
    errno = 0;
    CHECK(find_vel_pages_alloc(SIZE_MAX, 0, 0) == NULL && errno == ENOMEM);
    for (int severity = 0; severity <= 2; severity++)
        (void)find_vel_trim(severity);
}

static const struct scenario scenarios[] = {
    {"vellum_batches", vellum_batches},
    {"vellum_relocation_and_exchange", vellum_relocation_and_exchange},
    {"vellum_blocks_of_pages", vellum_blocks_of_pages},
};

int main(int argc, char **argv)
{
    return DISPATCH(argc, argv, scenarios);
}
