// C++'s own containers and exceptions, and a batch of vellum.h.
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "vellum.h"

int main()
{
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([t] {
            std::map<int, std::string> all;
            for (int i = 0; i < 20000; i++) all[i * 7919 % 10007] = std::string(i % 200, 'a' + t);
        });
    for (auto &thread : threads) thread.join();
    void *blocks[100];
    size_t had = vel_malloc_batch(48, 100, blocks);
    vel_free_batch(blocks, had);
    try {
        throw std::runtime_error(std::string(1000, 'x'));
    } catch (const std::exception &error) {
        std::printf("%zu of %zu\n", had, std::string(error.what()).size());
    }
}
