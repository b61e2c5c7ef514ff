//! Generators of random series of every kind, for tests that write series and read them back.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use vellum_measure::{Base, Machine, Mark, MarkCause, Observation, Series, Stat, Summary, Unit};

/// Finite numbers of every size, often whole ones.
pub(crate) fn number() -> impl Strategy<Value = f64> {
    let all =
        prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO | prop::num::f64::NEGATIVE;
    let finite = all.prop_filter("finite", |value| value.is_finite());
    prop_oneof![finite, (0u32..1_000_000).prop_map(f64::from)]
}

fn positive() -> impl Strategy<Value = f64> {
    prop::num::f64::POSITIVE.prop_filter("finite", |value| value.is_finite())
}

/// Words that a careless reader would take for syntax.
pub(crate) fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~]{0,12}",
        prop::sample::select(vec![
            "", "-", "#", "%", "%25", "a b", "a:b", "a,b", "with", "\n", "\r", "\t", "=", "µs"
        ])
        .prop_map(str::to_owned),
    ]
}

fn unit() -> impl Strategy<Value = Unit> {
    let symbols = vec!["ns", "us", "ms", "s", "cycles", "B", "n", "", "ops/s"];
    prop_oneof![
        prop::sample::select(symbols).prop_map(Unit::parse),
        word().prop_map(|symbol| Unit::parse(&symbol))
    ]
}

fn observation() -> impl Strategy<Value = Observation> {
    let counts = any::<(u32, u32, u32, u32)>();
    (any::<u64>(), number(), option::of(number()), counts, option::of(number())).prop_map(
        |(start_ns, wall_ns, cpu_ns, (minor, major, voluntary, involuntary), steal_ns)| Observation {
            start_ns,
            wall_ns,
            cpu_ns,
            minor,
            major,
            voluntary,
            involuntary,
            steal_ns,
        },
    )
}

fn mark() -> impl Strategy<Value = Mark> {
    (any::<u64>(), any::<u64>(), word()).prop_map(|(a, b, cause)| Mark {
        start_ns: a.min(b),
        end_ns: a.max(b),
        cause: MarkCause::parse(&cause),
    })
}

fn base() -> impl Strategy<Value = Base> {
    (word(), any::<u64>(), [positive(), positive(), positive(), positive(), positive()])
        .prop_map(|(clock, n, [mean, min, max, std, step])| Base { clock, n, mean, min, max, std, step })
}

fn machine() -> impl Strategy<Value = Machine> {
    let texts = (word(), word(), word(), option::of(word()), option::of(word()), option::of(word()));
    let numbers = (any::<usize>(), any::<u64>(), option::of(any::<u32>()), option::of(any::<u64>()));
    (texts, numbers, any::<(Option<bool>, Option<bool>)>()).prop_map(
        |(
            (kernel, processor, huge_pages, clocksource, governor, hypervisor),
            numbers,
            (tsc_invariant, turbo),
        )| {
            let (processors, memory_bytes, hz, tsc_khz) = numbers;
            Machine {
                kernel,
                processor,
                processors,
                memory_bytes,
                huge_pages,
                hz,
                clocksource,
                tsc_khz,
                tsc_invariant,
                governor,
                turbo,
                hypervisor,
            }
        },
    )
}

/// Any series that is valid.
pub(crate) fn series() -> impl Strategy<Value = Series> {
    let names = (word(), vec(word(), 0..3), word(), unit());
    let batch = prop_oneof![1u64..4, 1u64..];
    let about = (batch, option::of(base()), option::of(base()), option::of(word()), option::of(machine()));
    // A series is either complete, or has plain values.
    let observations = prop_oneof![
        vec(observation(), 0..6),
        vec(number().prop_map(|wall_ns| Observation { wall_ns, ..Observation::default() }), 0..6),
    ];
    (names, about, observations, vec(mark(), 0..4)).prop_map(
        |((name, labels, quantity, unit), (batch, base, cpu_base, clock, machine), observations, marks)| {
            Series {
                name,
                labels,
                quantity,
                unit,
                batch,
                base,
                cpu_base,
                clock,
                observations,
                marks,
                machine,
            }
        },
    )
}

/// Any summary of finite values.
pub(crate) fn summary() -> impl Strategy<Value = Summary> {
    (word(), vec(word(), 0..3), word(), unit(), vec(-1e100f64..1e100, 1..5)).prop_map(
        |(name, labels, quantity, unit, values)| {
            let stat = Stat::of(&values).expect("finite values have figures");
            Summary { name, labels, quantity, unit, stat }
        },
    )
}
