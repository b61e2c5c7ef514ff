#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
template <int N> struct Fib { static constexpr long value = Fib<N - 1>::value + Fib<N - 2>::value; };
template <> struct Fib<0> { static constexpr long value = 0; };
template <> struct Fib<1> { static constexpr long value = 1; };
int main() {
    std::map<std::string, std::unique_ptr<std::vector<int>>> m;
    for (int i = 0; i < 5000; ++i) { auto &v = m[std::to_string(i % 100)]; if (!v) v = std::make_unique<std::vector<int>>(); v->push_back(i); }
    std::unordered_map<int, std::string> u;
    for (auto &[k, v] : m) u[std::accumulate(v->begin(), v->end(), 0)] = k;
    std::cout << m.size() << ' ' << u.size() << ' ' << Fib<60>::value << '\n';
}
