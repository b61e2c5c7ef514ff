// Every form of operator new with every form of delete that may follow it, where some of the forms, the bits
// of REPLACED, are the program's own, or with -DLIBRARY a library's. With -DHEADER its blocks have a header,
// which the C library's free and every other delete would refuse. In C, by the mangled names, as that
// compiles fast.
#include <stdio.h>
#include <stdlib.h>

enum { MAGIC = 0x5150 };
#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number

#ifdef REPLACED
long calls[20];
void throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv");

static void *get(int form, int throws, size_t align, size_t size)
{
    calls[form]++;
    char *block = NULL;
#ifdef HEADER
    if (size < 1L << 40)
        block = aligned_alloc(align, (size + 2 * align - 1) / align * align);
    if (block) {
        block += align;
        *(long *)(block - 16) = MAGIC + align;
    }
#else
    block = align == 16 ? malloc(size) : aligned_alloc(align, size);
#endif
    if (!block && throws)
        throw_bad_alloc();
    return block;
}

static void give(int form, size_t align, char *block)
{
    calls[form]++;
#ifdef HEADER
    if (*(long *)(block - 16) != MAGIC + align) {
        puts("somebody else's block");
        abort();
    }
    block -= align;
#endif
    free(block);
}

// The function is the operator if its bit says so.
#define NAMED(form, name) \
    __asm__(".if (" TEXT(REPLACED) " >> " #form ") & 1\n.globl " name "\n.type " name ", @function\n.set " name ", own" #form "\n.endif\n")
#define NEW(form, throws, align, name)                                             \
    __attribute__((used)) void *own##form(size_t size) { return get(form, throws, align, size); } \
    NAMED(form, name);
#define DELETE(form, align, name)                                                  \
    __attribute__((used)) void own##form(void *block) { give(form, align, block); } \
    NAMED(form, name);

NEW(0, 1, 16, "_Znwm")
NEW(1, 1, 16, "_Znam")
NEW(2, 0, 16, "_ZnwmRKSt9nothrow_t")
NEW(3, 0, 16, "_ZnamRKSt9nothrow_t")
NEW(4, 1, 64, "_ZnwmSt11align_val_t")
NEW(5, 1, 64, "_ZnamSt11align_val_t")
NEW(6, 0, 64, "_ZnwmSt11align_val_tRKSt9nothrow_t")
NEW(7, 0, 64, "_ZnamSt11align_val_tRKSt9nothrow_t")
DELETE(8, 16, "_ZdlPv")
DELETE(9, 16, "_ZdaPv")
DELETE(10, 16, "_ZdlPvm")
DELETE(11, 16, "_ZdaPvm")
DELETE(12, 16, "_ZdlPvRKSt9nothrow_t")
DELETE(13, 16, "_ZdaPvRKSt9nothrow_t")
DELETE(14, 64, "_ZdlPvSt11align_val_t")
DELETE(15, 64, "_ZdaPvSt11align_val_t")
DELETE(16, 64, "_ZdlPvmSt11align_val_t")
DELETE(17, 64, "_ZdaPvmSt11align_val_t")
DELETE(18, 64, "_ZdlPvSt11align_val_tRKSt9nothrow_t")
DELETE(19, 64, "_ZdaPvSt11align_val_tRKSt9nothrow_t")
#else
extern long calls[20];
#endif

#ifndef LIBRARY
#define SIZE 128
#define HUGE (1L << 60)
// One form of new, which then calls each of three forms of delete.
#define PLAIN(a, new_a, new_nothrow, dl, dl_sized, dl_nothrow)                                                       \
    void *new_##a(size_t) __asm__(new_a), *nothrow_##a(size_t, const void *) __asm__(new_nothrow);                   \
    void delete_##a(void *) __asm__(dl), sized_##a(void *, size_t) __asm__(dl_sized);                                \
    void unthrown_##a(void *, const void *) __asm__(dl_nothrow);                                                     \
    static void test_##a(void)                                                                                       \
    {                                                                                                                \
        for (int i = 0; i < 6; i++) {                                                                                \
            void *block = i < 3 ? new_##a(SIZE) : nothrow_##a(SIZE, "");                                             \
            i % 3 == 0 ? delete_##a(block) : i % 3 == 1 ? sized_##a(block, SIZE) : unthrown_##a(block, "");          \
        }                                                                                                            \
        printf("%p\n", nothrow_##a(HUGE, ""));                                                                       \
    }
#define ALIGNED(a, new_a, new_nothrow, dl, dl_sized, dl_nothrow)                                                     \
    void *new_##a(size_t, size_t) __asm__(new_a), *nothrow_##a(size_t, size_t, const void *) __asm__(new_nothrow);   \
    void delete_##a(void *, size_t) __asm__(dl), sized_##a(void *, size_t, size_t) __asm__(dl_sized);                \
    void unthrown_##a(void *, size_t, const void *) __asm__(dl_nothrow);                                             \
    static void test_##a(void)                                                                                       \
    {                                                                                                                \
        for (int i = 0; i < 6; i++) {                                                                                \
            void *block = i < 3 ? new_##a(SIZE, 64) : nothrow_##a(SIZE, 64, "");                                     \
            i % 3 == 0 ? delete_##a(block, 64) : i % 3 == 1 ? sized_##a(block, SIZE, 64) : unthrown_##a(block, 64, ""); \
        }                                                                                                            \
        printf("%p\n", nothrow_##a(HUGE, 64, ""));                                                                   \
    }
PLAIN(one, "_Znwm", "_ZnwmRKSt9nothrow_t", "_ZdlPv", "_ZdlPvm", "_ZdlPvRKSt9nothrow_t")
PLAIN(many, "_Znam", "_ZnamRKSt9nothrow_t", "_ZdaPv", "_ZdaPvm", "_ZdaPvRKSt9nothrow_t")
ALIGNED(aligned, "_ZnwmSt11align_val_t", "_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZdlPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t", "_ZdlPvSt11align_val_tRKSt9nothrow_t")
ALIGNED(aligneds, "_ZnamSt11align_val_t", "_ZnamSt11align_val_tRKSt9nothrow_t", "_ZdaPvSt11align_val_t",
    "_ZdaPvmSt11align_val_t", "_ZdaPvSt11align_val_tRKSt9nothrow_t")

int main(void)
{
    test_one();
    test_many();
    test_aligned();
    test_aligneds();
    for (int form = 0; form < 20; form++)
        printf("%ld ", calls[form]);
    puts("");
}
#endif
