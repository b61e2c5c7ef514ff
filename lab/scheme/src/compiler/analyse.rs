//! The analyser: resolves the names in data and returns expressions.

use super::derived::{self, Fresh};
use super::expression::{Expression, Lambda, Variable};
use crate::datum::{Datum, Place, Shape, SyntaxError};
use std::cell::Cell;
use std::rc::Rc;

/// Greatest nesting of expressions, after derived forms are expanded.
const DEPTH_MAX: usize = 2000;
/// Names of forms that are not derived.
const FORMS: [&str; 12] = [
    "quote",
    "if",
    "define",
    "set!",
    "lambda",
    "named-lambda",
    "begin",
    "let",
    "letrec",
    "letrec*",
    "and",
    "or",
];

type Found<T = Expression> = Result<T, SyntaxError>;

/// Resolves the names of one datum at a time.
#[derive(Debug, Default)]
pub struct Analyser {
    fresh: Fresh,
    /// Variables in scope, the innermost last.
    variables: Vec<Rc<Variable>>,
    /// Variables whose value, a procedure, is being analysed.
    itself: Vec<Rc<Variable>>,
    depth: usize,
}

fn variable(name: &Datum, is_ready: bool) -> Found<Rc<Variable>> {
    let found = name.as_symbol().cloned();
    let name = found.ok_or_else(|| SyntaxError::new(name.place, "a name was expected"))?;
    Ok(Rc::new(Variable { name, has_cell: Cell::new(false), is_ready: Cell::new(is_ready) }))
}

fn wrong<T>(place: Place, message: &str) -> Found<T> {
    Err(SyntaxError::new(place, message))
}

impl Analyser {
    /// Translates a datum at the top level of a program.
    ///
    /// # Errors
    /// If the datum is no valid expression.
    pub fn program(&mut self, datum: &Datum) -> Found {
        self.variables.clear();
        self.itself.clear();
        self.depth = 0;
        self.expression(datum)
    }

    fn lookup(&self, name: &str) -> Option<&Rc<Variable>> {
        self.variables.iter().rev().find(|variable| &*variable.name == name)
    }

    /// The name of the form that a list is, unless a variable has that name.
    fn form_of<'d>(&self, elements: &'d [Datum]) -> Option<&'d str> {
        let name = elements.first()?.as_symbol()?;
        let is_form = FORMS.contains(&&**name) || derived::NAMES.contains(&&**name);
        (is_form && self.lookup(name).is_none()).then_some(&**name)
    }

    fn expression(&mut self, datum: &Datum) -> Found {
        if self.depth == DEPTH_MAX {
            return wrong(datum.place, "expressions nest too deep");
        }
        self.depth += 1;
        let found = match &datum.shape {
            Shape::Symbol(name) => Ok(self.reference(name, datum.place)),
            Shape::List(elements, None) => self.list(datum, elements),
            Shape::List(_, Some(_)) => wrong(datum.place, "an expression is no list with a dot"),
            _ => Ok(Expression::Quote(datum.clone())),
        };
        self.depth -= 1;
        found
    }

    fn reference(&self, name: &Rc<str>, place: Place) -> Expression {
        match self.lookup(name) {
            Some(variable) => {
                // The variable may have no value yet. Only the procedure that is its value can refer to
                // itself without a cell.
                if !variable.is_ready.get() && !self.itself.iter().any(|own| Rc::ptr_eq(own, variable)) {
                    variable.has_cell.set(true);
                }
                Expression::Local(variable.clone())
            }
            None => Expression::Global(name.clone(), place),
        }
    }

    fn list(&mut self, datum: &Datum, elements: &[Datum]) -> Found {
        let place = datum.place;
        let Some(form) = self.form_of(elements) else {
            if elements.is_empty() {
                return wrong(place, "() is no expression: quote it");
            }
            return Ok(Expression::Call(self.each(elements)?, place));
        };
        if let Some(derived) = derived::derive(&mut self.fresh, form, datum) {
            return self.expression(&derived?);
        }
        match (form, &elements[1..]) {
            ("quote", [quoted]) => Ok(Expression::Quote(quoted.clone())),
            ("if", [test, then]) => {
                let parts = [self.expression(test)?, self.expression(then)?, Expression::Unspecified];
                Ok(Expression::If(Box::new(parts)))
            }
            ("if", [test, then, otherwise]) => {
                let (test, then) = (self.expression(test)?, self.expression(then)?);
                Ok(Expression::If(Box::new([test, then, self.expression(otherwise)?])))
            }
            ("define", _) | ("define-values", _) if !self.variables.is_empty() || self.depth > 2 => {
                wrong(place, "a definition stands at the beginning of a body")
            }
            ("define", _) => {
                let (name, value) = definition(datum, elements)?;
                let known = name.as_symbol().cloned().expect("checked by definition");
                let value = self.named(&value, &known)?;
                Ok(Expression::Define(known, Box::new(value)))
            }
            ("define-values", [formals, values]) => {
                let datum = define_values(place, formals, values)?;
                self.depth -= 1;
                let found = self.expression(&datum);
                self.depth += 1;
                found
            }
            ("set!", [name, value]) => {
                let Some(known) = name.as_symbol() else { return wrong(name.place, "a name was expected") };
                let value = Box::new(self.expression(value)?);
                match self.lookup(known) {
                    Some(variable) => {
                        variable.has_cell.set(true);
                        Ok(Expression::SetLocal(variable.clone(), value))
                    }
                    None => Ok(Expression::SetGlobal(known.clone(), value, place)),
                }
            }
            ("lambda", [parameters, body @ ..]) => {
                self.lambda(place, parameters, body, &"lambda".into(), None)
            }
            ("begin", body) => {
                // Definitions in it belong to the surrounding body.
                self.depth -= 1;
                let all = self.each(body);
                self.depth += 1;
                Ok(sequence(all?))
            }
            ("let", [name, bindings, body @ ..]) if name.as_symbol().is_some() => {
                self.named_let(place, name, bindings, body)
            }
            ("let", [bindings, body @ ..]) => {
                let bindings = pairs(bindings)?;
                let values = bindings.iter().map(|(_, value)| self.expression(value));
                let values = values.collect::<Found<Vec<_>>>()?;
                let variables = bindings.iter().map(|(name, _)| variable(name, true));
                let variables = distinct(place, variables.collect::<Found<Vec<_>>>()?)?;
                let body = self.within(&variables, |this| this.body(place, body))?;
                Ok(Expression::Let(variables.into_iter().zip(values).collect(), Box::new(body)))
            }
            ("letrec" | "letrec*", [bindings, body @ ..]) => {
                let bindings = pairs(bindings)?;
                self.recursive(place, &bindings, |this| this.body(place, body))
            }
            ("and", parts) => Ok(Expression::And(self.each(parts)?)),
            ("or", parts) => Ok(Expression::Or(self.each(parts)?)),
            _ => wrong(place, &format!("{form} does not look like this")),
        }
    }

    fn each(&mut self, data: &[Datum]) -> Found<Vec<Expression>> {
        data.iter().map(|datum| self.expression(datum)).collect()
    }

    fn within<T>(&mut self, variables: &[Rc<Variable>], inside: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.variables.len();
        self.variables.extend_from_slice(variables);
        let result = inside(self);
        self.variables.truncate(before);
        result
    }

    /// The value of a variable; a procedure gets the variable's name.
    fn named(&mut self, value: &Datum, name: &Rc<str>) -> Found {
        match value.as_form("lambda") {
            Some([_, parameters, body @ ..]) if self.lookup("lambda").is_none() => {
                self.lambda(value.place, parameters, body, name, None)
            }
            _ => self.expression(value),
        }
    }

    fn lambda(
        &mut self,
        place: Place,
        parameters: &Datum,
        body: &[Datum],
        name: &Rc<str>,
        itself: Option<&Rc<Variable>>,
    ) -> Found {
        let (names, rest) = match &parameters.shape {
            Shape::List(names, rest) => (names.as_slice(), rest.as_deref()),
            _ => (&[][..], Some(parameters)),
        };
        let variables = names.iter().chain(rest).map(|name| variable(name, true));
        let variables = distinct(place, variables.collect::<Found<Vec<_>>>()?)?;
        if variables.len() > usize::from(u16::MAX) {
            return wrong(place, "these are too many parameters");
        }
        self.itself.extend(itself.cloned());
        let body = self.within(&variables, |this| this.body(place, body));
        self.itself.truncate(self.itself.len() - usize::from(itself.is_some()));
        Ok(Expression::Lambda(Box::new(Lambda {
            name: name.clone(),
            parameters: variables,
            has_rest: rest.is_some(),
            itself: itself.cloned(),
            body: body?,
        })))
    }

    /// A procedure's body: definitions, then expressions.
    fn body(&mut self, place: Place, body: &[Datum]) -> Found {
        let (mut definitions, mut waiting) = (Vec::new(), body.to_vec());
        waiting.reverse();
        while let Some(datum) = waiting.pop() {
            let elements = datum.as_list().unwrap_or(&[]);
            match self.form_of(elements) {
                Some("begin") if elements[1..].iter().any(is_definition) => {
                    waiting.extend(elements[1..].iter().rev().cloned());
                }
                Some("define-record-type") => {
                    let derived = derived::derive(&mut self.fresh, "define-record-type", &datum);
                    waiting.push(derived.unwrap_or_else(|| wrong(datum.place, "this is no record type"))?);
                }
                Some("define-values") if elements.len() == 3 => {
                    waiting.push(define_values(datum.place, &elements[1], &elements[2])?);
                }
                Some("define") => definitions.push(definition(&datum, elements)?),
                _ => {
                    waiting.push(datum);
                    break;
                }
            }
        }
        waiting.reverse();
        if waiting.is_empty() {
            return wrong(place, "a body ends with an expression");
        }
        if definitions.is_empty() {
            return Ok(sequence(self.each(&waiting)?));
        }
        self.recursive(place, &definitions, |this| Ok(sequence(this.each(&waiting)?)))
    }

    fn recursive(
        &mut self,
        place: Place,
        bindings: &[(Datum, Datum)],
        body: impl FnOnce(&mut Self) -> Found,
    ) -> Found {
        let variables = bindings.iter().map(|(name, _)| variable(name, false));
        let variables = distinct(place, variables.collect::<Found<Vec<_>>>()?)?;
        self.within(&variables, |this| {
            let mut all = Vec::new();
            for (own, (_, value)) in variables.iter().zip(bindings) {
                let value = match value.as_form("lambda") {
                    Some([_, parameters, body @ ..]) if this.lookup("lambda").is_none() => {
                        this.lambda(value.place, parameters, body, &own.name, Some(own))?
                    }
                    _ => this.expression(value)?,
                };
                own.is_ready.set(true);
                all.push((own.clone(), value));
            }
            Ok(Expression::LetRec(all, Box::new(body(this)?)))
        })
    }

    fn named_let(&mut self, place: Place, name: &Datum, bindings: &Datum, body: &[Datum]) -> Found {
        let bindings = pairs(bindings)?;
        let (names, firsts): (Vec<_>, Vec<_>) = bindings.into_iter().unzip();
        let mut call = vec![Expression::Unspecified];
        call.extend(self.each(&firsts)?);
        let parameters = std::iter::once(Datum::list(place, names)).chain(body.iter().cloned());
        let procedure = (name.clone(), Datum::form(place, "lambda", parameters));
        call[0] = self.recursive(place, &[procedure], |this| this.expression(name))?;
        Ok(Expression::Call(call, place))
    }
}

fn is_definition(datum: &Datum) -> bool {
    let forms = ["define", "define-values", "define-record-type", "begin"];
    forms.iter().any(|form| datum.as_form(form).is_some())
}

fn sequence(mut all: Vec<Expression>) -> Expression {
    match all.len() {
        0 => Expression::Unspecified,
        1 => all.remove(0),
        _ => Expression::Sequence(all),
    }
}

fn distinct(place: Place, variables: Vec<Rc<Variable>>) -> Found<Vec<Rc<Variable>>> {
    let mut names: Vec<&str> = variables.iter().map(|variable| &*variable.name).collect();
    names.sort_unstable();
    match names.windows(2).find(|two| two[0] == two[1]) {
        Some(two) => wrong(place, &format!("{} stands here twice", two[0])),
        None => Ok(variables),
    }
}

fn pairs(bindings: &Datum) -> Found<Vec<(Datum, Datum)>> {
    let Some(list) = bindings.as_list() else {
        return wrong(bindings.place, "a list of bindings was expected");
    };
    let pair = |binding: &Datum| match binding.as_list() {
        Some([name, value]) => Ok((name.clone(), value.clone())),
        _ => wrong(binding.place, "a binding is (name expression)"),
    };
    list.iter().map(pair).collect()
}

/// The name that a definition binds, and its value.
fn definition(datum: &Datum, elements: &[Datum]) -> Found<(Datum, Datum)> {
    match &elements[1..] {
        [name, value] if name.as_symbol().is_some() => Ok((name.clone(), value.clone())),
        [Datum { place, shape: Shape::List(head, rest) }, body @ ..] if !head.is_empty() => {
            let parameters = Datum { place: *place, shape: Shape::List(head[1..].to_vec(), rest.clone()) };
            let parameters = match (&parameters.shape, rest) {
                (Shape::List(names, _), Some(rest)) if names.is_empty() => (**rest).clone(),
                _ => parameters,
            };
            let parts = std::iter::once(parameters).chain(body.iter().cloned());
            let procedure = Datum::form(datum.place, "lambda", parts);
            // `(define ((f a) b) ...)` defines a procedure that returns a procedure.
            if head[0].as_symbol().is_some() {
                return Ok((head[0].clone(), procedure));
            }
            let outer = Datum::form(datum.place, "define", [head[0].clone(), procedure]);
            definition(&outer, outer.as_list().expect("a list"))
        }
        _ => wrong(
            datum.place,
            "a definition is (define name value) or (define (name parameter ...) body ...)",
        ),
    }
}

/// `(begin (define a #f) ... (receive (%a ...) values (set! a %a) ...))`.
fn define_values(place: Place, formals: &Datum, values: &Datum) -> Found<Datum> {
    let names = formals.as_list().filter(|names| names.iter().all(|name| name.as_symbol().is_some()));
    let Some(names) = names else { return wrong(formals.place, "a list of names was expected") };
    let nothing = || Datum::form(place, "begin", []);
    let defined = names.iter().map(|name| Datum::form(place, "define", [name.clone(), nothing()]));
    let inner = |name: &Datum| Datum::symbol(place, &format!("%{}", name.as_symbol().expect("checked")));
    let set = names.iter().map(|name| Datum::form(place, "set!", [name.clone(), inner(name)]));
    let given = Datum::list(place, names.iter().map(inner).collect::<Vec<_>>());
    let done = Datum::form(place, "receive", [given, values.clone()].into_iter().chain(set));
    let unused = Datum::symbol(place, "%defined");
    let last = Datum::form(place, "define", [unused, done]);
    Ok(Datum::form(place, "begin", defined.chain([last])))
}
