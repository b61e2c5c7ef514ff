//! The collector's C interface, declared in `include/vellum_gc.h`.
//!
//! This file starts the heap and converts settings and errors for C. Each other file covers one part of the
//! header. The functions contain no logic: each calls a function of `vellum_gc`, whose comment describes the
//! effect.

pub mod collections;
pub mod dead;
pub(crate) mod knobs;
pub mod objects;
pub mod roots;
pub(crate) mod sampled;
pub mod threads;
pub mod world;

use core::ffi::{c_int, c_uint, c_void};
use vellum_gc as gc;
use vellum_malloc as front;
use vellum_wire::interface::Config;

/// The sizing policy of the settings; `None` if the settings are invalid. A parameter of another policy is an
/// error, which would otherwise show only in measurements. Exceptions are `percent` and `fixed_bytes`, which
/// are older than the policies and apply to the default one.
fn sizing(config: &Config) -> Option<gc::Sizing> {
    let or = |value: c_uint, default| if value == 0 { default } else { value };
    let &Config { mem_limit, ratio, min_new_size, min_old_incr, c_thousandths, .. } = config;
    let (no_limit, no_ratio, no_c) = (mem_limit == 0, ratio == 0, c_thousandths == 0);
    let no_minimum = (min_new_size, min_old_incr) == (0, 0);
    let (sizing, is_clean) = match config.sizing {
        0 => (gc::Sizing::Knee, no_limit && no_ratio && no_minimum && no_c),
        1 => {
            let ratio = or(ratio, gc::Sizing::RATIO);
            (gc::Sizing::Original { mem_limit, ratio }, no_minimum && no_c)
        }
        2 => (gc::Sizing::Modified { mem_limit, min_new_size, min_old_incr }, no_ratio && no_c),
        3 => {
            let c = or(c_thousandths, gc::Sizing::C);
            (gc::Sizing::SquareRoot { c }, no_limit && no_ratio && no_minimum)
        }
        _ => return None,
    };
    (is_clean && sizing.check().is_ok()).then_some(sizing)
}

/// The treatments of vacated regions, indexed by their numbers in the header.
const AFTER_MAJOR: [gc::AfterMajor; 4] =
    [gc::AfterMajor::Stay, gc::AfterMajor::Drift, gc::AfterMajor::CopyBack, gc::AfterMajor::Reuse];

/// Bytes of the structure's first version.
const SETTINGS_MIN: usize = core::mem::offset_of!(Config, slice_us);

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

/// Returns the object, or null with `errno`.
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
/// `settings` is null, or points to as many bytes as its first field contains.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_gc_init(settings: *const Config) -> c_int {
    let mut config = gc::Config::DEFAULT;
    if !settings.is_null() {
        // SAFETY: `settings` is not null, so its first field can be read, by the `# Safety` section.
        let bytes = unsafe { (&raw const (*settings).config_bytes).read() };
        if bytes < SETTINGS_MIN {
            return refuse(libc::EINVAL);
        }
        // Fields that an older program lacks are zero.
        let mut known = core::mem::MaybeUninit::<Config>::zeroed();
        let bytes = bytes.min(size_of::<Config>());
        // SAFETY: both have `bytes` bytes, by the `# Safety` section; all fields are numbers.
        let settings = unsafe {
            known.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(settings.cast(), bytes);
            known.assume_init()
        };
        let plan = usize::try_from(settings.plan).ok().and_then(|plan| gc::Plan::ALL.get(plan));
        let is_served = settings.percent <= gc::Config::PERCENT_MAX
            && (settings.max_bytes == 0 || settings.max_bytes >= gc::Config::MAX_LEAST);
        let Some(&plan) = plan.filter(|_| is_served) else { return refuse(libc::EINVAL) };
        let Some(sizing) = sizing(&settings) else { return refuse(libc::EINVAL) };
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
        config.sticky_marks = settings.sticky_marks != 0;
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
