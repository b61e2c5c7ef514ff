//! Inputs of the programs of Douglas 2011, Table 2: C++ to compile, a Python script, SQL statements.

use std::fmt::Write;

/// The Python script.
pub(super) const CHURN: &str = include_str!("churn.py");

/// A class template that costs a compiler much work: containers, algorithms, closures and a variant of its
/// instances' types.
const JOB: &str = r"
template <int N> struct Key {
    int rank;
    std::string name;
    bool operator<(const Key &other) const { return rank != other.rank ? rank < other.rank : name < other.name; }
};

template <int N> struct Job {
    std::map<Key<N>, std::vector<Key<N>>> index;
    std::variant<int, std::string, Key<N>> state;
    std::unordered_map<std::string, std::shared_ptr<Key<N>>> names;
    std::function<int(const Key<N> &)> weight;

    int run(int seed) {
        std::vector<Key<N>> keys;
        for (int i = 0; i < seed % 97; ++i) keys.push_back(Key<N>{i * N % 31, std::to_string(i ^ N)});
        std::sort(keys.begin(), keys.end());
        std::stable_sort(keys.begin(), keys.end(), [](const auto &a, const auto &b) { return a.name < b.name; });
        for (const auto &key : keys) {
            index[key].push_back(key);
            names[key.name] = std::make_shared<Key<N>>(key);
        }
        weight = [this](const Key<N> &key) { return int(index.count(key)) + int(names.size()); };
        state = keys.empty() ? Key<N>{} : keys.front();
        int sum = std::visit([](auto &value) { return int(sizeof value); }, state);
        return std::accumulate(keys.begin(), keys.end(), sum, [this](int s, const auto &key) { return s + weight(key); });
    }
};
";

/// A translation unit that instantiates the template `instances` times.
pub(super) fn cxx(instances: usize) -> String {
    let headers = [
        "algorithm",
        "functional",
        "map",
        "memory",
        "numeric",
        "string",
        "unordered_map",
        "variant",
        "vector",
    ];
    let mut text = String::new();
    for header in headers {
        let _ = writeln!(text, "#include <{header}>");
    }
    text += JOB;
    for number in 0..instances {
        let _ = writeln!(text, "int job{number}(int seed) {{ return Job<{number}>{{}}.run(seed); }}");
    }
    text
}

/// Statements that fill a table of `rows` rows, in memory.
fn filled(rows: usize) -> String {
    format!(
        "create table t as with recursive c(i) as (select 1 union all select i + 1 from c where i < {rows}) \
         select i, (i * 7919) % 1000003 as k, printf('row %d of the table', (i * 104729) % 999983) as s from c; "
    )
}

/// A sort of all rows by their text.
pub(super) fn sort(rows: usize) -> String {
    filled(rows) + "select count(*), max(s) from (select s from t order by s, k limit -1);"
}

/// An index, and a join of the table with itself by it.
pub(super) fn join(rows: usize) -> String {
    filled(rows)
        + "create index x on t(k); select count(*), sum(length(a.s)) from t a join t b on a.k = b.k where a.s <= b.s;"
}
