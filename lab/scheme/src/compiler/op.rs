//! The instructions of the machine.

/// One instruction. `fp` is the stack index of the running procedure's first argument; its closure lies
/// below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// Pushes a constant of the program.
    Constant(u32),
    /// Pushes an immediate.
    Immediate(u64),
    /// Pushes the value at `fp` + n.
    Local(u32),
    /// Pushes the running closure's slot.
    Captured(u32),
    /// Pushes the running closure.
    Itself,
    /// Replaces the cell on top by its value; the variable's name is for errors.
    Unwrap(u32),
    /// Puts the value at `fp` + n into a cell.
    Wrap(u32),
    /// Pops a cell and then a value for it. The result is unspecified.
    SetCell,
    /// Pushes a global variable's value.
    Global(u32),
    /// Pops a value for a global variable that must be defined. The result is unspecified.
    SetGlobal(u32),
    /// Pops a value for a global variable. The result is unspecified.
    Define(u32),
    /// Pops the value of the variable at `fp` + n.
    Store(u32),
    /// Makes a closure of code and of the `count` values on top.
    Closure {
        /// Captured values.
        count: u32,
        /// The place of its code.
        entry: u32,
    },
    /// Begins a procedure: checks the number of arguments, and makes a list of those beyond `required`.
    Enter {
        /// The least number of arguments.
        required: u16,
        /// Whether more arguments are allowed.
        has_rest: bool,
        /// The procedure's name.
        name: u32,
    },
    /// Jumps to this place.
    Jump(u32),
    /// Pops a value, and jumps if it is false.
    JumpIfFalse(u32),
    /// Jumps and keeps the top if the top is false (or not false, by `condition`); otherwise pops it.
    JumpKeeping {
        /// The truth value for which it jumps.
        condition: bool,
        /// The target of the jump.
        to: u32,
    },
    /// Begins a call: saves the place to continue at, and `fp`.
    Frame(u32),
    /// Calls the procedure below the n arguments on top.
    Call(u32),
    /// Calls that procedure in place of the running one.
    TailCall(u32),
    /// Ends the procedure with the value on top.
    Return,
    /// Drops the top.
    Pop,
    /// Drops n values below the top.
    Slide(u32),
    /// An operation on the top.
    One(One),
    /// An operation on the two values on top.
    Two(Two),
    /// Calls a procedure with a list of arguments in place of the running procedure.
    Apply,
    /// Calls a procedure with the continuation of the running one, in place of the running one.
    Capture,
    /// Ends the machine's run with the value on top.
    Halt,
}

/// Operations on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as Scheme's procedures")]
pub enum One {
    Car,
    Cdr,
    IsNull,
    IsPair,
    Not,
}

/// Operations on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as Scheme's procedures")]
pub enum Two {
    Add,
    Subtract,
    Multiply,
    Less,
    Greater,
    AtMost,
    AtLeast,
    Equal,
    Same,
    Cons,
    VectorRef,
}

/// Procedures of one argument that are compiled to instructions, unless their names are redefined.
pub const ONES: [(&str, One); 5] =
    [("car", One::Car), ("cdr", One::Cdr), ("null?", One::IsNull), ("pair?", One::IsPair), ("not", One::Not)];

/// Such procedures of two arguments.
pub const TWOS: [(&str, Two); 12] = [
    ("+", Two::Add),
    ("-", Two::Subtract),
    ("*", Two::Multiply),
    ("<", Two::Less),
    (">", Two::Greater),
    ("<=", Two::AtMost),
    (">=", Two::AtLeast),
    ("=", Two::Equal),
    ("eq?", Two::Same),
    ("eqv?", Two::Same),
    ("cons", Two::Cons),
    ("vector-ref", Two::VectorRef),
];
