// With -DLIBRARY a library with operators new and delete of its own, over memory of its own; without, a
// program that uses it.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

extern "C" bool is_librarys(const void *block);
extern "C" int librarys_blocks();

#ifdef LIBRARY
alignas(64) static char memory[1 << 20];
static size_t used;
static int blocks;

extern "C" bool is_librarys(const void *block)
{
    return block >= memory && block < memory + sizeof memory;
}
extern "C" int librarys_blocks() { return blocks; }

void *operator new(size_t size)
{
    size = (size + 63) / 64 * 64;
    if (size > sizeof memory - used)
        throw std::bad_alloc();
    void *block = memory + used;
    used += size;
    blocks++;
    return block;
}
void operator delete(void *block) noexcept
{
    // What is not the library's would be a fault of it.
    if (block && !is_librarys(block))
        std::abort();
    blocks -= block != nullptr;
}
void operator delete(void *block, size_t) noexcept { operator delete(block); }
#else
// Made before any constructor of a preloaded library's that comes later.
static std::string early(100, 'e');

struct alignas(256) Aligned {
    char bytes[256];
};

int main()
{
    auto one = std::make_unique<int>(1);
    std::vector<std::string> words(20, std::string(50, 'w'));
    int *many = new int[10], *none = new (std::nothrow) int;
    auto aligned = std::make_unique<Aligned>();
    std::printf("%d %d %d %d %d %d %d\n", is_librarys(early.data()), is_librarys(one.get()), is_librarys(words[3].data()), is_librarys(many),
        is_librarys(none), is_librarys(aligned.get()), librarys_blocks());
    delete[] many;
    delete none;
    try {
        many = new int[1 << 20];
        std::printf("too much\n");
    } catch (const std::bad_alloc &) {
        std::printf("no memory\n");
    }
    std::printf("%d\n", librarys_blocks());
}
#endif
