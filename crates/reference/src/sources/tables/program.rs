//! The BPF program that walks over the page tables of one process, in the kernel, and adds up accessed bits.
//!
//! The kernel calls the program for each mapping of the process, in order of addresses, and once at the end
//! without a mapping (`iter/task_vma`). Meanwhile the process's mappings are locked for reading.
//!
//! ```text
//! for each mapping of ordinary pages:
//!     address = its start
//!     up to STEPS_MAX times, while address < its end:
//!         read the entries of levels 4, 3, 2; if one is empty, skip the addresses that it covers
//!         if it is a huge page, count it; else read the whole table of level 1 and count its entries
//! ```
//!
//! Entries hold physical addresses. The kernel maps all memory at one base address, where the program reads
//! the tables, by `bpf_probe_read_kernel`. This call fails instead of faulting. A table that is freed during
//! the walk makes the count slightly wrong and does no other harm.
//!
//! Page replacement and DAMON monitors also clear accessed bits, and then mark the page as young or
//! referenced. If a page's bit is clear, the program therefore reads these marks, as `smaps` does.
//! Exception: pages of a program's files, because any process sets their marks.
//!
//! As in `smaps`, an entry counts if it is present and refers to a page of memory (not a "special" page,
//! like the zero page). Reserved huge pages (hugetlb) and device memory do not count.
//!
//! The program's state is the value of a BPF map with one entry, which the program changes in place. Only
//! one run at a time uses it.

use super::assembler::{Alu, Code, FRAME, Label, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, Reg, When};
use super::btf::Btf;

/// The function whose iterator calls the program.
pub(super) const ATTACHED_TO: &str = "bpf_iter_task_vma";
pub(super) const STATE_BYTES: usize = 136;
/// Bytes of a table of 512 entries.
pub(super) const TABLE_BYTES: usize = 4096;

const ADDRESS: i16 = 0;
const END: i16 = 8;
const ROOT: i16 = 16;
const ENTRY: i16 = 24;
const KIND: i16 = 32;
const BASE: i16 = 40;
/// A page's first two words: its marks, and where they are if it is part of a larger one.
const MARKS: i16 = 48;
const HEAD: i16 = 56;
const PAGES: i16 = 128;
/// [`Base::Fixed`], with tables of four levels.
const FIXED_BASE: u64 = 0xffff_8880_0000_0000;
const FIXED_PAGES: u64 = 0xffff_ea00_0000_0000;
const RECORD_BYTES: u32 = 64;
const RECORD_SHIFT: i32 = 6;
/// Counters of all mappings but those of a program; those of a program come [`OF_PROGRAM`] later.
const COUNTERS: i16 = 64;
const OF_PROGRAM: i32 = 32;
/// Of each kind: base pages referenced and present, pages in huge pages referenced and present.
const REFERENCED: i16 = 0;
const PRESENT: i16 = 8;
const HUGE_REFERENCED: i16 = 16;
const HUGE_PRESENT: i16 = 24;

/// Tables of one mapping that are gone through: enough for 16 TiB.
const STEPS_MAX: i32 = 1 << 23;
const HELPER_PROBE_READ_KERNEL: i32 = 113;
/// The place of the loop's counter in the frame.
const LOOP: i32 = -8;
const INNER_LOOP: i32 = -16;
/// Mappings that are left out: device memory by page frames or otherwise, reserved huge pages.
const NOT_PAGES: i32 = 0x400 | 0x4000 | 0x40_0000;
const SHARED: i32 = 0x8;
const IS_PRESENT: i32 = 1;
const ACCESSED_BIT: i32 = 5;
const IS_HUGE: i32 = 1 << 7;
const SPECIAL_BIT: i32 = 9;
const FRAME_MASK: u64 = 0x000f_ffff_ffff_f000;
/// Entries of a table, of eight bytes.
const ENTRIES: i32 = 512;
const ENTRY_SHIFT: i32 = 3;
/// Address bits below each level's index.
const LEVEL_4: i32 = 39;
const LEVEL_3: i32 = 30;
const LEVEL_2: i32 = 21;
const PAGE_SHIFT: i32 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    pub(super) attached_to: u32,
    loop_new: u32,
    loop_next: u32,
    loop_destroy: u32,
    vma_start: i32,
    vma_end: i32,
    vma_flags: i32,
    vma_file: i32,
    vma_memory: i32,
    memory_root: i32,
    /// Marks of pages that were referenced before somebody cleared their bits.
    marks: u64,
    base: Base,
}

/// The address at which the kernel has all memory mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// The addresses of all memory and of the records of pages on kernels that do not move them.
    Fixed,
    /// The addresses are in these variables of the kernel.
    At {
        /// The variable for all memory.
        memory: u64,
        /// The variable for the records of pages.
        pages: u64,
    },
}

impl Kernel {
    /// The constants in the kernel's own description. An error names the missing one.
    pub(super) fn of(btf: &Btf<'_>, base: Base) -> Result<Kernel, String> {
        let function = |name: &str| btf.function(name).ok_or(format!("this kernel has no {name}"));
        let offset = |of: &str, member: &str| {
            btf.offset(of, member).ok_or(format!("this kernel's {of} has no {member}"))
        };
        let mark = |name| btf.constant("pageflags", name).map_or(0, |bit| 1u64 << (bit & 63));
        let places = (btf.size("page"), btf.offset("page", "flags"), btf.offset("page", "compound_head"));
        if places != (Some(RECORD_BYTES), Some(0), Some(8)) {
            return Err("this kernel's records of pages are laid out another way".to_owned());
        }
        Ok(Kernel {
            attached_to: function(ATTACHED_TO)?,
            loop_new: function("bpf_iter_num_new")?,
            loop_next: function("bpf_iter_num_next")?,
            loop_destroy: function("bpf_iter_num_destroy")?,
            vma_start: offset("vm_area_struct", "vm_start")?,
            vma_end: offset("vm_area_struct", "vm_end")?,
            vma_flags: offset("vm_area_struct", "vm_flags")?,
            vma_file: offset("vm_area_struct", "vm_file")?,
            vma_memory: offset("vm_area_struct", "vm_mm")?,
            memory_root: offset("mm_struct", "pgd")?,
            marks: mark("PG_young") | mark("PG_referenced"),
            base,
        })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) referenced: u64,
    pub(super) present: u64,
    pub(super) huge_referenced: u64,
    pub(super) huge_present: u64,
}

/// The counters of a state: of a program's private files, and of all else.
pub(super) fn counted(state: &[u8; STATE_BYTES]) -> (Counted, Counted) {
    let number = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| state[at + byte]));
    let of = |at: usize| Counted {
        referenced: number(at + REFERENCED as usize),
        present: number(at + PRESENT as usize),
        huge_referenced: number(at + HUGE_REFERENCED as usize),
        huge_present: number(at + HUGE_PRESENT as usize),
    };
    (of(COUNTERS as usize + OF_PROGRAM as usize), of(COUNTERS as usize))
}

/// The program for a kernel, with the descriptors of the maps that hold its state and a table.
pub(super) fn program(kernel: &Kernel, state: i32, table: i32) -> Option<Vec<u64>> {
    let mut code = Code::default();
    let (out, done, next) = (code.label(), code.label(), code.label());
    // r6: the mapping, later an address; r7: the state; r8: the entry found.
    code.load(R6, R1, 16);
    code.jump_if(When::Equal, R6, 0, out);
    code.value_of(R7, state);
    for (field, offset) in [
        (ADDRESS, kernel.vma_start),
        (END, kernel.vma_end),
        (ENTRY, kernel.vma_flags),
        (KIND, kernel.vma_file),
        (ROOT, kernel.vma_memory),
    ] {
        code.alu_by(Alu::Mov, R3, R6);
        code.alu(Alu::Add, R3, offset);
        read(&mut code, field, out);
    }
    code.load(R3, R7, ROOT);
    code.alu(Alu::Add, R3, kernel.memory_root);
    read(&mut code, ROOT, out);
    match kernel.base {
        Base::Fixed => {
            for (field, fixed) in [(BASE, FIXED_BASE), (PAGES, FIXED_PAGES)] {
                code.number(R3, fixed);
                code.store(R7, field, R3);
            }
        }
        Base::At { memory, pages } => {
            for (field, variable) in [(BASE, memory), (PAGES, pages)] {
                code.number(R3, variable);
                read(&mut code, field, out);
            }
        }
    }
    code.load(R1, R7, ENTRY);
    code.jump_if(When::AnyBit, R1, NOT_PAGES, out);
    let other = code.label();
    code.load(R2, R7, KIND);
    code.alu(Alu::Mov, R3, 0);
    code.jump_if(When::Equal, R2, 0, other);
    code.jump_if(When::AnyBit, R1, SHARED, other);
    code.alu(Alu::Mov, R3, OF_PROGRAM);
    code.place(other);
    code.store(R7, KIND, R3);

    begin(&mut code, kernel, LOOP, STEPS_MAX);
    code.place(next);
    discard(&mut code, &[R6, R8, R9]);
    step(&mut code, kernel, LOOP, done);
    code.load(R6, R7, ADDRESS);
    code.load(R8, R7, END);
    code.jump_if_by(When::AtLeast, R6, R8, done);
    code.load(R1, R7, ROOT);
    for level in [LEVEL_4, LEVEL_3, LEVEL_2] {
        let (present, table) = (code.label(), code.label());
        entry(&mut code, level, done);
        code.load(R8, R7, ENTRY);
        code.jump_if(When::AnyBit, R8, IS_PRESENT, present);
        go_behind(&mut code, level, next);
        code.place(present);
        if level != LEVEL_4 {
            code.alu_by(Alu::Mov, R1, R8);
            code.alu(Alu::And, R1, IS_HUGE);
            code.jump_if(When::Equal, R1, 0, table);
            count_huge(&mut code, kernel, level);
            go_behind(&mut code, level, next);
            code.place(table);
        }
        code.number(R1, FRAME_MASK);
        code.alu_by(Alu::And, R1, R8);
        code.load(R2, R7, BASE);
        code.alu_by(Alu::Add, R1, R2);
    }
    count_table(&mut code, table, done);
    count_marked(&mut code, kernel, table, next);
    code.jump(next);

    code.place(done);
    end(&mut code, kernel, LOOP);
    code.place(out);
    code.alu(Alu::Mov, R0, 0);
    code.exit();
    code.finish()
}

/// r1 = a loop's counter.
fn counter(code: &mut Code, counter: i32) {
    code.alu_by(Alu::Mov, R1, FRAME);
    code.alu(Alu::Add, R1, counter);
}

/// Sets scratch registers, and these, to zero, so that each turn of a loop begins with the same state. Older
/// verifiers (Linux 6.12's) also compare registers that are never read again, and would unroll the loop until
/// they give up.
fn discard(code: &mut Code, kept: &[Reg]) {
    for register in [R0, R1, R2, R3, R4, R5].iter().chain(kept) {
        code.alu(Alu::Mov, *register, 0);
    }
}

fn begin(code: &mut Code, kernel: &Kernel, of: i32, turns: i32) {
    counter(code, of);
    code.alu(Alu::Mov, R2, 0);
    code.alu(Alu::Mov, R3, turns);
    code.kernel(kernel.loop_new);
}

/// r0 = the next number of a loop.
fn step(code: &mut Code, kernel: &Kernel, of: i32, over: Label) {
    counter(code, of);
    code.kernel(kernel.loop_next);
    code.jump_if(When::Equal, R0, 0, over);
}

fn end(code: &mut Code, kernel: &Kernel, of: i32) {
    counter(code, of);
    code.kernel(kernel.loop_destroy);
}

/// A field of the state = what is at r3.
fn read(code: &mut Code, field: i16, failed: Label) {
    code.alu_by(Alu::Mov, R1, R7);
    code.alu(Alu::Add, R1, i32::from(field));
    code.alu(Alu::Mov, R2, 8);
    code.helper(HELPER_PROBE_READ_KERNEL);
    code.jump_if(When::NotEqual, R0, 0, failed);
}

/// `to` = the index of the address r6 in a table of a level, in bytes.
fn index(code: &mut Code, to: Reg, level: i32) {
    code.alu_by(Alu::Mov, to, R6);
    code.alu(Alu::Shr, to, level);
    code.alu(Alu::And, to, ENTRIES - 1);
    code.alu(Alu::Shl, to, ENTRY_SHIFT);
}

/// The entry of the address r6 in the table at r1.
fn entry(code: &mut Code, level: i32, failed: Label) {
    index(code, R3, level);
    code.alu_by(Alu::Add, R3, R1);
    read(code, ENTRY, failed);
}

/// The address = the first one behind what an entry of a level covers.
fn go_behind(code: &mut Code, level: i32, next: Label) {
    code.alu(Alu::Shr, R6, level);
    code.alu(Alu::Add, R6, 1);
    code.alu(Alu::Shl, R6, level);
    code.store(R7, ADDRESS, R6);
    code.jump(next);
}

/// r9 = the counters of this mapping's kind.
fn counters(code: &mut Code) {
    code.load(R1, R7, KIND);
    code.alu(Alu::And, R1, OF_PROGRAM);
    code.alu_by(Alu::Mov, R9, R7);
    code.alu_by(Alu::Add, R9, R1);
}

fn add(code: &mut Code, counter: i16, what: Reg) {
    code.load(R1, R9, COUNTERS + counter);
    code.alu_by(Alu::Add, R1, what);
    code.store(R9, COUNTERS + counter, R1);
}

/// Counts the huge page of the entry r8.
fn count_huge(code: &mut Code, kernel: &Kernel, level: i32) {
    let (referenced, idle) = (code.label(), code.label());
    code.jump_if(When::AnyBit, R8, 1 << ACCESSED_BIT, referenced);
    marked(code, kernel, R8, idle);
    code.place(referenced);
    counters(code);
    code.alu(Alu::Mov, R2, 1 << (level - PAGE_SHIFT));
    add(code, HUGE_REFERENCED, R2);
    code.place(idle);
    counters(code);
    code.alu(Alu::Mov, R2, 1 << (level - PAGE_SHIFT));
    add(code, HUGE_PRESENT, R2);
}

/// Goes on if the page of an entry is marked, else to `idle`.
fn marked(code: &mut Code, kernel: &Kernel, entry: Reg, idle: Label) {
    let own = code.label();
    code.number(R3, FRAME_MASK);
    code.alu_by(Alu::And, R3, entry);
    code.alu(Alu::Shr, R3, PAGE_SHIFT - RECORD_SHIFT);
    code.load(R1, R7, PAGES);
    code.alu_by(Alu::Add, R3, R1);
    code.alu_by(Alu::Mov, R1, R7);
    code.alu(Alu::Add, R1, i32::from(MARKS));
    code.alu(Alu::Mov, R2, i32::from(HEAD - MARKS) + 8);
    code.helper(HELPER_PROBE_READ_KERNEL);
    code.jump_if(When::NotEqual, R0, 0, idle);
    // An odd address is that of the larger page's record, and one.
    code.load(R3, R7, HEAD);
    code.alu_by(Alu::Mov, R1, R3);
    code.alu(Alu::And, R1, 1);
    code.jump_if(When::Equal, R1, 0, own);
    code.alu(Alu::Sub, R3, 1);
    read(code, MARKS, idle);
    code.place(own);
    code.load(R1, R7, MARKS);
    code.number(R2, kernel.marks);
    code.alu_by(Alu::And, R1, R2);
    code.jump_if(When::Equal, R1, 0, idle);
}

/// Counts the entries of the table at r1 from the address r6 to the end of the table or the mapping. r6 is
/// that end then.
fn count_table(code: &mut Code, table: i32, failed: Label) {
    let (whole, counted) = (code.label(), code.label());
    index(code, R3, PAGE_SHIFT);
    code.alu_by(Alu::Add, R3, R1);
    // r8 = the end; r9 = how many entries.
    code.load(R9, R7, END);
    code.alu_by(Alu::Mov, R8, R6);
    code.alu(Alu::Shr, R8, LEVEL_2);
    code.alu(Alu::Add, R8, 1);
    code.alu(Alu::Shl, R8, LEVEL_2);
    code.jump_if_by(When::AtLeast, R9, R8, whole);
    code.alu_by(Alu::Mov, R8, R9);
    code.place(whole);
    code.store(R7, ADDRESS, R8);
    code.alu_by(Alu::Sub, R8, R6);
    code.alu(Alu::Shr, R8, PAGE_SHIFT);
    code.jump_if(When::Above, R8, ENTRIES, failed);
    code.value_of(R1, table);
    code.alu_by(Alu::Mov, R2, R8);
    code.alu(Alu::Shl, R2, ENTRY_SHIFT);
    code.helper(HELPER_PROBE_READ_KERNEL);
    code.jump_if(When::NotEqual, R0, 0, failed);
    // r1: the place in the table; r2: its number; r4, r5: referenced, present.
    code.value_of(R1, table);
    for sum in [R2, R4, R5] {
        code.alu(Alu::Mov, sum, 0);
    }
    let again = code.here();
    code.jump_if_by(When::AtLeast, R2, R8, counted);
    code.load(R3, R1, 0);
    // Bit 0 of r0: present, and not special.
    code.alu_by(Alu::Mov, R0, R3);
    code.alu(Alu::Shr, R0, SPECIAL_BIT);
    code.alu(Alu::Xor, R0, 1);
    code.alu_by(Alu::And, R0, R3);
    code.alu(Alu::And, R0, IS_PRESENT);
    code.alu_by(Alu::Add, R5, R0);
    code.alu(Alu::Shr, R3, ACCESSED_BIT);
    code.alu_by(Alu::And, R3, R0);
    code.alu_by(Alu::Add, R4, R3);
    code.alu(Alu::Add, R1, 8);
    code.alu(Alu::Add, R2, 1);
    code.jump_if(When::Below, R2, ENTRIES, again);
    code.place(counted);
    counters(code);
    add(code, REFERENCED, R4);
    add(code, PRESENT, R5);
    // The entries to check for marks: r9 = those present and without the bit.
    code.alu_by(Alu::Mov, R9, R5);
    code.alu_by(Alu::Sub, R9, R4);
}

/// Counts the marked pages among the table's r8 entries without the bit; r9 entries lack it.
fn count_marked(code: &mut Code, kernel: &Kernel, table: i32, none: Label) {
    let (again, over) = (code.label(), code.label());
    code.jump_if(When::Equal, R9, 0, none);
    code.load(R1, R7, KIND);
    code.jump_if(When::NotEqual, R1, 0, none);
    begin(code, kernel, INNER_LOOP, ENTRIES);
    code.place(again);
    discard(code, &[R6, R9]);
    step(code, kernel, INNER_LOOP, over);
    code.load_32(R1, R0, 0);
    code.jump_if_by(When::AtLeast, R1, R8, over);
    code.alu(Alu::And, R1, ENTRIES - 1);
    code.alu(Alu::Shl, R1, ENTRY_SHIFT);
    code.value_of(R2, table);
    code.alu_by(Alu::Add, R2, R1);
    code.load(R6, R2, 0);
    code.alu_by(Alu::Mov, R1, R6);
    code.alu(Alu::And, R1, IS_PRESENT | 1 << ACCESSED_BIT | 1 << SPECIAL_BIT);
    code.jump_if(When::NotEqual, R1, IS_PRESENT, again);
    marked(code, kernel, R6, again);
    counters(code);
    code.alu(Alu::Mov, R2, 1);
    add(code, REFERENCED, R2);
    code.jump(again);
    code.place(over);
    end(code, kernel, INNER_LOOP);
}
