/* A program drawn by a seed: phases of blocks of some sizes, touched throughout or here and there, of which
   some outlive their phase. Nothing is computed, so memory is all it needs. */
#include "check.h"
#include <malloc.h>
#include <sys/mman.h>

#define BLOCKS 4096
/* What a round touches, and the address space it may take. */
#define TOUCHED_MIB_MIN 8
#define TOUCHED_MIB_MAX 64
#define SPAN (2048 * MIB)

enum kind { FROM_MALLOC, FROM_CALLOC, FROM_MMAP, KINDS };
struct block { char *start; size_t bytes; enum kind kind; };

static uint64_t state;

static uint64_t draw(uint64_t low, uint64_t high)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return low + (state * 0x2545f4914f6cdd1dULL >> 11) % (high - low + 1);
}

static struct block make(size_t bytes, enum kind kind)
{
    char *start = kind == FROM_MALLOC   ? malloc(bytes)
                  : kind == FROM_CALLOC ? calloc(1, bytes)
                                        : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start && start != MAP_FAILED);
    return (struct block){start, bytes, kind};
}

static void end(struct block block)
{
    if (block.kind == FROM_MMAP)
        munmap(block.start, block.bytes);
    else
        free(block.start);
}

/* Writes to a page in each `step` bytes; those of fresh memory read as zero. */
static size_t touch(struct block block, size_t step)
{
    for (size_t at = 0; at < block.bytes; at += step) {
        CHECK(block.kind == FROM_MALLOC || block.start[at] == 0);
        block.start[at] = 1;
    }
    return (block.bytes + step - 1) / step * PAGE;
}

int main(int argc, char **argv)
{
    static struct block blocks[BLOCKS];
    size_t live = 0;
    CHECK(argc == 4);
    state = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1;
    bool maps = strcmp(argv[2], "maps") == 0, is_small = strcmp(argv[3], "small") == 0;
    /* So the C library, too, gives back what is freed. */
    mallopt(M_MMAP_THRESHOLD, 64 * KIB);
    for (int phases = (int)draw(3, 7); phases > 0; phases--) {
        size_t least = PAGE << (is_small ? draw(1, 7) : draw(2, 10)), most = least * draw(1, 8);
        size_t step = draw(0, 1) ? PAGE : PAGE << draw(1, 8);
        enum kind kind = maps ? FROM_MMAP : (enum kind)draw(0, KINDS - 1);
        size_t budget = draw(TOUCHED_MIB_MIN, TOUCHED_MIB_MAX) * MIB;
        for (int rounds = (int)draw(1, 4); rounds > 0; rounds--) {
            size_t first = live;
            for (size_t touched = 0, span = 0; touched < budget && live < BLOCKS && span < SPAN; live++) {
                blocks[live] = make(draw(least, most), kind);
                touched += touch(blocks[live], step);
                span += blocks[live].bytes;
            }
            uint64_t kept = rounds == 1 ? draw(0, 3) : 0;
            size_t left = first;
            for (size_t i = first; i < live; i++)
                if (draw(0, 15) < kept)
                    blocks[left++] = blocks[i];
                else
                    end(blocks[i]);
            live = left;
        }
        size_t left = 0;
        for (size_t i = 0; i < live; i++)
            if (draw(0, 3))
                blocks[left++] = blocks[i];
            else
                end(blocks[i]);
        live = left;
    }
    printf("%zu blocks left\n", live);
    return 0;
}
