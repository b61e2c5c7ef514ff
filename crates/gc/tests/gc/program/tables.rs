//! The part of the random program that uses finalizers, links and ephemerons, and their model.
//!
//! Objects that the model cannot reach may live on (an old address on the stack may hold them). So the model
//! checks that nothing wrong happens. A reachable object is not finalized, and keeps its links and ephemeron.
//! No finalizer runs twice. None runs before the finalizer of an object that refers to its object. A call
//! that replaces or removes an entry returns that entry. Counts show that each of these happens often enough.

use super::{Program, Word};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use vellum_gc as gc;

/// Places for links.
const LINKS: usize = 200;

thread_local! {
    /// Finalizers that ran: object and data.
    static RAN: RefCell<Vec<(usize, usize)>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn note(object: *mut c_void, data: *mut c_void) {
    RAN.with_borrow_mut(|ran| ran.push((object.addr(), data.addr())));
}

unsafe extern "C" fn note_twice(object: *mut c_void, data: *mut c_void) {
    // SAFETY: by the same contract. It is another function, so that replaced finalizers can be distinguished.
    unsafe { note(object, data) };
}

const FUNCTIONS: [gc::Function; 2] = [note, note_twice];

#[derive(Clone, Copy, Debug)]
struct Finalizer {
    object: usize,
    unordered: bool,
    function: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    object: usize,
    offset: usize,
    late: bool,
    /// The place has the address with its bits turned around.
    hidden: bool,
}

pub(super) struct Tables {
    /// By their data.
    finalizers: HashMap<usize, Finalizer>,
    /// The data of objects' finalizers.
    by_object: HashMap<usize, usize>,
    next_data: usize,
    /// What the collector changes. It does not look there.
    places: Box<[usize; LINKS]>,
    links: Vec<Option<Link>>,
    /// Values of keys, and the offset into the value.
    values: HashMap<usize, (usize, usize)>,
    /// Finalizers that ran, links that were found cleared.
    ran: usize,
    cleared: usize,
    replaced: usize,
}

impl Tables {
    pub(super) fn new() -> Tables {
        Tables {
            finalizers: HashMap::new(),
            by_object: HashMap::new(),
            next_data: 1,
            places: Box::new([0; LINKS]),
            links: vec![None; LINKS],
            values: HashMap::new(),
            ran: 0,
            cleared: 0,
            replaced: 0,
        }
    }

    /// The value of a key.
    pub(super) fn value_of(&self, key: usize) -> Option<usize> {
        self.values.get(&key).map(|&(value, _)| value)
    }

    /// The value of a key that is at `address`, where it is now, and that it may have moved.
    pub(super) fn value_at(&self, key: usize, address: usize) -> Option<(usize, usize, bool)> {
        let &(value, offset) = self.values.get(&key)?;
        let now = gc::ephemeron(std::ptr::with_exposed_provenance(address));
        Some((value, now.expose_provenance().wrapping_sub(offset), false))
    }

    fn place(&mut self, index: usize) -> *mut *mut u8 {
        (&raw mut self.places[index]).cast()
    }

    /// Volatile: the collector writes what the compiler thinks nobody does.
    fn read(&self, index: usize) -> usize {
        // SAFETY: within the box.
        unsafe { (&raw const self.places[index]).read_volatile() }
    }

    fn write(&mut self, index: usize, value: usize) {
        // SAFETY: within the box.
        unsafe { (&raw mut self.places[index]).write_volatile(value) };
    }

    /// Everything was used, as often as `steps` steps should.
    pub(super) fn expect_use(&self, steps: usize) {
        assert!(self.next_data > steps / 200, "{} finalizers", self.next_data);
        assert!(self.ran > steps / 1000, "{} of {} finalizers ran", self.ran, self.next_data);
        assert!(self.cleared > steps / 1000, "{} links were cleared", self.cleared);
        assert!(self.replaced > steps / 2000, "{} finalizers were replaced", self.replaced);
    }

    /// With no roots left, and after several collections, next to nothing is left but cycles of the ordered.
    pub(super) fn expect_death(&self) {
        let unordered = self.finalizers.values().filter(|finalizer| finalizer.unordered).count();
        assert!(unordered * 20 <= self.next_data, "{unordered} unordered of {} are left", self.next_data);
        let early = self.links.iter().flatten().filter(|link| !link.late).count();
        assert!(early * 10 <= LINKS, "{early} links are left");
    }
}

impl Program {
    pub(super) fn step_tables(&mut self) {
        match self.below(8) {
            0..2 => self.set_finalizer(),
            2..4 => self.set_link(),
            4 => self.move_or_undo_link(),
            5..7 => self.set_ephemeron(),
            _ if self.below(4) == 0 => self.finalize(),
            _ => self.free(),
        }
    }

    fn pointer(&self, object: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.objects[object].address)
    }

    fn set_finalizer(&mut self) {
        let Some(object) = self.reach() else { return };
        self.set_finalizer_of(object);
        if self.below(4) == 0 {
            self.set_finalizer_of(object);
        }
    }

    fn set_finalizer_of(&mut self, object: usize) {
        let data = self.tables.next_data;
        let new = (self.below(4) != 0).then(|| Finalizer {
            object,
            unordered: self.below(2) == 0,
            function: self.below(FUNCTIONS.len()),
        });
        let function = new.map(|new| FUNCTIONS[new.function]);
        let unordered = new.is_some_and(|new| new.unordered);
        let given = std::ptr::without_provenance_mut(data);
        // SAFETY: the functions may be called at any time.
        let before = unsafe { gc::set_finalizer(self.pointer(object), function, given, unordered) };
        let before = before.expect("a live object").map(|(function, data)| (function as usize, data.addr()));
        let tables = &mut self.tables;
        let was = tables.by_object.remove(&object).map(|data| {
            let was = tables.finalizers.remove(&data).expect("every object's finalizer is known");
            (FUNCTIONS[was.function] as usize, data)
        });
        assert_eq!(before, was, "the finalizer that object {object} had");
        tables.replaced += usize::from(before.is_some() && new.is_some());
        if let Some(new) = new {
            tables.finalizers.insert(data, new);
            tables.by_object.insert(object, data);
            tables.next_data += 1;
        }
    }

    fn set_link(&mut self) {
        let Some(object) = self.reach() else { return };
        let index = self.below(LINKS);
        let offset = if self.below(3) == 0 { self.below(self.objects[object].words * 8) } else { 0 };
        let link = Link { object, offset, late: self.below(3) == 0, hidden: self.below(4) == 0 };
        let address = self.objects[object].address + offset;
        let value = if link.hidden { !address } else { address };
        let place = self.tables.place(index);
        self.tables.write(index, value);
        let inside = std::ptr::with_exposed_provenance(address);
        // SAFETY: the place is never freed.
        unsafe { gc::link(place, inside, link.late) }.expect("a live object");
        self.tables.links[index] = Some(link);
    }

    fn move_or_undo_link(&mut self) {
        let (from, to) = (self.below(LINKS), self.below(LINKS));
        let (place, other) = (self.tables.place(from), self.tables.place(to));
        let link = self.tables.links[from];
        let is_cleared = self.tables.read(from) == 0;
        if self.below(2) == 0 {
            // SAFETY: the places are never freed.
            let moved = unsafe { gc::move_link(place, other) }.expect("memory for a link");
            assert_eq!(moved, link.is_some() && !is_cleared, "link {from} to {to}: {link:?}");
            if moved && from != to {
                let value = self.tables.read(from);
                self.tables.write(to, value);
                self.tables.write(from, 0);
                self.tables.links[to] = self.tables.links[from].take();
            }
            return;
        }
        let object = gc::unlink(place);
        match link {
            Some(link) if !is_cleared => {
                assert!(!object.is_null(), "link {from} was there: {link:?}");
                if self.reachable().contains(&link.object) {
                    assert_eq!(object, self.pointer(link.object), "the object of link {from}: {link:?}");
                }
                assert!(gc::unlink(place).is_null(), "undone twice");
            }
            _ => assert!(object.is_null(), "no link {from}"),
        }
        self.tables.links[from] = None;
        self.tables.write(from, 0);
    }

    fn set_ephemeron(&mut self) {
        let (Some(key), Some(value)) = (self.reach(), self.reach()) else { return };
        let had = gc::ephemeron(self.pointer(key));
        let has =
            self.tables.values.get(&key).map(|&(value, offset)| self.pointer(value).wrapping_add(offset));
        assert_eq!(had, has.unwrap_or_default(), "the value of object {key}");
        if self.below(4) == 0 {
            gc::set_ephemeron(self.pointer(key), std::ptr::null_mut()).expect("a live object");
            self.tables.values.remove(&key);
            return;
        }
        let offset = if self.below(4) == 0 { self.below(self.objects[value].words * 8) } else { 0 };
        let inside = self.pointer(value).wrapping_add(offset);
        gc::set_ephemeron(self.pointer(key), inside).expect("a live object");
        self.tables.values.insert(key, (value, offset));
    }

    /// An object that nothing refers to is given back by hand.
    fn free(&mut self) {
        let object = match self.below(3) {
            0 => gc::alloc(self.below(200) * 8),
            1 => gc::alloc_atomic(self.below(200) * 8),
            _ => gc::alloc(5000 + self.below(50_000)),
        };
        // SAFETY: nobody else knows it.
        unsafe { gc::free(object) }.expect("a live object");
    }

    /// Runs the due finalizers, and checks that they were due.
    pub(super) fn finalize(&mut self) {
        let pending: Vec<usize> = self
            .tables
            .finalizers
            .values()
            .filter(|finalizer| !finalizer.unordered)
            .map(|finalizer| finalizer.object)
            .collect();
        let count = gc::finalize();
        let ran = RAN.with_borrow_mut(std::mem::take);
        assert_eq!(ran.len(), count);
        if ran.is_empty() {
            return;
        }
        let reachable = self.reachable();
        // What others whose finalizers are pending refer to.
        let others = pending.iter().filter(|object| !reachable.contains(object));
        let later = self.strongly_from(others.flat_map(|&object| self.targets(object)).collect());
        for (address, data) in ran {
            let finalizer = self.tables.finalizers.remove(&data);
            let finalizer =
                finalizer.unwrap_or_else(|| panic!("finalizer {data} ran twice, or was replaced"));
            let object = finalizer.object;
            self.tables.by_object.remove(&object);
            assert!(!reachable.contains(&object), "object {object} is finalized and in reach");
            assert!(finalizer.unordered || !later.contains(&object), "object {object} went before others");
            assert_eq!(address, self.objects[object].address, "object {object} stayed for its finalizer");
            self.verify_dead(object);
            self.tables.ran += 1;
        }
    }

    fn strongly_from(&self, mut waiting: Vec<usize>) -> HashSet<usize> {
        let mut found = HashSet::new();
        while let Some(object) = waiting.pop() {
            if found.insert(object) {
                waiting.extend(self.targets(object));
            }
        }
        found
    }

    /// A dead object has its old contents, and so have the objects that it refers to, wherever they are now.
    fn verify_dead(&self, object: usize) {
        let super::Object { address, content, .. } = &self.objects[object];
        for (index, &word) in content.iter().enumerate() {
            let place = std::ptr::with_exposed_provenance::<usize>(address + index * 8);
            // SAFETY: within an object whose finalizer has just run, on whose behalf it was kept.
            let found = unsafe { place.read_volatile() };
            match word {
                Word::Number(number) => assert_eq!(found, number, "word {index} of dead object {object}"),
                Word::Pointer(target, offset) => {
                    let base = gc::base(std::ptr::with_exposed_provenance(found));
                    assert_eq!(base.addr(), found - offset, "word {index} of {object}, to {target}");
                }
            }
        }
    }

    /// The objects that the model reaches are where links and ephemerons lead.
    pub(super) fn check_tables(&mut self, reachable: &HashSet<usize>) {
        for index in 0..LINKS {
            let Some(link) = self.tables.links[index] else { continue };
            let found = self.tables.read(index);
            let is_reached = reachable.contains(&link.object);
            if found == 0 {
                assert!(!is_reached, "link {index} was cleared: {link:?}");
                let waits = self.tables.by_object.contains_key(&link.object);
                assert!(!(link.late && waits), "link {index} was cleared before the finalizer: {link:?}");
                let place = self.tables.place(index);
                assert!(gc::unlink(place).is_null(), "link {index} is forgotten when cleared");
                self.tables.links[index] = None;
                self.tables.cleared += 1;
            } else if is_reached {
                let address = if link.hidden { !found } else { found };
                assert_eq!(address, self.objects[link.object].address + link.offset, "{link:?}");
            }
        }
        for (&key, &(value, offset)) in &self.tables.values {
            if reachable.contains(&key) {
                let found = gc::ephemeron(self.pointer(key));
                assert_eq!(found, self.pointer(value).wrapping_add(offset), "the value of object {key}");
            }
        }
    }
}
