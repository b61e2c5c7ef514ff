// Tests of C++ objects: collected, with cleanup, or kept by plain new; containers with collected memory.
#define GC_THREADS
#include "check.h"
#include <gc_allocator.h>
#include <gc_cpp.h>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

enum { COUNT = 2000 };
int cleaned, told;

struct Cell : public gc {
    Cell *next;
    long number;
    Cell(Cell *next, long number) : next(next), number(number) {}
};

struct Cleaned : public gc_cleanup {
    long number = 1;
    ~Cleaned() override
    {
        cleaned += number == 1;
    }
};

// Not the first base, so that it lies inside the object.
struct Other {
    long before = 2;
    virtual ~Other() = default;
};
struct CleanedLater : public Other, public gc_cleanup {
    ~CleanedLater() override
    {
        cleaned += before == 2;
    }
};

void tell(void *, void *data)
{
    told += data == &told;
}

// Memory of plain new is scanned; the only pointer to it lies in memory that is not.
struct Holder {
    Cell *list = nullptr;
    std::string name;
};

Cell *list_of(long length)
{
    Cell *list = nullptr;
    for (long i = 0; i < length; i++)
        list = new Cell(list, i);
    return list;
}

void check(const Cell *list, long length)
{
    for (; list; list = list->next)
        CHECK(list->number == --length);
    CHECK(length == 0);
}

__attribute__((noinline)) void churn()
{
    for (int i = 0; i < many(300000); i++)
        memset(GC_MALLOC(40), 0xee, 40);
    GC_gcollect();
}

__attribute__((noinline)) void make_dead()
{
    for (int i = 0; i < 50; i++) {
        new Cleaned;
        new CleanedLater;
        ::new (GC, tell, &told) long(5);
    }
}

__attribute__((noinline)) void clear_stack()
{
    volatile char stack[16384];
    memset(const_cast<char *>(stack), 0, sizeof stack);
}

struct alignas(256) Aligned {
    Cell *list;
};

} // namespace

int main()
{
    GC_INIT();
    Holder **hidden = static_cast<Holder **>(malloc(sizeof *hidden));
    *hidden = new Holder;
    (*hidden)->list = list_of(COUNT);
    (*hidden)->name = "a name that is too long to be kept in place";
    Aligned **aligned = static_cast<Aligned **>(malloc(sizeof *aligned));
    *aligned = new Aligned;
    CHECK(reinterpret_cast<uintptr_t>(*aligned) % 256 == 0);
    (*aligned)->list = list_of(COUNT / 2);
    Holder **nothrow = static_cast<Holder **>(malloc(sizeof *nothrow));
    *nothrow = new (std::nothrow) Holder[3];
    (*nothrow)[2].list = list_of(COUNT / 4);

    std::vector<Cell *, gc_allocator<Cell *>> vector;
    std::list<Cell *, traceable_allocator<Cell *>> list;
    std::vector<double, gc_allocator<double>> numbers;
    std::map<int, Cell *, std::less<int>, gc_allocator<std::pair<const int, Cell *>>> map;
    for (int i = 1; i <= 100; i++) {
        vector.push_back(list_of(i));
        list.push_back(list_of(i));
        map[i] = list_of(i);
        numbers.push_back(i);
    }
    Cell *kept = new (NoGC) Cell(list_of(7), 0);
    churn();
    std::thread([&] { churn(); }).join();
    check((*hidden)->list, COUNT);
    check((*aligned)->list, COUNT / 2);
    check((*nothrow)[2].list, COUNT / 4);
    CHECK((*hidden)->name == "a name that is too long to be kept in place");
    int length = 0;
    for (Cell *each : vector)
        check(each, ++length);
    length = 0;
    for (Cell *each : list)
        check(each, ++length);
    for (auto &each : map)
        check(each.second, each.first);
    CHECK(numbers[99] == 100 && GC_base(numbers.data()));
    check(kept->next, 7);
    delete kept;
    delete *hidden;
    delete *aligned;
    delete[] *nothrow;

    make_dead();
    for (int i = 0; i < 4; i++) {
        clear_stack();
        churn();
    }
    CHECK(cleaned >= 90 && cleaned <= 100 && told >= 45 && told <= 50);
    int before = cleaned;
    delete new Cleaned;
    CHECK(cleaned == before + 1);

    bool thrown = false;
    try {
        void *volatile too_much = ::operator new(static_cast<size_t>(1) << 60);
        CHECK(!too_much);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown && !::operator new(static_cast<size_t>(1) << 60, std::nothrow));
    puts("objects: as promised");
    return 0;
}
