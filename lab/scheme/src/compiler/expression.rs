//! Expressions, the analyser's output: all names are resolved.

use crate::datum::{Datum, Place};
use std::cell::Cell;
use std::rc::Rc;

/// A local variable.
#[derive(Debug)]
pub struct Variable {
    /// For errors.
    pub name: Rc<str>,
    /// Whether it is assigned to, or seen before it has a value: then it lives in a cell.
    pub has_cell: Cell<bool>,
    /// Whether it has its value already, where the analyser is.
    pub is_ready: Cell<bool>,
}

/// A procedure.
#[derive(Debug)]
pub struct Lambda {
    /// For errors.
    pub name: Rc<str>,
    /// Its parameters, the last of which is a list if `has_rest`.
    pub parameters: Vec<Rc<Variable>>,
    /// Whether it takes any number of arguments.
    pub has_rest: bool,
    /// The variable that it is the only value of.
    pub itself: Option<Rc<Variable>>,
    /// What it does.
    pub body: Expression,
}

/// What a datum means.
#[derive(Debug)]
#[expect(missing_docs, reason = "as Scheme's forms")]
pub enum Expression {
    Quote(Datum),
    Unspecified,
    Local(Rc<Variable>),
    Global(Rc<str>, Place),
    SetLocal(Rc<Variable>, Box<Expression>),
    SetGlobal(Rc<str>, Box<Expression>, Place),
    Define(Rc<str>, Box<Expression>),
    If(Box<[Expression; 3]>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Lambda(Box<Lambda>),
    Sequence(Vec<Expression>),
    /// Variables, their first values, and what is done with them; each value may see the variables before.
    Let(Vec<(Rc<Variable>, Expression)>, Box<Expression>),
    /// The same; each value may see all variables.
    LetRec(Vec<(Rc<Variable>, Expression)>, Box<Expression>),
    Call(Vec<Expression>, Place),
}
