//! Duels: comparisons of two operations of the calling program, which are timed in turns.

use crate::clock;
use crate::error::{handed_out, none, object, put, shared};
use crate::recorder::{NO_OPERATION, Operation};
use crate::series::VelSeries;
use crate::suite::{batching, seconds};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use vellum_experiment::duel::{Duel, DuelOptions, duel_between};
use vellum_experiment::{ARMS, ArmOrder};
use vellum_measure::{Direction, Interval, Options};

/// `struct vel_duel_options`.
#[derive(Debug)]
#[repr(C)]
pub struct VelDuelOptions {
    clock_kind: c_int,
    order: c_int,
    seconds: f64,
    warm_up_seconds: f64,
    rounds_max: usize,
    batching: i64,
    seed: u64,
}

/// `struct vel_interval`.
#[derive(Debug)]
#[repr(C)]
pub struct VelInterval {
    estimate: f64,
    low: f64,
    high: f64,
}

/// `struct vel_comparison`.
#[derive(Debug)]
#[repr(C)]
pub struct VelComparison {
    rounds: u64,
    ratio: VelInterval,
    control: VelInterval,
    a: VelInterval,
    b: VelInterval,
    direction: c_int,
    reserved: c_int,
}

impl From<Interval> for VelInterval {
    fn from(Interval { estimate, low, high }: Interval) -> VelInterval {
        VelInterval { estimate, low, high }
    }
}

fn options(from: &VelDuelOptions) -> Result<DuelOptions, String> {
    let orders = [ArmOrder::Random, ArmOrder::Fixed, ArmOrder::Mirrored];
    let order = usize::try_from(from.order).ok().and_then(|index| orders.get(index).copied());
    let unknown = || format!("order {}: there are VEL_RANDOM, VEL_FIXED and VEL_MIRRORED", from.order);
    Ok(DuelOptions {
        clock: clock::kind(from.clock_kind).map_err(|why| why.to_string())?,
        time: seconds(from.seconds)?,
        rounds: from.rounds_max,
        warm_up: seconds(from.warm_up_seconds)?,
        batching: batching(from.batching)?,
        order: order.ok_or_else(unknown)?,
        seed: from.seed,
    })
}

/// Runs a duel of two operations.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_duel_run(
    a: Option<Operation>,
    context_a: *mut c_void,
    b: Option<Operation>,
    context_b: *mut c_void,
    options: *const VelDuelOptions,
) -> *mut Duel {
    let (Some(a), Some(b)) = (a, b) else { return none(NO_OPERATION) };
    // SAFETY: by the header, `options` is null or a live object that no other thread uses.
    let options = unsafe { options.as_ref() }.map_or_else(|| Ok(DuelOptions::default()), self::options);
    // SAFETY: the caller passes a function and the context that belongs to it, valid until this returns.
    let mut a = || unsafe { a(context_a) };
    // SAFETY: the caller passes `b` with its own context, valid until this returns.
    let mut b = || unsafe { b(context_b) };
    let held =
        options.and_then(|options| duel_between([&mut a, &mut b], &options).map_err(|why| why.to_string()));
    held.map_or_else(none, handed_out)
}

/// The times of one round.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_duel_round(duel: *const Duel, index: usize, times_ns: *mut [f64; 3]) -> c_int {
    // SAFETY: by the header, `duel` and `times_ns` are null or live objects that no other thread uses.
    let (Some(duel), Some(place)) = (unsafe { (shared(duel), object(times_ns)) }) else { return -1 };
    let none = || format!("round {index}: there are {}, counted from 0", duel.len());
    put(place, duel.round(index).ok_or_else(none))
}

/// Compares B with A, with the control.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_duel_compare(duel: *const Duel, comparison: *mut VelComparison) -> c_int {
    // SAFETY: by the header, `duel` and `comparison` are null or live objects that no other thread uses.
    let (Some(duel), Some(place)) = (unsafe { (shared(duel), object(comparison)) }) else { return -1 };
    let compared = duel.compare(&Options::default()).map(|found| VelComparison {
        rounds: found.rounds as u64,
        ratio: found.headline.ratio.into(),
        control: found.headline.control.into(),
        direction: match found.direction() {
            Direction::Less => -1,
            Direction::NotShown => 0,
            Direction::More => 1,
        },
        a: found.a.into(),
        b: found.b.into(),
        reserved: 0,
    });
    put(place, compared)
}

/// The observations of one arm.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_duel_series(
    duel: *const Duel,
    name: *const c_char,
    arm: c_int,
) -> *mut VelSeries {
    // SAFETY: by the header, `duel` is null or live and not used elsewhere, `name` is null or a C string.
    let (Some(duel), name) = (unsafe { (shared(duel), crate::text(name)) }) else { return null_mut() };
    match usize::try_from(arm).ok().filter(|arm| *arm < ARMS.len()) {
        Some(arm) => handed_out(duel.series(&name.unwrap_or_default(), arm).into()),
        None => none(format!("arm {arm}: there are VEL_A, VEL_A_AGAIN and VEL_B")),
    }
}

reads! {
    /// The number of rounds.
    vel_duel_rounds(Duel) -> usize: 0, Duel::len;
}

frees! {
    /// Frees the duel.
    vel_duel_free(Duel);
}
