//! Finds wrappers: functions that only forward a request for memory. Reports show their caller instead.
//!
//! The table has patterns for the allocation functions of C, C++, Rust and common runtimes, and for the usual
//! names of wrappers in C programs. The user can add patterns (`vellum heap --hide`).

use regex::{Regex, RegexSet};

/// Whole names, in the short form of [`vellum_process::Function::name`].
const WRAPPERS: [&str; 11] = [
    // The C library's, and common names in C programs.
    r"(__libc_|_int_|__)?([mcv]|re|pv)alloc|reallocarray|(__libc_)?memalign|aligned_alloc|posix_memalign",
    r"_*(x|xx|z|s|e|ck|do_|my_|safe_?|check(ed)?_|must_|mem_|try_|util_|x_|xml|jv_mem_|git__|av_|bfd_|tor_|uv__|ruby_x|ggc_|apr_|CRYPTO_|OPENSSL_|sqlite3_?)(?i:[mcz]|re|c?rec)?(?i:alloc)(array|_array|_zero|_?n|0|64|z)?",
    r"(x|ck|s|e|git__|av_|g_|xml)(str|strn|mem)dup2?|(m|re|c)alloc_or_die|xnmalloc|x2n?realloc|mmap(64)?|mremap",
    r"g_(try_)?([mc]|re)alloc(0|_n|0_n)?|g_slice_(alloc0?|copy)|g_aligned_alloc0?",
    // C++: the operators and the allocators of containers.
    r"operator new(\[\])?|(std|__gnu_cxx|boost)::(.*::)?(_M_)?allocate(_\w+)?|llvm::(safe_[mc]alloc|allocate_buffer)",
    // Rust: the allocator and the collections that grow.
    r"__rust_\w*alloc\w*|__rustc::.*|__r[dg]l?_\w*alloc\w*|<?(alloc|std::alloc|hashbrown::raw)::.*",
    // CPython.
    r"_?Py(Mem|Object)_\w*([MCm]|Re|re)[Aa]lloc\w*|_PyObject_Arena\w*|_PyMem_\w*Alloc\w*|pymalloc_\w+",
    r"_?PyObject_(GC_)?(New|NewVar|Malloc|Alloc\w*)|_PyObject_GC_\w+|gc_alloc|new_arena|allocate_from_new_pool",
    // Perl, Tcl, ImageMagick, node.
    r"Perl_safesys\w*alloc|Perl_(Slab_Alloc|more_bodies|new_body)|Perl_sv_(2?grow|grow_fresh)",
    r"Tcl_(Attempt)?(Db)?(Cka|A|Rea)lloc|Tclp?(Sys)?(Re)?[Aa]lloc|TclThreadAlloc\w*|TclStackAlloc",
    r"(Acquire|Resize)(Magick|Quantum|Aligned|Critical|Virtual)\w*|node::(Unchecked)?([MC]|Re)alloc",
];

/// The set of wrapper functions.
#[derive(Clone, Debug)]
pub struct Wrappers {
    table: RegexSet,
    more: Vec<Regex>,
}

impl Wrappers {
    /// The table's wrappers, and functions whose names match a pattern of `more` anywhere.
    #[must_use]
    pub fn new(more: Vec<Regex>) -> Wrappers {
        let whole = WRAPPERS.iter().map(|pattern| format!("^(?:{pattern})$"));
        Wrappers { table: RegexSet::new(whole).expect("the table is tried by a test"), more }
    }

    /// Returns whether a function of that name is a wrapper.
    pub fn has(&self, name: &str) -> bool {
        self.table.is_match(name) || self.more.iter().any(|pattern| pattern.is_match(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_are_distinguished_from_allocating_functions() {
        let wrappers = Wrappers::new(vec![Regex::new("^pool_").unwrap()]);
        let hidden = "malloc calloc __libc_malloc xmalloc xcalloc xrealloc xstrdup xnmalloc g_malloc0 git__calloc \
            g_malloc_n PyMem_Malloc PyMem_RawMalloc _PyObject_Malloc PyObject_Realloc _PyMem_RawMalloc \
            __rust_alloc __rdl_alloc alloc::raw_vec::finish_grow Tcl_Alloc TclpAlloc ckalloc safe_malloc \
            sqlite3Malloc sqlite3_malloc64 jv_mem_alloc std::__new_allocator::allocate Perl_safesysmalloc \
            AcquireQuantumMemory pool_get CRYPTO_zalloc mmap ";
        for name in hidden.split_whitespace().chain(["operator new", "operator new[]"]) {
            assert!(wrappers.has(name), "{name}");
        }
        let shown = "main parse bigmalloc node_alloc reallocate PyList_New std::vector::push_back allocate \
            Tcl_NewObj Tcl_DuplicateObj strdup my_pool_get g_strsplit xml_parse mallocs";
        for name in shown.split_whitespace() {
            assert!(!wrappers.has(name), "{name}");
        }
    }
}
