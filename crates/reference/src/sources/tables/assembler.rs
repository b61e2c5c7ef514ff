//! An assembler for the few BPF instructions that [`program`](super::program) needs.
//!
//! An instruction is 64 bits: operation, two registers, a jump's or an address's offset, and a number. Jumps
//! refer to labels, which [`Code::finish`] resolves; the target label of each jump must have been placed.
//!
//! Source: the kernel's Documentation/bpf/standardization/instruction-set.rst.

/// A register: r0 results, r1 to r5 arguments and scratch, r6 to r9 kept over calls, r10 the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reg(u8);

pub(super) const R0: Reg = Reg(0);
pub(super) const R1: Reg = Reg(1);
pub(super) const R2: Reg = Reg(2);
pub(super) const R3: Reg = Reg(3);
pub(super) const R4: Reg = Reg(4);
pub(super) const R5: Reg = Reg(5);
pub(super) const R6: Reg = Reg(6);
pub(super) const R7: Reg = Reg(7);
pub(super) const R8: Reg = Reg(8);
pub(super) const R9: Reg = Reg(9);
pub(super) const FRAME: Reg = Reg(10);

#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Alu {
    Add = 0x00,
    Sub = 0x10,
    And = 0x50,
    Shl = 0x60,
    Shr = 0x70,
    Xor = 0xa0,
    Mov = 0xb0,
}

#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum When {
    Equal = 0x10,
    Above = 0x20,
    AtLeast = 0x30,
    AnyBit = 0x40,
    NotEqual = 0x50,
    Below = 0xa0,
}

const ALU64: u8 = 0x07;
const JMP: u8 = 0x05;
/// The second operand is a register, not a number.
const BY_REGISTER: u8 = 0x08;
const LOAD: u8 = 0x79;
const LOAD_32: u8 = 0x61;
const STORE: u8 = 0x7b;
const WIDE: u8 = 0x18;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// Source field of a wide load: the number is the descriptor of a map, and the address of its value is
/// loaded.
const OF_MAP_VALUE: u8 = 2;
/// Source field of a call: a kernel function by its type's number.
const OF_KERNEL: u8 = 2;

#[derive(Clone, Copy, Debug)]
pub(super) struct Label(usize);

#[derive(Debug, Default)]
pub(super) struct Code {
    instructions: Vec<u64>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Code {
    fn put(&mut self, operation: u8, to: Reg, from: u8, offset: i16, number: i32) {
        let registers = u64::from(to.0) | u64::from(from) << 4;
        let (offset, number) = (u64::from(offset as u16), u64::from(number as u32));
        self.instructions.push(u64::from(operation) | registers << 8 | offset << 16 | number << 32);
    }

    pub(super) fn alu(&mut self, what: Alu, to: Reg, number: i32) {
        self.put(ALU64 | what as u8, to, 0, 0, number);
    }

    pub(super) fn alu_by(&mut self, what: Alu, to: Reg, from: Reg) {
        self.put(ALU64 | BY_REGISTER | what as u8, to, from.0, 0, 0);
    }

    /// `to = *(u64 *)(from + offset)`
    pub(super) fn load(&mut self, to: Reg, from: Reg, offset: i16) {
        self.put(LOAD, to, from.0, offset, 0);
    }

    /// `to = *(u32 *)(from + offset)`
    pub(super) fn load_32(&mut self, to: Reg, from: Reg, offset: i16) {
        self.put(LOAD_32, to, from.0, offset, 0);
    }

    /// `*(u64 *)(to + offset) = from`
    pub(super) fn store(&mut self, to: Reg, offset: i16, from: Reg) {
        self.put(STORE, to, from.0, offset, 0);
    }

    fn wide(&mut self, to: Reg, from: u8, low: u32, high: u32) {
        self.put(WIDE, to, from, 0, low as i32);
        self.instructions.push(u64::from(high) << 32);
    }

    pub(super) fn number(&mut self, to: Reg, number: u64) {
        self.wide(to, 0, number as u32, (number >> 32) as u32);
    }

    pub(super) fn value_of(&mut self, to: Reg, map: i32) {
        self.wide(to, OF_MAP_VALUE, map as u32, 0);
    }

    pub(super) fn helper(&mut self, number: i32) {
        self.put(CALL, R0, 0, 0, number);
    }

    pub(super) fn kernel(&mut self, function: u32) {
        self.put(CALL, R0, OF_KERNEL, 0, function as i32);
    }

    pub(super) fn exit(&mut self) {
        self.put(EXIT, R0, 0, 0, 0);
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    pub(super) fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.instructions.len());
    }

    pub(super) fn here(&mut self) -> Label {
        let label = self.label();
        self.place(label);
        label
    }

    pub(super) fn jump(&mut self, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.put(JMP, R0, 0, 0, 0);
    }

    pub(super) fn jump_if(&mut self, when: When, what: Reg, number: i32, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.put(JMP | when as u8, what, 0, 0, number);
    }

    pub(super) fn jump_if_by(&mut self, when: When, what: Reg, other: Reg, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.put(JMP | BY_REGISTER | when as u8, what, other.0, 0, 0);
    }

    pub(super) fn finish(mut self) -> Option<Vec<u64>> {
        for (at, to) in &self.jumps {
            let distance = self.labels[to.0]? as i64 - *at as i64 - 1;
            self.instructions[*at] |= u64::from(i16::try_from(distance).ok()? as u16) << 16;
        }
        Some(self.instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_what_the_manual_says() {
        let mut code = Code::default();
        let end = code.label();
        code.alu(Alu::Mov, R6, -1);
        code.alu_by(Alu::Add, R1, R2);
        code.load(R3, FRAME, -8);
        code.number(R4, 0x1122_3344_5566_7788);
        code.jump_if_by(When::AtLeast, R1, R2, end);
        code.helper(113);
        code.place(end);
        code.exit();
        let bytes: Vec<[u8; 8]> = code.finish().unwrap().into_iter().map(u64::to_le_bytes).collect();
        assert_eq!(bytes[0], [0xb7, 0x06, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(bytes[1], [0x0f, 0x21, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[2], [0x79, 0xa3, 0xf8, 0xff, 0, 0, 0, 0]);
        assert_eq!(bytes[3], [0x18, 0x04, 0, 0, 0x88, 0x77, 0x66, 0x55]);
        assert_eq!(bytes[4], [0, 0, 0, 0, 0x44, 0x33, 0x22, 0x11]);
        assert_eq!(bytes[5], [0x3d, 0x21, 1, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[6], [0x85, 0, 0, 0, 113, 0, 0, 0]);
        assert_eq!(bytes[7], [0x95, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_label_that_was_never_placed_is_found() {
        let mut code = Code::default();
        let nowhere = code.label();
        code.jump(nowhere);
        assert_eq!(code.finish(), None);
    }
}
