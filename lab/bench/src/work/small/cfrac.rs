//! Factoring by continued fractions, on numbers that allocate for every operation (after Zorn's cfrac, 1993).
//!
//! The expansion of the square root of N yields pairs with A² ≡ ±Q (mod N) and small Q (Morrison and
//! Brillhart, 1975). The Q that split into small primes are kept; some product of them is a square on both
//! sides, and the difference of the two roots shares a factor with N. Nearly all blocks are of a few words
//! and die at once.

use super::big::Big;
use super::{Failure, Metrics, Params, measured};

/// Products of two primes of similar size, with the number of primes to divide by.
const NUMBERS: [(u64, u64, usize); 5] = [
    (1_000_003, 998_244_353, 30),
    (15_485_867, 32_452_867, 60),
    (2_147_483_647, 4_294_967_291, 110),
    (549_755_813_881, 1_099_511_627_689, 190),
    (77_405_618_595_439, 119_626_865_102_053, 280),
];

pub(crate) fn run(params: &Params) -> Result<Metrics, Failure> {
    let (from, upto) = match params.get("permille", 1000) {
        0..10 => (0, 1),
        10..300 => (0, 3),
        _ => (0, 5),
    };
    measured(|| {
        for (p, q, primes) in &NUMBERS[from..upto] {
            let n = Big::from(*p).mul(&Big::from(*q));
            let found = factor(&n, *primes)
                .ok_or_else(|| wrong(format!("no factor of {p} * {q} found among the relations")))?;
            if found.compare(&Big::from(*p)).is_ne() && found.compare(&Big::from(*q)).is_ne() {
                return Err(wrong(format!("a factor of {p} * {q} that is neither")));
            }
        }
        Ok(())
    })
}

fn wrong(what: String) -> Failure {
    Failure::Wrong { workload: "cfrac", what }
}

/// A² ≡ (-1)^`exponents[0]` * product of `primes[i]`^`exponents[i + 1]` (mod N).
struct Relation {
    a: Big,
    exponents: Vec<u32>,
}

/// Relations beyond the number of primes that are gathered, each worth at least an even chance of a factor.
const SPARE: usize = 12;

fn factor(n: &Big, primes_wanted: usize) -> Option<Big> {
    let primes = factor_base(n, primes_wanted);
    let relations = relations(n, &primes);
    dependencies(&relations, primes.len() + 1).find_map(|set| try_set(n, &primes, &relations, &set))
}

/// Two and the odd primes modulo which N is a square: only they can divide a Q.
fn factor_base(n: &Big, wanted: usize) -> Vec<u32> {
    let prime = |p: &u32| (2..).take_while(|d| d * d <= *p).all(|d| !p.is_multiple_of(d));
    let square = |p: &u32| {
        let rest = n.div_digit(*p).1;
        *p == 2 || rest == 0 || power(rest, (p - 1) / 2, *p) == 1
    };
    (2..).filter(prime).filter(square).take(wanted).collect()
}

fn power(base: u32, mut exponent: u32, modulus: u32) -> u32 {
    let (mut base, mut out, modulus) = (u64::from(base), 1u64, u64::from(modulus));
    while exponent > 0 {
        if exponent & 1 == 1 {
            out = out * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    out as u32
}

/// Expands the square root of `n` until there are enough relations or the expansion repeats.
fn relations(n: &Big, primes: &[u32]) -> Vec<Relation> {
    let root = n.root();
    let (mut p, mut q, mut step) = (Big::from(0), Big::from(1), root.clone());
    let (mut a_before, mut a) = (Big::from(1), root.rem(n));
    let mut found = Vec::new();
    let mut odd = 0u32;
    while found.len() < primes.len() + SPARE {
        p = step.mul(&q).sub(&p);
        q = n.sub(&p.mul(&p)).div(&q).0;
        odd ^= 1;
        if q.is(1) {
            break;
        }
        if let Some(mut exponents) = split(&q, primes) {
            exponents.insert(0, odd);
            found.push(Relation { a: a.clone(), exponents });
        }
        step = root.add(&p).div(&q).0;
        let next = step.mul(&a).add(&a_before).rem(n);
        a_before = std::mem::replace(&mut a, next);
    }
    found
}

/// The exponents of the primes in `q`, if nothing else divides it.
fn split(q: &Big, primes: &[u32]) -> Option<Vec<u32>> {
    let mut left = q.clone();
    let mut exponents = Vec::new();
    for (place, prime) in primes.iter().enumerate() {
        loop {
            let (quotient, rest) = left.div_digit(*prime);
            if rest != 0 {
                break;
            }
            exponents.resize(primes.len(), 0);
            exponents[place] += 1;
            left = quotient;
        }
    }
    left.is(1).then_some(exponents)
}

/// Sets of relations in whose product every exponent is even, by elimination over two elements.
fn dependencies(relations: &[Relation], columns: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut rows: Vec<(Vec<bool>, Vec<bool>)> = relations
        .iter()
        .enumerate()
        .map(|(number, relation)| {
            let parity = relation.exponents.iter().map(|e| e % 2 == 1).collect();
            (parity, (0..relations.len()).map(|i| i == number).collect())
        })
        .collect();
    let mut done = 0;
    for column in 0..columns {
        let Some(pivot) = (done..rows.len()).find(|row| rows[*row].0[column]) else { continue };
        rows.swap(done, pivot);
        let (above, below) = rows.split_at_mut(done + 1);
        let pivot = &above[done];
        for row in below.iter_mut().filter(|row| row.0[column]) {
            row.0.iter_mut().zip(&pivot.0).for_each(|(a, b)| *a ^= b);
            row.1.iter_mut().zip(&pivot.1).for_each(|(a, b)| *a ^= b);
        }
        done += 1;
    }
    rows.into_iter().skip(done).map(|(_, members)| (0..members.len()).filter(|i| members[*i]).collect())
}

/// A proper factor from the two square roots of one product, if they are not the same up to sign.
fn try_set(n: &Big, primes: &[u32], relations: &[Relation], set: &[usize]) -> Option<Big> {
    let mut exponents = vec![0u32; primes.len() + 1];
    let mut x = Big::from(1);
    for number in set {
        x = x.mul(&relations[*number].a).rem(n);
        exponents.iter_mut().zip(&relations[*number].exponents).for_each(|(sum, e)| *sum += e);
    }
    let mut y = Big::from(1);
    for (prime, exponent) in primes.iter().zip(&exponents[1..]) {
        for _ in 0..exponent / 2 {
            y = y.mul(&Big::from(u64::from(*prime))).rem(n);
        }
    }
    let shared = x.add(&n.sub(&y)).gcd(n);
    (!shared.is(1) && shared.compare(n).is_ne()).then_some(shared)
}
