//! Tests of `libvellum.so`, preloaded into this test program: misuse, environment variables, which functions
//! lie next to each other in the file, and requests that pass to the next allocator. Each case has its own
//! process.

use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Environment variable of a child: the case to run.
const CASE: &str = "VELLUM_TEST_CASE";

/// The library. Tests are not linked to a shared object, so cargo does not build it for them. If cargo runs
/// this test, the release library is built now.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let test = std::env::current_exe().expect("a test program has a path");
        let target = test.ancestors().nth(3).expect("TARGET/PROFILE/deps/test");
        if let Some(cargo) = std::env::var_os("CARGO") {
            let mut build = Command::new(cargo);
            build
                .args(["build", "--release", "--quiet", "-p", env!("CARGO_PKG_NAME"), "--target-dir"])
                .arg(target);
            assert!(build.status().expect("cargo starts").success(), "libvellum.so does not build");
        }
        let library = target.join("release/libvellum.so");
        assert!(library.exists(), "{} is not built", library.display());
        library
    })
}

fn run(case: &str, environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("a test program has a path"));
    command
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(CASE, case)
        .env("LD_PRELOAD", library());
    command.env_remove("VELLUM_BOARD").envs(environment.iter().copied());
    command.output().expect("the test program starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The body of the processes that the other tests start. `black_box` keeps the compiler from removing pairs
/// of `malloc` and `free`.
#[test]
#[ignore = "the other tests run it, in processes of their own"]
fn child() {
    let case = std::env::var(CASE).expect("a test says what to do");
    // SAFETY: each case misuses memory on purpose, in a process that exists only for it.
    unsafe {
        match case.as_str() {
            "large twice" => twice(libc::malloc(3 << 20)),
            "kept twice" => twice(libc::malloc(100_000)),
            "small twice" => twice(libc::malloc(40)),
            "inside" => libc::free(black_box(libc::malloc(1 << 20)).byte_add(8192)),
            "inside a page" => libc::free(black_box(libc::malloc(1 << 20)).byte_add(24)),
            "foreign" => {
                let local = 0u64;
                libc::free(black_box(&raw const local).cast_mut().cast());
            }
            "usable" => {
                println!("usable {}", libc::malloc_usable_size(black_box(libc::malloc(20))));
            }
            "from" => println!("from {}", file_of("malloc")),
            "out of memory" => {
                *libc::__errno_location() = 0;
                assert!(black_box(libc::malloc(black_box(usize::MAX / 2))).is_null());
                println!("errno {}", *libc::__errno_location());
            }
            "exports" => {
                for name in EXPORTS {
                    println!("export {name} {}", file_of(name));
                }
            }
            other => panic!("no case {other:?}"),
        }
    }
}

/// # Safety
/// No condition makes this sound: it frees a block twice.
unsafe fn twice(block: *mut libc::c_void) {
    let block = black_box(block);
    // SAFETY: the second call is the misuse that the library must refuse, which ends the process.
    unsafe {
        libc::free(block);
        libc::free(block);
    }
}

fn file_of(name: &str) -> String {
    let name = std::ffi::CString::new(name).expect("no NUL in a name");
    // SAFETY: the name is a C string, and zeros are a valid `Dl_info`.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let address = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        if address.is_null() || libc::dladdr(address, &raw mut info) == 0 {
            return "nowhere".to_owned();
        }
        std::ffi::CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned()
    }
}

const EXPORTS: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "cfree",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "malloc_trim",
    "mallinfo",
    "mallinfo2",
    "mallopt",
    "malloc_stats",
    "malloc_info",
    "free_sized",
    "free_aligned_sized",
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
    "vel_malloc_batch",
    "vel_malloc_sizes",
    "vel_free_batch",
    "vel_realloc_batch",
    "vel_relocate",
    "vel_swap",
];

#[test]
fn misuse_ends_with_one_line() {
    let cases = [
        ("large twice", "the block is already free"),
        ("kept twice", "the block is already free"),
        ("small twice", "the block is already free"),
        ("inside", "the address lies inside the block at 0x"),
        ("inside a page", "the address lies inside the block at 0x"),
        ("foreign", "this address was never handed out"),
    ];
    for (case, wanted) in cases {
        let output = run(case, &[]);
        let text = stderr(&output);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{case}: {:?}, {text}", output.status);
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with("vellum: free(0x")).collect();
        assert!(lines.len() == 1 && lines[0].contains(wanted), "{case}: {text}");
    }
}

#[test]
fn knobs_are_checked_and_never_fatal() {
    let knobs = [
        ("VELLUM_DISABLE", "perhaps"),
        ("VELLUM_DECAY_MS", "10s"),
        ("VELLUM_DECAY_MS", "3600001"),
        ("VELLUM_DECAY_MS", "-1"),
        ("VELLUM_DECAY_MS", "99999999999999999999999"),
        ("VELLUM_HUGE", "sometimes"),
        ("VELLUM_MMAP", "1"),
        ("VELLUM_DISCARD", "pages"),
        ("VELLUM_GC_SIZING", "original,ratio=1"),
        ("VELLUM_GC_SIZING", "modified,ratio=3"),
        ("VELLUM_GC_EAGER", "yes"),
        ("VELLUM_MASK", "remap,nothing"),
        ("VELLUM_BOARD", "/dev/null"),
    ];
    for (name, value) in knobs {
        let output = run("usable", &[(name, value)]);
        assert!(output.status.success(), "{name}={value}: {:?}", output.status);
        let text = stderr(&output);
        assert!(text.starts_with(&format!("vellum: {name}={value} ")), "{name}={value}: {text}");
    }
    let served = [
        ("VELLUM_HUGE", "never"),
        ("VELLUM_DECAY_MS", "0"),
        ("VELLUM_MASK", "remap,helper"),
        ("VELLUM_DISCARD", "flush_only"),
        ("VELLUM_GC_SIZING", "original,mem_limit=24M,ratio=3"),
        ("VELLUM_GC_SIZING", "modified,mem_limit=9M,min_new_size=500K,min_old_incr=5M"),
        ("VELLUM_GC_EAGER", "1"),
        ("VELLUM_GC_EAGER", "500,seed=12"),
    ];
    for (name, value) in served {
        let output = run("usable", &[(name, value)]);
        assert!(output.status.success() && output.stderr.is_empty(), "{name}={value}: {}", stderr(&output));
    }
}

/// Without the ordered section, 90 % of the library's code is resident in any process.
#[test]
fn functions_of_small_programs_share_few_pages() {
    let ordered = b".text.resident";
    let bytes = std::fs::read(library()).expect("the library");
    if !bytes.windows(ordered.len()).any(|window| window == ordered) {
        vellum_skip::skip(
            "built with another linker, or other flags than the project's own, the order is any",
        );
        return;
    }
    // The mapped range around a fault depends on the library's address.
    let looks = (0..10).map(|_| {
        let maps =
            Command::new("cat").arg("/proc/self/smaps").env("LD_PRELOAD", library()).output().expect("cat");
        let maps = String::from_utf8_lossy(&maps.stdout).into_owned();
        let is_code = |line: &str| line.contains(" r-xp ") && line.ends_with("/libvellum.so");
        let code = maps.lines().skip_while(|line| !is_code(line));
        ["Rss:", "Size:"].map(|name| {
            let line =
                code.clone().find_map(|line| line.strip_prefix(name)).expect("the library's code is mapped");
            line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number")
        })
    });
    let [resident, size] = looks.min().expect("looks");
    assert!(resident <= size * 3 / 4, "{resident} of {size} KiB of code are in memory");
}

/// `resident.txt` has the functions' modules: a file that is moved or renamed leaves the order.
#[test]
fn functions_in_the_order_exist() {
    let bytes = std::fs::read(library()).expect("the library");
    let texts = bytes.split(|&byte| byte == 0).filter_map(|text| std::str::from_utf8(text).ok());
    let symbols: Vec<&str> = texts.filter(|text| text.starts_with("_R")).collect();
    let is_there = |line: &str| {
        let names = line.split(' ').map(|name| format!("{}{name}", name.len()));
        symbols.iter().any(|symbol| {
            names.clone().try_fold(*symbol, |rest, name| Some(rest.split_once(&name)?.1)).is_some()
        })
    };
    let list = include_str!("../resident.txt").lines();
    let lines: Vec<&str> = list.filter(|line| !line.starts_with('#') && line.contains(' ')).collect();
    let missing: Vec<&str> = lines.iter().copied().filter(|line| !is_there(line)).collect();
    // The compiler may put some in their callers.
    assert!(missing.len() <= lines.len() / 20, "not in the library: {missing:#?}");
}

#[test]
fn requests_pass_through_when_disabled_or_checked() {
    let usable = |environment: &[(&str, &str)]| {
        let output = run("usable", environment);
        assert!(output.status.success(), "{:?} {}", output.status, stderr(&output));
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .find_map(|line| line.strip_prefix("usable ")?.parse().ok())
    };
    let served: Option<usize> = usable(&[]);
    let aside: Option<usize> = usable(&[("VELLUM_DISABLE", "1")]);
    assert_eq!(served, Some(32), "20 bytes take a block of 32 from Vellum");
    assert_ne!(aside, served, "and something else from the C library");
    let preload = format!("{} vgpreload_not_really.so", library().display());
    assert_eq!(usable(&[("LD_PRELOAD", &preload)]), aside, "valgrind's preload is recognised by its name");
}

#[test]
fn failed_allocation_sets_errno() {
    let output = run("out of memory", &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains(&format!("errno {}", libc::ENOMEM)));
}

#[test]
fn every_function_comes_from_the_library() {
    let output = run("exports", &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let exports: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("export ")).collect();
    assert_eq!(exports.len(), EXPORTS.len(), "{text}{}", stderr(&output));
    for export in exports {
        assert!(export.ends_with("libvellum.so"), "{export}");
    }
}
