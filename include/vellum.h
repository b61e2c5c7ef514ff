/* Vellum's own C interface: what the standard malloc interface cannot say.
 *
 * Link with -lvellum, or look the functions up with dlsym() to use them where Vellum happens to be preloaded.
 * The standard functions (malloc and its family, C++ new and delete) are exported under their own names with the C
 * library's semantics; <stdlib.h> and <malloc.h> declare them.
 *
 * Batches follow the idea of N1527 (Douglas 2010): a program that needs many blocks says so once. The blocks are
 * ordinary blocks: they may be freed one by one, resized, and mixed with others in a later batch.
 * All functions are safe to call from any thread; two threads' batches share no lock but the page layer's, which is
 * taken once for every 256 units of 64 KiB.
 */
#ifndef VELLUM_H
#define VELLUM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates `count` blocks of `bytes` bytes each and writes their addresses to `blocks`. Returns how many there are,
 * always the first ones; the rest of `blocks` is NULL then and errno is ENOMEM. The blocks' contents are undefined.
 * Neighbours in `blocks` are mostly neighbours in memory. */
size_t vel_malloc_batch(size_t bytes, size_t count, void **blocks);

/* The same with a size for each block: `sizes[i]` bytes for `blocks[i]`. Fastest when equal sizes stand together. */
size_t vel_malloc_sizes(const size_t *sizes, size_t count, void **blocks);

/* Frees `count` blocks, however they were allocated. NULLs are skipped. No block may occur twice. Fastest when the
 * addresses stand in the order in which a batch returned them: a run that is a whole slab is given back without
 * touching its memory. */
void vel_free_batch(void *const *blocks, size_t count);

/* Resizes `blocks[i]` to `sizes[i]` bytes, as realloc() does, in order, until one fails. Returns how many were resized;
 * that one and the rest are as they were. */
size_t vel_realloc_batch(void **blocks, const size_t *sizes, size_t count);

/* Moves a large block (more than 16 KiB) to another place aligned to `align` bytes, a power of two from 4096 to 2^30,
 * by moving its page tables instead of copying. Returns the new address, after which the old one must not be used; or
 * NULL, and the block is where it was, if it is not a large block or there is no address space. Fastest when old and
 * new place lie alike within 2 MiB, as blocks aligned to 2 MiB do. */
void *vel_relocate(void *block, size_t align);

/* Exchanges the contents of two large blocks of equal length by exchanging their page tables; their addresses stay.
 * Returns 0, or -1 if they are no such blocks or there is no address space; nothing has changed then. */
int vel_swap(void *a, void *b);

/* Blocks of whole pages, from the page layer itself. `bytes` is rounded up to pages; `align` is a power of two up to
 * 2^30, or 0. With `zero` every byte is 0; otherwise the contents are undefined: this process's own old data. NULL and
 * errno ENOMEM when there is no memory. */
void *vel_pages_alloc(size_t bytes, size_t align, int zero);

/* Gives such a block back. Returns 0, or -1 if `block` is not the start of one; nothing has changed then. */
int vel_pages_free(void *block);

/* Changes such a block's length: in place where the address space behind it is free, else, if `may_move`, at another
 * place, without copying large blocks. Returns where the block is, or NULL (errno ENOMEM), and it is as it was. What a
 * block gains has undefined contents. */
void *vel_pages_resize(void *block, size_t bytes, int may_move);

/* Gives back what is not in use, and returns how many bytes. Severity 0 marks cached pages as discardable: the kernel takes
 * them when it needs them. 1 gives cached pages back at once. 2 gives back everything that can be reached,
 * as malloc_trim() does. */
size_t vel_trim(int severity);

#ifdef __cplusplus
}
#endif

#endif /* VELLUM_H */
