// A library preloaded beside Vellum, or loaded by dlopen: it allocates in its constructors,
// frees in its destructors, and hands blocks to the program.
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

struct Early {
    std::vector<std::string> words;
    std::map<int, std::string> numbers;
    void *large;

    Early() : large(std::malloc(5 << 20))
    {
        std::memset(large, 1, 5 << 20);
        for (int i = 0; i < 1000; i++) {
            words.push_back("a word that is too long to be kept inside, number " + std::to_string(i));
            numbers[i] = words.back();
        }
    }
    ~Early() { std::free(large); }
};

static Early early;
static thread_local std::string own = "a string of every thread's own, too long to be kept inside";

extern "C" char *early_block()
{
    return strdup((early.words.back() + own).c_str());
}

extern "C" void early_free(void *block)
{
    std::free(block);
}

extern "C" __attribute__((constructor(101))) void first_of_all()
{
    std::free(std::malloc(100));
    std::free(std::realloc(std::calloc(10, 10), 100000));
}
