//! Shortens the linker's names of functions to those that people write.
//!
//! A linker's name contains namespaces, template arguments and parameters. A short name is enough to
//! distinguish functions, so parameters, template arguments and the compiler's tags are dropped:
//! `std::vector<int, std::allocator<int> >::push_back(int const&)` is `std::vector::push_back`.

use cpp_demangle::{DemangleOptions, Symbol};

/// The function that the linker calls `raw`, in short.
pub fn short_name(raw: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(raw) {
        return format!("{name:#}");
    }
    // Without the mark of C++, a name is one as it is: a function `b` is not `bool`.
    if !raw.starts_with("_Z") {
        return raw.to_owned();
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let full = Symbol::new(raw).ok().and_then(|symbol| symbol.demangle_with_options(&options).ok());
    let Some(full) = full else { return raw.to_owned() };
    let name = without_templates(&full).replace("[abi:cxx11]", "").replace("__cxx11::", "");
    if name.is_empty() { full } else { name }
}

/// `name` without the text between angle brackets that are no operator's.
fn without_templates(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    let mut depth = 0usize;
    for c in name.chars() {
        let is_operators = depth == 0
            && short.trim_end_matches(['<', '>', '-', '=']).ends_with("operator")
            && matches!(c, '<' | '>' | '-' | '=');
        match c {
            _ if is_operators => short.push(c),
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => short.push(c),
            _ => {}
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_functions_apart_stays() {
        for (raw, name) in [
            ("main", "main"),
            ("b", "b"),
            ("PKc", "PKc"),
            ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back"),
            ("_ZN3foo3barEi", "foo::bar"),
            ("_ZN3foolsERKS_", "foo::operator<<"),
            ("_ZNK3fooptEv", "foo::operator->"),
            ("_ZNSt7__cxx1112basic_stringIcSaIcEE9_M_createERmm", "std::basic_string::_M_create"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
        ] {
            assert_eq!(short_name(raw), name, "{raw}");
        }
    }
}
