// Templates that a compiler has to instantiate again and again.
#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

template <int N> struct Level {
    std::map<int, std::vector<std::tuple<int, std::string, std::array<char, N + 1>>>> rows;
    std::set<std::string> names;
    std::unordered_map<std::string, std::function<int(int)>> functions;
    int run(int count) {
        std::regex pattern("a+b*");
        std::vector<int> values(count);
        std::sort(values.begin(), values.end(), [](int a, int b) { return a + N > b; });
        for (int value : values) {
            rows[value].emplace_back(value, std::to_string(value), std::array<char, N + 1>{});
            names.insert(std::to_string(value + N));
            functions[std::to_string(value)] = [value](int more) { return more + value + N; };
            std::stable_sort(rows[value].begin(), rows[value].end());
        }
        return int(names.size() + functions.size()) + std::regex_match("aab", pattern) + Level<N - 1>().run(count);
    }
};
template <> struct Level<0> {
    int run(int count) { return count; }
};
int main(int count, char **) { std::cout << Level<10>().run(count); }
