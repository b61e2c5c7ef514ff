//! Derived forms (R7RS, section 7.3), such as `cond`: each is rewritten to data of more basic forms.
//!
//! Names that a rewriting adds begin with `%`: those of built-in procedures (`%not`), and new ones (`%1`).
//! Programs cannot define macros.

use crate::datum::{Datum, Place, Shape, SyntaxError};

type Derived = Result<Datum, SyntaxError>;

/// Makes unique names.
#[derive(Debug, Default)]
pub(super) struct Fresh(usize);

impl Fresh {
    fn name(&mut self, place: Place) -> Datum {
        self.0 += 1;
        Datum::symbol(place, &format!("%{}", self.0))
    }
}

/// The datum that a derived form stands for; `None` if the list is no derived form.
pub(super) fn derive(fresh: &mut Fresh, name: &str, form: &Datum) -> Option<Derived> {
    let (place, all) = (form.place, form.as_list()?);
    let found = match (name, &all[1..]) {
        ("let*", [bindings, body @ ..]) => nested(place, "let", bindings, body),
        ("let*-values", [bindings, body @ ..]) | ("let-values", [bindings, body @ ..]) => {
            let_values(place, bindings, body)
        }
        ("receive", [formals, values, body @ ..]) => Ok(receive(place, formals, values, body)),
        ("when", [test, body @ ..]) => {
            Ok(Datum::form(place, "if", [test.clone(), Datum::form(place, "begin", body.to_vec())]))
        }
        ("unless", [test, body @ ..]) => {
            let test = Datum::form(place, "%not", [test.clone()]);
            Ok(Datum::form(place, "if", [test, Datum::form(place, "begin", body.to_vec())]))
        }
        ("cond", clauses) => cond(fresh, place, clauses),
        ("case", [key, clauses @ ..]) => case(fresh, place, key, clauses),
        ("do", [bindings, end, body @ ..]) => repeat(fresh, place, bindings, end, body),
        ("quasiquote", [template]) => Ok(quasi(template, 1)),
        ("delay", [value]) => Ok(Datum::form(place, "%make-promise", [lambda(place, &[], [value.clone()])])),
        ("guard", [clause, body @ ..]) => guard(place, clause, body),
        ("parameterize", [bindings, body @ ..]) => parameterize(place, bindings, body),
        ("assert", [condition]) => {
            let text = Datum { place, shape: Shape::Text("assertion failed".into()) };
            let failed = Datum::form(place, "error", [text, condition.clone().quoted()]);
            Ok(Datum::form(place, "if", [condition.clone(), Datum::form(place, "begin", []), failed]))
        }
        ("define-record-type", [name, constructor, predicate, fields @ ..]) => {
            record(place, name, constructor, predicate, fields)
        }
        _ => return None,
    };
    Some(found)
}

pub(super) const NAMES: [&str; 16] = [
    "let*",
    "let*-values",
    "let-values",
    "receive",
    "when",
    "unless",
    "cond",
    "case",
    "do",
    "quasiquote",
    "delay",
    "guard",
    "parameterize",
    "assert",
    "define-record-type",
    "define-values",
];

fn lambda(place: Place, parameters: &[Datum], body: impl IntoIterator<Item = Datum>) -> Datum {
    let parameters = Datum::list(place, parameters);
    Datum::form(place, "lambda", std::iter::once(parameters).chain(body))
}

fn list<'d>(datum: &'d Datum, what: &str) -> Result<&'d [Datum], SyntaxError> {
    datum.as_list().ok_or_else(|| SyntaxError::new(datum.place, format_args!("{what} was expected")))
}

fn nested(place: Place, form: &str, bindings: &Datum, body: &[Datum]) -> Derived {
    let bindings = list(bindings, "a list of bindings")?;
    let inner =
        Datum::form(place, "let", std::iter::once(Datum::list(place, [])).chain(body.iter().cloned()));
    Ok(bindings.iter().rev().fold(inner, |inner, binding| {
        Datum::form(place, form, [Datum::list(place, [binding.clone()]), inner])
    }))
}

fn receive(place: Place, formals: &Datum, values: &Datum, body: &[Datum]) -> Datum {
    let consumer = std::iter::once(formals.clone()).chain(body.iter().cloned());
    let producer = lambda(place, &[], [values.clone()]);
    Datum::form(place, "call-with-values", [producer, Datum::form(place, "lambda", consumer)])
}

fn let_values(place: Place, bindings: &Datum, body: &[Datum]) -> Derived {
    let inner =
        Datum::form(place, "let", std::iter::once(Datum::list(place, [])).chain(body.iter().cloned()));
    let bindings = list(bindings, "a list of bindings")?;
    bindings.iter().rev().try_fold(inner, |inner, binding| match list(binding, "a binding")? {
        [formals, values] => Ok(receive(place, formals, values, &[inner])),
        _ => Err(SyntaxError::new(binding.place, "a binding has names and an expression")),
    })
}

fn cond(fresh: &mut Fresh, place: Place, clauses: &[Datum]) -> Derived {
    let Some((clause, rest)) = clauses.split_first() else { return Ok(Datum::form(place, "begin", [])) };
    let parts = list(clause, "a clause")?;
    let place = clause.place;
    match parts {
        [first, body @ ..] if first.is("else") => {
            if rest.is_empty() {
                Ok(Datum::form(place, "begin", body.to_vec()))
            } else {
                Err(SyntaxError::new(place, "else is the last clause"))
            }
        }
        [test] => Ok(Datum::form(place, "or", [test.clone(), cond(fresh, place, rest)?])),
        [test, arrow, receiver] if arrow.is("=>") => {
            let name = fresh.name(place);
            let call = Datum::list(place, [receiver.clone(), name.clone()]);
            let choice = Datum::form(place, "if", [name.clone(), call, cond(fresh, place, rest)?]);
            let binding = Datum::list(place, [Datum::list(place, [name, test.clone()])]);
            Ok(Datum::form(place, "let", [binding, choice]))
        }
        [test, body @ ..] => {
            let body = Datum::form(place, "begin", body.to_vec());
            Ok(Datum::form(place, "if", [test.clone(), body, cond(fresh, place, rest)?]))
        }
        [] => Err(SyntaxError::new(place, "a clause has a test")),
    }
}

fn case(fresh: &mut Fresh, place: Place, key: &Datum, clauses: &[Datum]) -> Derived {
    let name = fresh.name(place);
    let clauses = clauses.iter().map(|clause| {
        let parts = list(clause, "a clause")?;
        let (first, body) =
            parts.split_first().ok_or_else(|| SyntaxError::new(clause.place, "a clause has data"))?;
        let body = match body {
            [arrow, receiver] if arrow.is("=>") => {
                vec![Datum::list(place, [receiver.clone(), name.clone()])]
            }
            body => body.to_vec(),
        };
        let test = if first.is("else") {
            first.clone()
        } else {
            list(first, "a list of data")?;
            Datum::form(place, "%memv", [name.clone(), first.clone().quoted()])
        };
        Ok(Datum::list(clause.place, std::iter::once(test).chain(body).collect::<Vec<_>>()))
    });
    let clauses = clauses.collect::<Result<Vec<_>, _>>()?;
    let binding = Datum::list(place, [Datum::list(place, [name.clone(), key.clone()])]);
    Ok(Datum::form(place, "let", [binding, Datum::form(place, "cond", clauses)]))
}

fn repeat(fresh: &mut Fresh, place: Place, bindings: &Datum, end: &Datum, body: &[Datum]) -> Derived {
    let name = fresh.name(place);
    let (mut firsts, mut nexts) = (Vec::new(), Vec::new());
    for binding in list(bindings, "a list of bindings")? {
        match list(binding, "a binding")? {
            [variable, first, next @ ..] if next.len() < 2 => {
                firsts.push(Datum::list(place, [variable.clone(), first.clone()]));
                nexts.push(next.first().unwrap_or(variable).clone());
            }
            _ => return Err(SyntaxError::new(binding.place, "a binding of do is (name first next)")),
        }
    }
    let Some((test, results)) = list(end, "a test and results")?.split_first() else {
        return Err(SyntaxError::new(end.place, "do has a test"));
    };
    let again = Datum::list(place, std::iter::once(name.clone()).chain(nexts).collect::<Vec<_>>());
    let again = Datum::form(place, "begin", body.iter().cloned().chain([again]));
    let result = Datum::form(place, "begin", results.to_vec());
    let choice = Datum::form(place, "if", [test.clone(), result, again]);
    Ok(Datum::form(place, "let", [name, Datum::list(place, firsts), choice]))
}

fn quasi(template: &Datum, depth: usize) -> Datum {
    let place = template.place;
    let deeper = |name: &str, inner: &Datum, depth| {
        let name = Datum::symbol(place, name).quoted();
        Datum::form(place, "%list", [name, quasi(inner, depth)])
    };
    match &template.shape {
        Shape::List(elements, tail) => {
            match elements.as_slice() {
                [first, inner] if first.is("unquote") && tail.is_none() => {
                    return if depth == 1 { inner.clone() } else { deeper("unquote", inner, depth - 1) };
                }
                [first, inner] if first.is("quasiquote") && tail.is_none() => {
                    return deeper("quasiquote", inner, depth + 1);
                }
                _ => {}
            }
            // `(a . ,b)` reads as `(a unquote b)`.
            let dotted = elements.len().checked_sub(2).filter(|&at| at > 0 && elements[at].is("unquote"));
            let (elements, end) = match (dotted.filter(|_| depth == 1), tail) {
                (Some(at), _) => (&elements[..at], elements[at + 1].clone()),
                (None, Some(tail)) => (elements.as_slice(), quasi(tail, depth)),
                (None, None) => (elements.as_slice(), Datum::list(place, []).quoted()),
            };
            elements.iter().rev().fold(end, |rest, element| match element.as_form("unquote-splicing") {
                Some([_, spliced]) if depth == 1 => Datum::form(place, "%append", [spliced.clone(), rest]),
                _ => Datum::form(place, "%cons", [quasi(element, depth), rest]),
            })
        }
        Shape::Vector(elements) => {
            let list = quasi(&Datum::list(place, elements.clone()), depth);
            Datum::form(place, "%list->vector", [list])
        }
        _ => template.clone().quoted(),
    }
}

fn guard(place: Place, clause: &Datum, body: &[Datum]) -> Derived {
    let Some((name, clauses)) = list(clause, "a name and clauses")?.split_first() else {
        return Err(SyntaxError::new(clause.place, "guard has a name"));
    };
    let mut clauses = clauses.to_vec();
    if clauses.last().is_none_or(|last| last.as_form("else").is_none()) {
        let again = Datum::form(place, "raise-continuable", [name.clone()]);
        clauses.push(Datum::form(place, "else", [again]));
    }
    let handler = lambda(place, std::slice::from_ref(name), [Datum::form(place, "cond", clauses)]);
    Ok(Datum::form(place, "%guard", [lambda(place, &[], body.to_vec()), handler]))
}

fn parameterize(place: Place, bindings: &Datum, body: &[Datum]) -> Derived {
    let (mut parameters, mut values) = (Vec::new(), Vec::new());
    for binding in list(bindings, "a list of bindings")? {
        let [parameter, value] = list(binding, "a binding")? else {
            return Err(SyntaxError::new(binding.place, "a binding has a parameter and a value"));
        };
        parameters.push(parameter.clone());
        values.push(value.clone());
    }
    let lists = [Datum::form(place, "%list", parameters), Datum::form(place, "%list", values)];
    Ok(Datum::form(place, "%parameterize", lists.into_iter().chain([lambda(place, &[], body.to_vec())])))
}

fn record(place: Place, name: &Datum, constructor: &Datum, predicate: &Datum, fields: &[Datum]) -> Derived {
    let define = |name: &Datum, value| Datum::form(place, "define", [name.clone(), value]);
    let specs = fields.iter().map(|field| match field.as_list() {
        Some(parts @ [name, ..]) if parts.len() <= 3 && name.as_symbol().is_some() => Ok((name, &parts[1..])),
        _ => Err(SyntaxError::new(field.place, "a field is (name accessor modifier)")),
    });
    let specs = specs.collect::<Result<Vec<_>, _>>()?;
    let names: Vec<Datum> = specs.iter().map(|(name, _)| (*name).clone()).collect();
    let made = [name.clone().quoted(), Datum::list(place, names.clone()).quoted()];
    let mut defined = vec![define(name, Datum::form(place, "%make-type", made))];
    if let Some([constructor, given @ ..]) = constructor.as_list() {
        if let Some(unknown) = given.iter().find(|given| !names.contains(given)) {
            return Err(SyntaxError::new(unknown.place, "this is no field of the record"));
        }
        let value = |field| {
            if given.contains(field) { field.clone() } else { Datum::form(place, "begin", []) }
        };
        let values = std::iter::once(name.clone()).chain(names.iter().map(value));
        let body = Datum::form(place, "%record", values);
        defined.push(define(constructor, lambda(place, given, [body])));
    }
    let (record, new) = (Datum::symbol(place, "%it"), Datum::symbol(place, "%new"));
    let is = Datum::form(place, "%record?", [record.clone(), name.clone()]);
    defined.push(define(predicate, lambda(place, std::slice::from_ref(&record), [is])));
    for (index, (_, procedures)) in specs.iter().enumerate() {
        let index = Datum { place, shape: Shape::Integer(index as i64 + 1) };
        let which = [record.clone(), name.clone(), index];
        if let [accessor, ..] = procedures {
            let body = Datum::form(place, "%record-ref", which.clone());
            defined.push(define(accessor, lambda(place, std::slice::from_ref(&record), [body])));
        }
        if let [_, modifier] = procedures {
            let body = Datum::form(place, "%record-set!", which.into_iter().chain([new.clone()]));
            defined.push(define(modifier, lambda(place, &[record.clone(), new.clone()], [body])));
        }
    }
    Ok(Datum::form(place, "begin", defined))
}
