//! Expressions, the analyser's output: all names are resolved.

use crate::datum::{Datum, Place};
use std::cell::Cell;
use std::rc::Rc;

/// A local variable.
#[derive(Debug)]
pub struct Variable {
    /// The name, for errors.
    pub name: Rc<str>,
    /// Whether it needs a cell, since it is assigned to, or used before it has a value.
    pub has_cell: Cell<bool>,
    /// Whether it has its value at the analyser's current place.
    pub is_ready: Cell<bool>,
}

/// A procedure.
#[derive(Debug)]
pub struct Lambda {
    /// The name, for errors.
    pub name: Rc<str>,
    /// Its parameters, the last of which is a list if `has_rest`.
    pub parameters: Vec<Rc<Variable>>,
    /// Whether it takes any number of arguments.
    pub has_rest: bool,
    /// The variable that always has this procedure as its value.
    pub itself: Option<Rc<Variable>>,
    /// The body.
    pub body: Expression,
}

/// An expression: the meaning of a datum.
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
    /// Variables, their initial values, and the body; each value may refer to the variables before it.
    Let(Vec<(Rc<Variable>, Expression)>, Box<Expression>),
    /// The same, but each value may refer to all variables.
    LetRec(Vec<(Rc<Variable>, Expression)>, Box<Expression>),
    Call(Vec<Expression>, Place),
}
