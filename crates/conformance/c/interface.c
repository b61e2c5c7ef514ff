/* The C library's malloc interface: what each function returns, what it sets, what it leaves alone. */
#include "check.h"
#include <dlfcn.h>
#include <malloc.h>

/* Sizes that matter: every small one, and the borders of every power of two up to 64 MiB. */
static size_t ladder[2048];
static size_t rungs;

static void build_ladder(void)
{
    for (size_t size = 1; size <= 1100; size++)
        ladder[rungs++] = size;
    for (size_t power = 2048; power <= 32 * MIB; power *= 2)
        for (int part = 4; part < 8; part++)
            for (int off = -1; off <= 1; off++)
                ladder[rungs++] = power / 4 * (size_t)part + (size_t)off;
}

static void too_large_is_refused(void)
{
    size_t sizes[] = {(size_t)PTRDIFF_MAX + 1, SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 4096, (size_t)PTRDIFF_MAX};
    char *kept = malloc(100);
    char *big = malloc(MIB);
    fill(kept, 100, 1);
    fill(big, MIB, 2);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        errno = 0;
        CHECK_OF(malloc(sizes[i]) == NULL, i);
        CHECK_OF(errno == ENOMEM, i);
        errno = 0;
        CHECK_OF(calloc(1, sizes[i]) == NULL, i);
        CHECK_OF(errno == ENOMEM, i);
        errno = 0;
        CHECK_OF(realloc(NULL, sizes[i]) == NULL, i);
        CHECK_OF(errno == ENOMEM, i);
        errno = 0;
        CHECK_OF(realloc(kept, sizes[i]) == NULL, i);
        CHECK_OF(errno == ENOMEM, i);
        errno = 0;
        CHECK_OF(realloc(big, sizes[i]) == NULL, i);
        CHECK_OF(errno == ENOMEM, i);
        errno = 0;
        CHECK_OF(aligned_alloc(64, sizes[i]) == NULL, i);
        CHECK_OF(errno == ENOMEM, i);
        errno = 0;
        CHECK_OF(memalign(4096, sizes[i]) == NULL, i);
        CHECK_OF(errno == ENOMEM, i);
        errno = 0;
        CHECK_OF(valloc(sizes[i]) == NULL, i);
        CHECK_OF(errno == ENOMEM, i);
        errno = 0;
        CHECK_OF(pvalloc(sizes[i]) == NULL, i);
        CHECK_OF(errno == ENOMEM, i);
        void *untouched = &sizes;
        CHECK_OF(posix_memalign(&untouched, 64, sizes[i]) == ENOMEM, i);
        CHECK(untouched == &sizes);
    }
    CHECK(is_filled(kept, 100, 100, 1));
    CHECK(is_filled(big, MIB, MIB, 2));
    free(kept);
    free(big);
}

static void overflow_is_refused(void)
{
    size_t pairs[][2] = {
        {SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX, SIZE_MAX}, {(size_t)1 << 32, (size_t)1 << 32}, {SIZE_MAX / 16 + 1, 16},
        {3, SIZE_MAX / 2},
    };
    char *kept = malloc(1000);
    fill(kept, 1000, 3);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        errno = 0;
        CHECK_OF(calloc(pairs[i][0], pairs[i][1]) == NULL, i);
        CHECK_OF(errno == ENOMEM, i);
        errno = 0;
        CHECK_OF(reallocarray(kept, pairs[i][0], pairs[i][1]) == NULL, i);
        CHECK_OF(errno == ENOMEM, i);
        errno = 0;
        CHECK_OF(reallocarray(NULL, pairs[i][0], pairs[i][1]) == NULL, i);
        CHECK_OF(errno == ENOMEM, i);
    }
    CHECK(is_filled(kept, 1000, 1000, 3));
    kept = reallocarray(kept, 100, 40);
    CHECK(kept != NULL && is_filled(kept, 1000, 1000, 3));
    free(kept);
}

static void nothing_is_something(void)
{
    char *one = malloc(0), *two = malloc(0), *three = calloc(0, 8), *four = calloc(8, 0);
    CHECK(one && two && three && four);
    CHECK(one != two && one != three && three != four);
    free(one);
    free(two);
    free(three);
    free(four);
    free(NULL);
    CHECK(malloc_usable_size(NULL) == 0);
    void *block = NULL;
    CHECK(posix_memalign(&block, 64, 0) == 0 && is_aligned(block, 64));
    free(block);
    block = memalign(1 << 16, 0);
    CHECK(block != NULL && is_aligned(block, 1 << 16));
    free(block);
    block = realloc(NULL, 0);
    CHECK(block != NULL);
    CHECK(realloc(block, 0) == NULL);
    block = malloc(3 * MIB);
    CHECK(realloc(block, 0) == NULL);
}

static void every_block_is_aligned_and_whole(void)
{
    enum { KEPT = 64 };
    struct {
        unsigned char *start;
        size_t size;
    } kept[KEPT] = {{0}};
    for (size_t i = 0; i < rungs; i++) {
        size_t size = ladder[i];
        unsigned char *block = malloc(size);
        CHECK_OF(block != NULL, size);
        CHECK_OF(is_aligned(block, 16), size);
        size_t usable = malloc_usable_size(block);
        CHECK_OF(usable >= size, size);
        /* All that is usable is ours: filling it must disturb nobody. */
        fill(block, usable, size);
        size_t slot = i % KEPT;
        if (kept[slot].start) {
            CHECK_OF(is_filled(kept[slot].start, kept[slot].size, malloc_usable_size(kept[slot].start), kept[slot].size),
                     kept[slot].size);
            free(kept[slot].start);
        }
        kept[slot].start = block;
        kept[slot].size = size;
    }
    for (size_t slot = 0; slot < KEPT; slot++)
        free(kept[slot].start);
}

static void calloc_clears_dirty_memory(void)
{
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < rungs; i += 1 + (ladder[i] > 4 * MIB)) {
            size_t size = ladder[i];
            unsigned char *dirty = malloc(size);
            CHECK_OF(dirty != NULL, size);
            memset(dirty, 0xA5, malloc_usable_size(dirty));
            free(dirty);
            unsigned char *clean = calloc(1, size);
            CHECK_OF(clean != NULL, size);
            CHECK_OF(is_zero(clean, size), size);
            memset(clean, 0x5A, size);
            free(clean);
        }
    /* A block cut out of a larger dirty one, and one glued from several. */
    for (size_t size = 16 * MIB; size >= 64 * KIB; size /= 2) {
        void *parts[4];
        for (int i = 0; i < 4; i++)
            memset(parts[i] = malloc(size), 0xC3, size);
        for (int i = 0; i < 4; i++)
            free(parts[i]);
        unsigned char *whole = calloc(4, size);
        CHECK_OF(is_zero(whole, 4 * size), size);
        free(whole);
        whole = calloc(1, size + size / 2);
        CHECK_OF(is_zero(whole, size + size / 2), size);
        free(whole);
    }
}

static void realloc_keeps_contents_up_and_down(void)
{
    unsigned char *block = malloc(1);
    size_t size = 1;
    fill(block, size, 7);
    for (size_t next = 2; next <= 64 * MIB; next += next / 2 + 1) {
        block = realloc(block, next);
        CHECK_OF(block != NULL && is_aligned(block, 16), next);
        CHECK_OF(is_filled(block, size, size, size == 1 ? 7 : size), next);
        CHECK_OF(malloc_usable_size(block) >= next, next);
        size = next;
        fill(block, size, size);
    }
    while (size > 1) {
        size_t next = size - size / 3 - 1;
        next = next ? next : 1;
        block = realloc(block, next);
        CHECK_OF(block != NULL, next);
        CHECK_OF(is_filled(block, next, size, size), next);
        size = next;
        fill(block, size, size);
    }
    free(block);
}

static void realloc_from_every_size_to_every_size(void)
{
    for (size_t i = 0; i < rungs; i += 37)
        for (size_t j = 0; j < rungs; j += 53) {
            size_t from = ladder[i], to = ladder[j];
            if (from > 2 * MIB || to > 2 * MIB)
                continue;
            unsigned char *block = malloc(from);
            fill(block, from, from + to);
            block = realloc(block, to);
            CHECK_OF(block != NULL && is_filled(block, to, from, from + to), from);
            fill(block, to, to);
            CHECK(is_filled(block, to, to, to));
            free(block);
        }
}

static void realloc_grows_in_steps(void)
{
    size_t steps[] = {1, 16, 4096, 64 * KIB}, most[] = {5000, 200 * KIB, 8 * MIB, 64 * MIB};
    for (int s = 0; s < 4; s++) {
        unsigned char *one = NULL, *other = NULL;
        for (size_t size = steps[s]; size <= most[s]; size += steps[s]) {
            one = realloc(one, size);
            other = realloc(other, size);
            CHECK_OF(one && other, size);
            one[size - 1] = (unsigned char)size;
            other[size - 1] = (unsigned char)~size;
        }
        for (size_t size = steps[s]; size <= most[s]; size += steps[s]) {
            CHECK_OF(one[size - 1] == (unsigned char)size, size);
            CHECK_OF(other[size - 1] == (unsigned char)~size, size);
        }
        free(one);
        free(other);
    }
}

static void realloc_of_aligned_blocks(void)
{
    for (size_t align = 32; align <= 4 * MIB; align *= 2)
        for (size_t size = 10; size <= 3 * MIB; size *= 17) {
            void *block;
            CHECK(posix_memalign(&block, align, size) == 0);
            fill(block, size, align);
            block = realloc(block, size * 3);
            CHECK_OF(block && is_filled(block, size, size, align), align);
            block = realloc(block, size / 2 + 1);
            CHECK_OF(block && is_filled(block, size / 2 + 1, size, align), align);
            free(block);
        }
}

static void every_alignment(void)
{
    size_t sizes[] = {0, 1, 24, 100, 1000, 4096, 5000, 100000, 3 * MIB + 5};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    for (size_t align = 1; align <= GIB; align *= 2) {
        unsigned char *blocks[2][SIZES];
        for (int twice = 0; twice < 2; twice++)
            for (int s = 0; s < SIZES; s++) {
                unsigned char *block = NULL;
                if (align % sizeof(void *) == 0 && twice)
                    CHECK_OF(posix_memalign((void **)&block, align, sizes[s]) == 0, align);
                else
                    block = s % 2 ? memalign(align, sizes[s]) : aligned_alloc(align, sizes[s]);
                CHECK_OF(block != NULL, align);
                CHECK_OF(is_aligned(block, align), align);
                CHECK_OF(malloc_usable_size(block) >= sizes[s], align);
                fill(block, sizes[s], align + (size_t)s);
                blocks[twice][s] = block;
            }
        for (int s = 0; s < SIZES; s++)
            for (int twice = 0; twice < 2; twice++) {
                CHECK_OF(is_filled(blocks[twice][s], sizes[s], sizes[s], align + (size_t)s), align);
                free(blocks[twice][s]);
            }
    }
}

static void bad_alignments(void)
{
    size_t bad[] = {0, 1, 2, 3, 4, 7, 12, 24, 100, (size_t)1 << 63 | 8, SIZE_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        void *untouched = bad;
        CHECK_OF(posix_memalign(&untouched, bad[i], 100) == EINVAL, bad[i]);
        CHECK(untouched == bad);
    }
    /* memalign rounds an odd alignment up. */
    void *block = memalign(24, 10);
    CHECK(block != NULL && is_aligned(block, 32));
    free(block);
    block = memalign(0, 10);
    CHECK(block != NULL);
    free(block);
    errno = 0;
    CHECK(memalign(SIZE_MAX, 10) == NULL && errno == EINVAL);
    errno = 0;
    CHECK(memalign((size_t)1 << 63, 10) == NULL && (errno == EINVAL || errno == ENOMEM));
    /* aligned_alloc does as memalign until glibc 2.38, which refuses. */
    block = aligned_alloc(24, 48);
    CHECK(block == NULL ? errno == EINVAL : is_aligned(block, 8));
    free(block);
}

static void whole_pages(void)
{
    for (size_t size = 1; size < 100000; size += 977) {
        char *v = valloc(size), *p = pvalloc(size);
        CHECK_OF(v && is_aligned(v, PAGE) && malloc_usable_size(v) >= size, size);
        CHECK_OF(p && is_aligned(p, PAGE), size);
        CHECK_OF(malloc_usable_size(p) >= (size + PAGE - 1) / PAGE * PAGE, size);
        memset(p, 1, malloc_usable_size(p));
        free(v);
        free(p);
    }
}

static void errno_survives_free(void)
{
    size_t sizes[] = {1, 100, 5000, 100000, 300000, MIB, 5 * MIB, 64 * MIB};
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            char *block = malloc(sizes[i]);
            memset(block, 1, sizes[i]);
            errno = 1234;
            free(block);
            CHECK_OF(errno == 1234, sizes[i]);
        }
    errno = 1234;
    free(NULL);
    CHECK(errno == 1234);
}

static void success_leaves_errno_alone(void)
{
    for (size_t i = 0; i < rungs; i += 7) {
        errno = 77;
        void *block = malloc(ladder[i]);
        CHECK_OF(block && errno == 77, ladder[i]);
        block = realloc(block, ladder[i] * 2);
        CHECK_OF(block && errno == 77, ladder[i]);
        free(block);
    }
}

/* Bytes the program holds, as tools reckon it: blocks in arenas and blocks with mappings of their own. */
static size_t held(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void mallinfo2_counts_what_is_held(void)
{
    size_t before = held();
    char *big = malloc(64 * MIB);
    memset(big, 1, 64 * MIB);
    size_t during = held();
    CHECK_OF(during >= before + 64 * MIB && during <= before + 66 * MIB, during - before);
    enum { SMALL = 20000 };
    char **small = malloc(SMALL * sizeof *small);
    for (int i = 0; i < SMALL; i++)
        memset(small[i] = malloc(1000), 1, 1000);
    size_t more = held();
    CHECK_OF(more >= during + SMALL * 1000 && more <= during + SMALL * 1000 * 5 / 4 + 2 * MIB, more - during);
    for (int i = 0; i < SMALL; i++)
        free(small[i]);
    free(small);
    free(big);
    malloc_trim(0);
    size_t after = held();
    CHECK_OF(after <= before + 2 * MIB, after - before);
}

static void tuning_is_accepted(void)
{
    CHECK(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1);
    CHECK(mallopt(M_TRIM_THRESHOLD, 1 << 20) == 1);
    CHECK(mallopt(M_TOP_PAD, 0) == 1);
    CHECK(mallopt(M_ARENA_MAX, 2) == 1);
    int trimmed = malloc_trim(0);
    CHECK(trimmed == 0 || trimmed == 1);
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    CHECK(stream != NULL);
    CHECK(malloc_info(0, stream) == 0);
    CHECK(malloc_info(1, stream) == EINVAL || errno == EINVAL);
    fclose(stream);
    CHECK(strncmp(text, "<malloc version=\"1\">", 20) == 0);
    CHECK(strstr(text, "</malloc>") != NULL);
    free(text);
}

static void trim_gives_memory_back(void)
{
    void *block = malloc(100 * MIB);
    memset(block, 1, 100 * MIB);
    size_t full = resident_bytes();
    free(block);
    malloc_trim(0);
    size_t after = resident_bytes();
    CHECK_OF(full - after >= 95 * MIB, full - after);
}

static void the_c_library_allocates_from_it(void)
{
    char *copy = strdup("a string"), *text = NULL, *line = NULL;
    CHECK(asprintf(&text, "%s and %d", copy, 42) == 15);
    size_t room = 0;
    FILE *file = fmemopen(text, strlen(text), "r");
    CHECK(getline(&line, &room, file) == 15);
    fclose(file);
    char *path = realpath("/proc/self", NULL), *place = getcwd(NULL, 0);
    CHECK(path && place);
    text = realloc(text, 100000);
    CHECK(strcmp(text, line) == 0);
    free(copy);
    free(text);
    free(line);
    free(path);
    free(place);
    FILE *streams[32];
    for (int i = 0; i < 32; i++)
        CHECK((streams[i] = fopen("/dev/null", "w")) != NULL);
    for (int i = 0; i < 32; i++) {
        fprintf(streams[i], "%d", i);
        fclose(streams[i]);
    }
    setenv("A_NEW_VARIABLE", "its value", 1);
    CHECK(strcmp(getenv("A_NEW_VARIABLE"), "its value") == 0);
    puts("done");
}

static void gigabytes(void)
{
    size_t sizes[] = {GIB, 3 * GIB, 5 * GIB + 12345};
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3; i++) {
            unsigned char *block = malloc(sizes[i]);
            CHECK_OF(block != NULL, i);
            block[0] = 1;
            block[sizes[i] / 2] = 2;
            block[sizes[i] - 1] = 3;
            block = realloc(block, sizes[i] + GIB);
            CHECK_OF(block && block[0] == 1 && block[sizes[i] / 2] == 2 && block[sizes[i] - 1] == 3, i);
            block = realloc(block, sizes[i] / 2 + 1);
            CHECK_OF(block && block[0] == 1 && block[sizes[i] / 2] == 2, i);
            free(block);
        }
}

static void vellum_sized_frees_exist(void)
{
    void (*free_sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    void (*free_aligned_sized)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    CHECK(free_sized && free_aligned_sized);
    for (size_t i = 0; i < rungs; i += 3) {
        free_sized(malloc(ladder[i]), ladder[i]);
        free_sized(calloc(1, ladder[i]), ladder[i]);
        free_aligned_sized(aligned_alloc(64, ladder[i]), 64, ladder[i]);
    }
    free_sized(NULL, 10);
    free_aligned_sized(NULL, 64, 10);
    CHECK(dlsym(RTLD_DEFAULT, "cfree") != NULL);
}

static const struct scenario scenarios[] = {
    {"too_large_is_refused", too_large_is_refused},
    {"overflow_is_refused", overflow_is_refused},
    {"nothing_is_something", nothing_is_something},
    {"every_block_is_aligned_and_whole", every_block_is_aligned_and_whole},
    {"calloc_clears_dirty_memory", calloc_clears_dirty_memory},
    {"realloc_keeps_contents_up_and_down", realloc_keeps_contents_up_and_down},
    {"realloc_from_every_size_to_every_size", realloc_from_every_size_to_every_size},
    {"realloc_grows_in_steps", realloc_grows_in_steps},
    {"realloc_of_aligned_blocks", realloc_of_aligned_blocks},
    {"every_alignment", every_alignment},
    {"bad_alignments", bad_alignments},
    {"whole_pages", whole_pages},
    {"errno_survives_free", errno_survives_free},
    {"success_leaves_errno_alone", success_leaves_errno_alone},
    {"mallinfo2_counts_what_is_held", mallinfo2_counts_what_is_held},
    {"tuning_is_accepted", tuning_is_accepted},
    {"trim_gives_memory_back", trim_gives_memory_back},
    {"the_c_library_allocates_from_it", the_c_library_allocates_from_it},
    {"gigabytes", gigabytes},
    {"vellum_sized_frees_exist", vellum_sized_frees_exist},
};

int main(int argc, char **argv)
{
    build_ladder();
    return DISPATCH(argc, argv, scenarios);
}
