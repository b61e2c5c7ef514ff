//! Loads the BPF program, tests it on this process, and runs it for other processes.
//!
//! The program is used only if its count of this process's memory agrees with the kernel's. If the kernel's
//! page tables have another layout than [`program`](super::program) assumes (encrypted memory, for example),
//! the test fails, and the source is refused with a reason.

use super::btf::Btf;
use super::program::{Base, Counted, Kernel, STATE_BYTES, TABLE_BYTES, counted, program};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use vellum_kernel::{Pid, machine, mapping, symbols};

const TYPES: &str = "/sys/kernel/btf/vmlinux";
const LOG_BYTES: usize = 1 << 16;
/// The tolerance of that check, a part and bytes: this process runs during the count.
const AGREE_WITHIN: f64 = 0.05;
const AGREE_BYTES: f64 = (2 << 20) as f64;

#[derive(Debug)]
pub(in crate::sources) struct Reader {
    program: OwnedFd,
    state: OwnedFd,
    /// Held for the program, which names it by address.
    table: OwnedFd,
}

impl Reader {
    pub(in crate::sources) fn open() -> Result<Reader, String> {
        if !cfg!(target_arch = "x86_64") {
            return Err("it reads the page tables of x86-64 only".to_owned());
        }
        if has_five_levels() {
            return Err("this kernel uses page tables of five levels; four are supported".to_owned());
        }
        let may_not = |errno: Errno| {
            let said = std::io::Error::from_raw_os_error(errno.raw_os_error());
            let cure = match errno {
                Errno::PERM => "; it needs root, or CAP_BPF and CAP_PERFMON",
                Errno::NOSYS => "; it needs a kernel with CONFIG_BPF_SYSCALL",
                _ => "",
            };
            format!("a BPF map: {said}{cure}")
        };
        let state = vellum_sys::bpf::value(STATE_BYTES).map_err(may_not)?;
        let table = vellum_sys::bpf::value(TABLE_BYTES).map_err(may_not)?;
        let types =
            std::fs::read(TYPES).map_err(|why| format!("{TYPES}: {why}; it needs CONFIG_DEBUG_INFO_BTF"))?;
        let types = Btf::parse(&types).ok_or(format!("{TYPES}: it is not what this version can read"))?;
        let program = load(&Kernel::of(&types, Base::Fixed)?, &state, &table)?;
        let mut reader = Reader { program, state, table };
        if let Err(why) = reader.prove() {
            let kernel = Kernel::of(&types, moved().ok_or(why)?)?;
            reader.program = load(&kernel, &reader.state, &reader.table)?;
            reader.prove()?;
        }
        Ok(reader)
    }

    /// The accessed bits of a process now: of a program's private files, and of all else. All zero if there
    /// is no such process.
    pub(super) fn count(&self, pid: Pid) -> io::Result<(Counted, Counted)> {
        // SAFETY: the map was made with as many bytes in `open`.
        unsafe { vellum_sys::bpf::set(&self.state, &[0; STATE_BYTES]) }?;
        let mut run = File::from(vellum_sys::bpf::iterate(&self.program, pid.0)?);
        // It writes nothing; reading to the end runs it.
        while run.read(&mut [0; 64])? > 0 {}
        // SAFETY: the map has STATE_BYTES bytes, as above.
        Ok(counted(&unsafe { vellum_sys::bpf::get::<STATE_BYTES>(&self.state) }?))
    }

    fn prove(&self) -> Result<(), String> {
        let (of_program, other) =
            self.count(Pid::me()).map_err(|why| format!("the program does not run: {why}"))?;
        let pages = of_program.present + of_program.huge_present + other.present + other.huge_present;
        let found = (pages * vellum_sys::PAGE as u64) as f64;
        let rollup = std::fs::read("/proc/self/smaps_rollup").unwrap_or_default();
        let resident = mapping::smaps(&rollup).next().map_or(0.0, |(_, sizes)| sizes.resident.0 as f64);
        if (found - resident).abs() <= resident * AGREE_WITHIN + AGREE_BYTES && found > 0.0 {
            return Ok(());
        }
        Err(format!(
            "its count of this process, {:.0} KiB, is not the kernel's, {:.0} KiB",
            found / 1024.0,
            resident / 1024.0
        ))
    }
}

fn load(kernel: &Kernel, state: &OwnedFd, table: &OwnedFd) -> Result<OwnedFd, String> {
    let code = program(kernel, state.as_raw_fd(), table.as_raw_fd()).ok_or("the program is too long")?;
    let load = |log: &mut [u8]| vellum_sys::bpf::load_iterator(&code, kernel.attached_to, log);
    load(&mut []).map_err(|errno| {
        let mut log = vec![0; LOG_BYTES];
        let _ = load(&mut log);
        format!("this kernel does not accept the program: {errno} {}", last_words(&log))
    })
}

/// The kernel's variables with the address of its map of all memory; `None` on a kernel that does not move
/// it. Called last, because reading the list of symbols takes long.
fn moved() -> Option<Base> {
    let [mut memory, mut pages] = [0; 2];
    symbols::each(|address, name| {
        match name {
            "page_offset_base" => memory = address,
            "vmemmap_base" => pages = address,
            _ => {}
        }
        memory == 0 || pages == 0
    });
    (memory != 0 && pages != 0).then_some(Base::At { memory, pages })
}

fn has_five_levels() -> bool {
    machine::processor("flags").is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "la57"))
}

fn last_words(log: &[u8]) -> String {
    let text = String::from_utf8_lossy(log);
    let mut lines = text.trim_end_matches('\0').lines().rev();
    let said = lines.find(|line| !line.is_empty() && !line.starts_with("processed "));
    said.map_or_else(String::new, |line| format!("({})", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_ends_with_what_matters() {
        let log = b"0: R1=ctx()\nR0 !read_ok\nprocessed 3 insns (limit 1000000)\n\0\0";
        assert_eq!(last_words(log), "(R0 !read_ok)");
        assert_eq!(last_words(b"\0"), "");
    }

    #[test]
    fn where_it_cannot_be_it_says_why() {
        match Reader::open() {
            Ok(reader) => {
                let gone = reader.count(Pid(i32::MAX)).unwrap();
                assert_eq!(gone, (Counted::default(), Counted::default()));
            }
            Err(why) => assert!(!why.is_empty()),
        }
    }
}
