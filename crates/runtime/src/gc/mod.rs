//! The collector's C interface, declared in `include/vellum_gc.h`.
//!
//! This file starts the heap and turns settings and refusals into what C has for them; the others have a part of the header each. Nothing is decided here: each
//! function passes on to `vellum_gc`, which says what it does.

pub mod collections;
pub mod dead;
pub mod objects;
pub mod roots;
pub mod threads;
pub mod world;

use core::ffi::{c_int, c_uint, c_void};
use vellum_gc as gc;
use vellum_malloc as front;

/// `struct vel_gc_config`.
#[repr(C)]
pub struct Settings {
    config_bytes: usize,
    plan: c_int,
    only_starts: c_int,
    limit_bytes: usize,
    fixed_bytes: usize,
    percent: c_uint,
    poison: c_int,
    slice_us: c_uint,
    safepoints: c_int,
    tells_writes: c_int,
    max_bytes: usize,
    paranoid: c_int,
    eager: c_uint,
    idle_thread: c_int,
    markers: c_uint,
    sizing: c_int,
    ratio: c_uint,
    mem_limit: usize,
    mem_lim: usize,
    min_new_size: usize,
    min_old_incr: usize,
    c_thousandths: c_uint,
    after_major: c_int,
    precise_stacks: c_int,
    divisor: c_uint,
    seed: u64,
}

impl Settings {
    /// How the heap is to be sized; `None` if that is not served. A parameter of another policy than the one named is a mistake, which would
    /// otherwise show in measurements only (but for `percent` and `fixed_bytes`, which are older than the policies: they are heeded by the default one).
    fn sizing(&self) -> Option<gc::Sizing> {
        let or = |value: c_uint, default| if value == 0 { default } else { value };
        let original = (self.mem_limit, self.ratio);
        let modified = (self.mem_lim, self.min_new_size, self.min_old_incr);
        let (sizing, is_clean) = match self.sizing {
            0 => (gc::Sizing::Knee, original == (0, 0) && modified == (0, 0, 0) && self.c_thousandths == 0),
            1 => {
                let ratio = or(self.ratio, gc::Sizing::RATIO);
                let sizing = gc::Sizing::Original { mem_limit: self.mem_limit, ratio };
                (sizing, modified == (0, 0, 0) && self.c_thousandths == 0)
            }
            2 => {
                let (mem_lim, min_new_size, min_old_incr) = modified;
                let sizing = gc::Sizing::Modified { mem_lim, min_new_size, min_old_incr };
                (sizing, original == (0, 0) && self.c_thousandths == 0)
            }
            3 => {
                let sizing = gc::Sizing::SquareRoot { c: or(self.c_thousandths, gc::Sizing::C) };
                (sizing, original == (0, 0) && modified == (0, 0, 0))
            }
            _ => return None,
        };
        (is_clean && sizing.check().is_ok()).then_some(sizing)
    }
}

/// The plans, by their numbers in the header.
const PLANS: [gc::Plan; 3] = [gc::Plan::MarkSweep, gc::Plan::MostlyCopying, gc::Plan::Appel];
/// What becomes of vacated regions, by their numbers in the header.
const AFTER_MAJOR: [gc::AfterMajor; 4] =
    [gc::AfterMajor::Stay, gc::AfterMajor::Drift, gc::AfterMajor::CopyBack, gc::AfterMajor::Reuse];

/// Bytes of the structure in its first version.
const SETTINGS_MIN: usize = core::mem::offset_of!(Settings, slice_us);

fn refuse(errno: c_int) -> c_int {
    front::set_errno(errno);
    -1
}

fn refused(why: gc::Refused) -> c_int {
    refuse(match why {
        gc::Refused::NoObject => libc::EINVAL,
        gc::Refused::OutOfMemory => libc::ENOMEM,
    })
}

/// An object, or null and `errno`.
#[inline]
fn object(object: *mut u8) -> *mut c_void {
    if object.is_null() {
        front::set_errno(libc::ENOMEM);
    }
    object.cast()
}

/// Starts the heap.
///
/// # Safety
/// `settings` is null, or points to as many bytes as its first field says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_init(settings: *const Settings) -> c_int {
    let mut config = gc::Config::DEFAULT;
    if !settings.is_null() {
        // SAFETY: the caller vouches for the first field.
        let bytes = unsafe { (&raw const (*settings).config_bytes).read() };
        if bytes < SETTINGS_MIN {
            return refuse(libc::EINVAL);
        }
        // What an older program does not know of is zero.
        let mut known = core::mem::MaybeUninit::<Settings>::zeroed();
        let bytes = bytes.min(size_of::<Settings>());
        // SAFETY: both have so many bytes; all fields are numbers.
        let settings = unsafe {
            known.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(settings.cast(), bytes);
            known.assume_init()
        };
        let plan = usize::try_from(settings.plan).ok().and_then(|plan| PLANS.get(plan));
        let is_served = settings.percent <= gc::Config::PERCENT_MAX
            && (settings.max_bytes == 0 || settings.max_bytes >= gc::Config::MAX_LEAST);
        let Some(&plan) = plan.filter(|_| is_served) else { return refuse(libc::EINVAL) };
        let Some(sizing) = settings.sizing() else { return refuse(libc::EINVAL) };
        config.sizing = sizing;
        let after_major = usize::try_from(settings.after_major).ok().and_then(|way| AFTER_MAJOR.get(way));
        let Some(&after_major) = after_major else { return refuse(libc::EINVAL) };
        config.plan = plan;
        config.after_major = after_major;
        config.precise_stacks = settings.precise_stacks != 0;
        config.only_starts = settings.only_starts != 0;
        config.fixed_bytes = settings.fixed_bytes;
        config.poison = settings.poison != 0;
        config.slice_ns = u64::from(settings.slice_us) * 1000;
        config.safepoints = settings.safepoints != 0;
        config.tells_writes = settings.tells_writes != 0;
        config.paranoid = settings.paranoid != 0;
        config.eager = settings.eager;
        config.seed = settings.seed;
        config.idle_thread = settings.idle_thread != 0;
        config.markers = settings.markers;
        config.divisor = settings.divisor;
        if settings.max_bytes != 0 {
            config.max_bytes = settings.max_bytes;
        }
        if settings.limit_bytes != 0 {
            config.limit_bytes = settings.limit_bytes;
        }
        if settings.percent != 0 {
            config.percent = settings.percent;
        }
    }
    match gc::init(config) {
        Ok(()) => 0,
        Err(gc::Already::Started) => refuse(libc::EBUSY),
        Err(gc::Already::OutOfMemory) => refuse(libc::ENOMEM),
        Err(gc::Already::NotServed(_)) => refuse(libc::EINVAL),
    }
}
