// Every form of C++ new and delete, and what must happen when there is no memory.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#define CHECK(condition)                                                                                              \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            std::fprintf(stderr, "%s:%d: %s: not so: %s\n", __FILE__, __LINE__, __func__, #condition);                \
            _exit(1);                                                                                                 \
        }                                                                                                             \
    } while (0)

// Sizes the compiler cannot see, or it would refuse or remove what is asked.
static volatile std::size_t too_much = SIZE_MAX / 2 - 100;
static volatile std::size_t some = 1000;

static bool is_aligned(const void *block, std::size_t align)
{
    return (reinterpret_cast<std::uintptr_t>(block) & (align - 1)) == 0;
}

static void every_form()
{
    const std::nothrow_t &quiet = std::nothrow;
    for (std::size_t size : {std::size_t(0), std::size_t(1), std::size_t(17), std::size_t(1000), std::size_t(70000),
                             std::size_t(3) << 20}) {
        void *blocks[] = {::operator new(size), ::operator new[](size), ::operator new(size, quiet),
                          ::operator new[](size, quiet)};
        for (void *block : blocks) {
            CHECK(block != nullptr && is_aligned(block, 16));
            std::memset(block, 1, size);
        }
        ::operator delete(blocks[0]);
        ::operator delete[](blocks[1]);
        ::operator delete(blocks[2], quiet);
        ::operator delete[](blocks[3], quiet);
        ::operator delete(::operator new(size), size);
        ::operator delete[](::operator new[](size), size);
        for (std::size_t align = 1; align <= std::size_t(1) << 22; align *= 2) {
            std::align_val_t value{align};
            void *aligned[] = {::operator new(size, value), ::operator new[](size, value),
                               ::operator new(size, value, quiet), ::operator new[](size, value, quiet),
                               ::operator new(size, value), ::operator new[](size, value)};
            for (void *block : aligned) {
                CHECK(block != nullptr && is_aligned(block, align));
                std::memset(block, 1, size);
            }
            ::operator delete(aligned[0], value);
            ::operator delete[](aligned[1], value);
            ::operator delete(aligned[2], value, quiet);
            ::operator delete[](aligned[3], value, quiet);
            ::operator delete(aligned[4], size, value);
            ::operator delete[](aligned[5], size, value);
        }
    }
    ::operator delete(nullptr);
    ::operator delete[](nullptr, std::align_val_t(64));
}

template <class Make> static bool throws_bad_alloc(Make make)
{
    try {
        make();
    } catch (const std::bad_alloc &error) {
        return true;
    }
    return false;
}

static void no_memory_throws()
{
    std::align_val_t line{64};
    CHECK(throws_bad_alloc([] { return ::operator new(too_much); }));
    CHECK(throws_bad_alloc([] { return ::operator new[](too_much); }));
    CHECK(throws_bad_alloc([=] { return ::operator new(too_much, line); }));
    CHECK(throws_bad_alloc([=] { return ::operator new[](too_much, line); }));
    CHECK(::operator new(too_much, std::nothrow) == nullptr);
    CHECK(::operator new[](too_much, std::nothrow) == nullptr);
    CHECK(::operator new(too_much, line, std::nothrow) == nullptr);
    CHECK(::operator new[](too_much, line, std::nothrow) == nullptr);
    bool thrown = false;
    try {
        std::vector<char> much(too_much);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown);
    // From a frame that has something to destroy, in a thread.
    bool destroyed = false;
    std::thread([&] {
        struct Mark {
            bool &mark;
            ~Mark() { mark = true; }
        } mark{destroyed};
        CHECK(throws_bad_alloc([] { return ::operator new(too_much); }));
    }).join();
    CHECK(destroyed);
}

static int called;

static void gives_up_after_three()
{
    if (++called == 3)
        std::set_new_handler(nullptr);
}

struct OwnError {
    int value;
};

static void throws_its_own()
{
    called++;
    throw OwnError{42};
}

static void throws_out_of_memory()
{
    called++;
    throw std::bad_alloc();
}

static void the_new_handler_is_called()
{
    std::set_new_handler(gives_up_after_three);
    CHECK(throws_bad_alloc([] { return ::operator new(too_much); }));
    CHECK(called == 3);

    called = 0;
    std::set_new_handler(throws_its_own);
    int caught = 0;
    try {
        ::operator delete(::operator new(too_much));
    } catch (const OwnError &error) {
        caught = error.value;
    }
    CHECK(caught == 42 && called == 1);

    // The quiet forms turn what the handler throws into a null pointer.
    called = 0;
    std::set_new_handler(throws_out_of_memory);
    CHECK(::operator new(too_much, std::nothrow) == nullptr);
    CHECK(::operator new[](too_much, std::nothrow) == nullptr);
    CHECK(::operator new(too_much, std::align_val_t(128), std::nothrow) == nullptr);
    CHECK(::operator new[](too_much, std::align_val_t(128), std::nothrow) == nullptr);
    CHECK(called == 4);
    std::set_new_handler(nullptr);
}

static void lengths_that_overflow()
{
    bool thrown = false;
    try {
        delete[] new std::uint64_t[too_much];
    } catch (const std::bad_array_new_length &) {
        thrown = true;
    }
    CHECK(thrown);
}

struct alignas(256) Wide {
    char bytes[300];
};

static void containers()
{
    std::map<std::string, std::vector<int>> map;
    for (int i = 0; i < 20000; i++)
        map["key number " + std::to_string(i % 1000)].push_back(i);
    std::size_t sum = 0;
    for (auto &[key, values] : map)
        sum += key.size() + values.size();
    std::vector<std::unique_ptr<Wide>> wide;
    for (int i = 0; i < 1000; i++) {
        wide.push_back(std::make_unique<Wide>());
        CHECK(is_aligned(wide.back().get(), 256));
    }
    std::pmr::unsynchronized_pool_resource pool;
    std::pmr::vector<std::pmr::string> strings(&pool);
    for (int i = 0; i < 5000; i++)
        strings.emplace_back("a string that is too long to be kept inside");
    auto shared = std::make_shared<std::string>(some, 'x');
    std::printf("%zu %zu %zu\n", sum, strings.size(), shared->size());
}

struct Scenario {
    const char *name;
    void (*run)();
};

static const Scenario scenarios[] = {
    {"every_form", every_form},
    {"no_memory_throws", no_memory_throws},
    {"the_new_handler_is_called", the_new_handler_is_called},
    {"lengths_that_overflow", lengths_that_overflow},
    {"containers", containers},
};

int main(int argc, char **argv)
{
    for (const Scenario &scenario : scenarios) {
        if (argc < 2)
            std::puts(scenario.name);
        else if (std::strcmp(argv[1], scenario.name) == 0) {
            scenario.run();
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
