//! Tests whether a line of an interpreted program is the user's. Stacks end at such a line; reports show it.

/// The most recorded lines of an interpreted program on a stack.
pub const SCRIPT_FRAMES_MAX: usize = 64;

/// Folders of installed Python packages, and of Python's own modules.
const LIBRARIES: [&str; 4] = ["/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3"];

/// True if a file is the user's: not a module of Python's own, and not part of a package.
#[must_use]
pub fn is_users(file: &str) -> bool {
    let is_frozen = file.starts_with('<') && file != "<string>" && file != "<stdin>";
    !is_frozen && !is_package(file)
}

/// True if a file is one of Python's own modules, or part of a package.
#[must_use]
pub fn is_package(file: &str) -> bool {
    LIBRARIES.iter().any(|place| file.contains(place))
}

/// The library of a file that is not the user's: a package, or the folder of Python's own modules.
#[must_use]
pub fn library(file: &str) -> &str {
    let end = |place: &&str| file.find(*place).map(|at| at + place.len());
    let Some(named) = LIBRARIES.iter().find_map(end) else { return "<frozen modules>" };
    &file[..file[named..].find('/').map_or(file.len(), |length| named + length)]
}

/// True if a module with this file name is the interpreter.
#[must_use]
pub fn is_interpreter(name: &[u8]) -> bool {
    name.starts_with(b"python") || name.starts_with(b"libpython")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_lines_are_those_of_no_library() {
        assert!(["/home/a/job.py", "job.py", "<string>"].into_iter().all(is_users));
        let others = [
            "<frozen importlib._bootstrap>",
            "/usr/lib/python3.11/json/decoder.py",
            "/usr/lib/python3/dist-packages/numpy/core/numeric.py",
            "/venv/lib/python3.12/site-packages/pandas/io.py",
        ];
        assert!(!others.into_iter().any(is_users));
        let libraries = [
            "<frozen modules>",
            "/usr/lib/python3.11",
            "/usr/lib/python3/dist-packages/numpy",
            "/venv/lib/python3.12/site-packages/pandas",
        ];
        assert_eq!(others.map(library), libraries);
    }
}
