//! Macros for exported functions of common forms: return a value, call another function, call one with
//! safety conditions, do nothing, set a callback.

/// Functions without arguments that return a value.
macro_rules! values {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> $type {
            $value
        }
    )* };
}

/// Functions that are other names of a function here.
macro_rules! same {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $other:path;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            $other($($argument),*)
        }
    )* };
}

/// Functions with conditions, which are those of an expression.
macro_rules! passes {
    ($(
        $(#[$doc:meta])* $conditions:literal
        $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $call:expr;
    )*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        #[doc = $conditions]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: the `# Safety` section has the conditions of the expression.
            unsafe { $call }
        }
    )* };
}

/// Functions without effect.
macro_rules! nothing {
    ($($(#[$doc:meta])* $name:ident($($type:ty),*);)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($(_: $type),*) {}
    )* };
}

/// Functions that set a callback, after starting the heap, and return it.
macro_rules! callbacks {
    ($($(#[$doc:meta])* $type:ty, $cell:ident: $set:ident, $get:ident;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $set(callback: Option<$type>) {
            $crate::start::ensure();
            let held = callback.map_or(core::ptr::null_mut(), |callback| callback as *mut core::ffi::c_void);
            $cell.store(held, core::sync::atomic::Ordering::Release);
        }
        /// The callback that was set.
        #[unsafe(no_mangle)]
        pub extern "C" fn $get() -> Option<$type> {
            // SAFETY: the setter above alone stores here, null or a callback of this type.
            unsafe { $crate::variables::function::<$type>(&$cell) }
        }
    )* };
}

pub(crate) use {callbacks, nothing, passes, same, values};
