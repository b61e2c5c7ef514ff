// C++ operations whose number is known. What the library's templates do is counted at the line that used them, optimised or not.
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

struct Thing {
    int numbers[10];
};

static void *volatile kept;

// Doubling from 1 to 1024: eleven blocks.
static __attribute__((noinline)) std::size_t grown() {
    std::vector<int> numbers;
    for (int i = 0; i < 1000; i++)
        numbers.push_back(i); //= new=1100 delete=1000
    kept = numbers.data();
    return numbers.size();
}

// libstdc++.so's own code, without debug information, asks for the memory.
static __attribute__((noinline)) std::size_t joined() {
    std::string text;
    for (int i = 0; i < 50; i++)
        text += "forty characters so that it must grow. "; //= new=700 delete=600
    return text.size();
}

static __attribute__((noinline)) int refused() {
    int caught = 0;
    for (int i = 0; i < 10; i++) {
        try {
            volatile std::size_t impossible = std::size_t(1) << 60;
            kept = new char[impossible]; //= new=10
        } catch (const std::bad_alloc &) {
            caught++;
        }
    }
    return caught;
}

int main() {
    std::size_t total = 0;
    for (int i = 0; i < 100; i++) {
        total += grown();
        total += joined();
    }
    if (refused() != 10)
        return 1;
    // After an exception everything is recorded as before.
    for (int i = 0; i < 10; i++) {
        Thing *thing = new Thing; //= new=10
        kept = thing;
        delete thing; //= delete=10
        Thing *things = new (std::nothrow) Thing[7]; //= new=10
        kept = things;
        delete[] things; //= delete=10
    }
    auto *table = new std::map<int, std::string>; //= new=1
    for (int i = 0; i < 200; i++)
        (*table)[i] = std::string(40, 'x'); //= new=400
    kept = table;
    delete table; //= delete=401
    auto shared = std::make_shared<Thing>(); //= new=1
    kept = shared.get();
    shared.reset(); //= delete=1
    return total == 100 * (1000 + 50 * 39) ? 0 : 2;
}
