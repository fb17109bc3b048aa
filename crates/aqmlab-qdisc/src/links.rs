//! Lists of entries that are kept in a slice: each entry knows the places of its neighbours.

use crate::flow_store::NONE;

/// The places of the neighbours of an entry in its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    before: u32,
    pub after: u32,
}

impl Links {
    pub(crate) const NONE: Links = Links { before: NONE, after: NONE };
}

/// An entry that can be on one list at a time.
pub(crate) trait Linked {
    fn links(&mut self) -> &mut Links;
}

/// The ends of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub head: u32,
    tail: u32,
}

impl List {
    pub(crate) const EMPTY: List = List { head: NONE, tail: NONE };

    /// Appends an entry that is on no list.
    pub(crate) fn append(&mut self, entries: &mut [impl Linked], at: u32) {
        *entries[at as usize].links() = Links { before: self.tail, after: NONE };
        match entries.get_mut(self.tail as usize) {
            Some(last) => last.links().after = at,
            None => self.head = at,
        }
        self.tail = at;
    }

    /// Removes an entry, which is on this list.
    pub(crate) fn unlink(&mut self, entries: &mut [impl Linked], at: u32) {
        let Links { before, after } = *entries[at as usize].links();
        match entries.get_mut(before as usize) {
            Some(entry) => entry.links().after = after,
            None => self.head = after,
        }
        match entries.get_mut(after as usize) {
            Some(entry) => entry.links().before = before,
            None => self.tail = before,
        }
    }
}
