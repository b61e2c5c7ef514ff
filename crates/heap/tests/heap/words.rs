//! A random test of words and a stack against a model. Every value that is reachable in the model must exist
//! in the heap with its type and tag, whatever was collected or moved.

use std::collections::HashMap;
use std::panic::catch_unwind;
use vellum_heap::{Any, Array, Config, Gc, Heap, Scope, Stack, StartError, Word, family, object};
use vellum_random::Rng;

object! {
    struct Pair { head: Word<Language>, number: u64, tail: Word<Language> }
}

type Slots = Array<Word<Language>>;

family! {
    Language { Pair: 0, Slots: 1 | 2, Array<u8>: 15 }
}

/// A value in the model; an object is a number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Model {
    Immediate(u64),
    Object(usize),
}

/// An object in the model.
#[derive(Clone, Debug)]
enum Shape {
    Pair(u64, [Model; 2]),
    Slots(u32, Vec<Model>),
    Text(Vec<u8>),
}

struct Program {
    random: Rng,
    stack: Stack<Language>,
    model: Vec<Model>,
    objects: Vec<Shape>,
}

type Value<'s> = Any<'s, Language>;

impl Program {
    fn below(&mut self, end: usize) -> usize {
        self.random.below(end as u64) as usize
    }

    /// A value from the stack, or an immediate.
    fn some<'s>(&mut self, scope: &Scope<'s>) -> (Value<'s>, Model) {
        if self.model.is_empty() || self.below(4) == 0 {
            let bits = (self.below(0xffff) as u64 + 1) << 48 | self.below(1 << 40) as u64;
            return (Any::immediate(bits), Model::Immediate(bits));
        }
        let index = self.below(self.model.len());
        (self.stack.get(index, scope), self.model[index])
    }

    fn push(&mut self, value: Value<'_>, model: Model) {
        self.stack.push(value).expect("memory");
        self.model.push(model);
    }

    fn make(&mut self, scope: &Scope<'_>) {
        let id = self.objects.len();
        let (value, shape): (Value<'_>, Shape) = match self.below(3) {
            0 => {
                let ((head, one), (tail, other)) = (self.some(scope), self.some(scope));
                let (first, last) = (Word::new(0), Word::new(0));
                let pair = Pair { head: first, number: id as u64, tail: last };
                let pair = scope.alloc(pair).expect("memory");
                scope.put(pair, &pair.head, head);
                scope.put(pair, &pair.tail, tail);
                (Any::of(pair, 0), Shape::Pair(id as u64, [one, other]))
            }
            1 => {
                let (len, tag) = (self.below(20), 1 + self.below(2) as u32);
                let slots = scope.alloc_array(len, |_| Word::new(7 << 48)).expect("memory");
                let mut all = Vec::new();
                for slot in slots.items() {
                    let (value, model) = self.some(scope);
                    scope.put(slots, slot, value);
                    all.push(model);
                }
                (Any::of(slots, tag), Shape::Slots(tag, all))
            }
            _ => {
                let text: Vec<u8> = (0..self.below(60)).map(|at| at as u8 ^ id as u8).collect();
                (Any::of(scope.alloc_slice(&text).expect("memory"), 15), Shape::Text(text))
            }
        };
        self.objects.push(shape);
        self.push(value, Model::Object(id));
    }

    fn change(&mut self, scope: &Scope<'_>) {
        let Some(index) = self.model.len().checked_sub(1).map(|last| self.below(last + 1)) else { return };
        let Model::Object(id) = self.model[index] else { return };
        let (value, model) = self.some(scope);
        let object = self.stack.get(index, scope);
        if let Some(pair) = object.cast::<Pair>() {
            scope.put(pair, &pair.tail, value);
        } else if let Some(slot) = object.cast::<Slots>().and_then(|slots| slots.items().first()) {
            scope.put(object.cast::<Slots>().expect("just seen"), slot, value);
        }
        match &mut self.objects[id] {
            Shape::Pair(_, [_, tail]) => *tail = model,
            Shape::Slots(_, slots) if !slots.is_empty() => slots[0] = model,
            _ => {}
        }
    }

    fn step(&mut self, heap: Heap) {
        heap.scope(|scope| match self.below(12) {
            0..4 => self.make(scope),
            4..8 => self.change(scope),
            8 => {
                let len = self.below(self.model.len() + 1).max(self.model.len() / 2);
                self.stack.truncate(len);
                self.model.truncate(len);
            }
            9 if self.model.len() > 4 => {
                let from = self.below(self.model.len() - 3);
                self.stack.slide(from, 2, scope);
                self.model.drain(from..self.model.len() - 2);
            }
            10 if !self.model.is_empty() => {
                let (index, (value, model)) = (self.below(self.model.len()), self.some(scope));
                self.stack.set(index, value);
                self.model[index] = model;
                self.stack.push_copy(index, scope).expect("memory");
                self.model.push(model);
            }
            _ => self.stack.shrink().expect("memory"),
        });
    }

    fn check(&self, heap: Heap) {
        assert_eq!(self.stack.len(), self.model.len());
        heap.scope(|scope| {
            let mut seen = HashMap::new();
            for (index, model) in self.model.iter().enumerate() {
                self.same(scope, self.stack.get(index, scope), *model, &mut seen);
            }
        });
    }

    fn same<'s>(
        &self,
        scope: &Scope<'s>,
        value: Value<'s>,
        model: Model,
        seen: &mut HashMap<usize, Value<'s>>,
    ) {
        let id = match model {
            Model::Immediate(bits) => return assert_eq!(value.bits(), Some(bits)),
            Model::Object(id) => id,
        };
        if let Some(known) = seen.get(&id) {
            return assert!(known.is(value), "object {id} is one");
        }
        seen.insert(id, value);
        match &self.objects[id] {
            Shape::Pair(number, [head, tail]) => {
                let pair: Gc<'_, Pair> = value.cast().expect("a pair");
                assert_eq!((pair.number, value.tag()), (*number, Some(0)));
                self.same(scope, pair.as_ref().head.get(scope), *head, seen);
                self.same(scope, pair.as_ref().tail.get(scope), *tail, seen);
            }
            Shape::Slots(tag, all) => {
                let slots = value.cast::<Slots>().expect("slots");
                assert_eq!((slots.len(), value.tag()), (all.len(), Some(*tag)));
                for (slot, model) in slots.items().iter().zip(all) {
                    self.same(scope, slot.get(scope), *model, seen);
                }
            }
            Shape::Text(text) => {
                assert!(value.cast::<Pair>().is_none() && value.cast::<Slots>().is_none());
                assert_eq!(value.cast::<Array<u8>>().expect("text").items(), text);
            }
        }
    }
}

on_every_plan! { run: 3000, 1000, 1000 }

family! { Small { Array<u8>: 3 } }

#[test]
fn words_reject_invalid_values() {
    vellum_skip::alone(|| {
        let only_starts = Config { only_starts: true, ..Config::DEFAULT };
        let refused = Heap::start(only_starts).expect_err("tags point into objects");
        assert_eq!(refused, StartError::NotServed("only_starts"));
        assert!(catch_unwind(|| Any::<Small>::immediate(1 << 40)).is_err(), "an address is no immediate");
        let wrong = catch_unwind(|| {
            Heap::get().scope(|scope| Any::<Small>::of(scope.alloc_slice(b"x").expect("memory"), 4).tag())
        });
        assert!(wrong.is_err(), "a tag means its type");
        assert_eq!(Any::<Small>::immediate(0).bits(), Some(0));
    });
}

/// Runs a program of this many steps on a heap of `config`.
fn run(config: Config, steps: usize) {
    let steps = steps * vellum_skip::scale();
    let seed = vellum_random::test_seed(Some(0x3042d));
    let heap = Heap::start(config).expect("the heap starts");
    let stack = Stack::new().expect("memory");
    let random = Rng::new(seed);
    let mut program = Program { random, stack, model: Vec::new(), objects: Vec::new() };
    for step in 0..steps {
        program.step(heap);
        if step % 20 == 0 {
            program.check(heap);
        }
    }
    program.check(heap);
    heap.validate().expect("the heap's invariants hold");
    assert!(heap.stats().collections > 10, "{:?}", heap.stats());
}
