//! Records at numbered places, and lists threaded through them: joining and
//! leaving a list is a few stores, whatever its length, and allocates nothing.
//! Not for: public keys; a place is used again, and its number says nothing.

/// The number of no place.
pub(super) const NONE: u32 = u32::MAX;

/// Records at numbered places; free places are used again, last freed first.
pub(super) struct Arena<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Arena<T> {
    fn default() -> Arena<T> {
        Arena {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Arena<T> {
    #[inline]
    pub fn insert(&mut self, record: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = record;
            return place;
        }
        let place = self.places.len() as u32;
        assert!(place < NONE, "fewer than 2^32 records of a kind");
        self.places.push(record);
        place
    }

    /// Frees a place. What was there stays until the place is used again.
    #[inline]
    pub fn free(&mut self, place: u32) {
        self.free.push(place);
    }

    /// The record that is or was at `place`.
    #[inline]
    pub fn get(&self, place: u32) -> Option<&T> {
        self.places.get(place as usize)
    }

    /// The record that is or was at `place`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.places.get_mut(place as usize)
    }

    /// The former record at the place that the next one will get, unless that is new.
    #[inline]
    pub fn next_place(&self) -> Option<&T> {
        let place = self.free.last()?;
        Some(&self.places[*place as usize])
    }

    /// All places, free ones too.
    pub fn all(&self) -> std::ops::Range<u32> {
        0..self.places.len() as u32
    }

    /// Places in use.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

impl<T> std::ops::Index<u32> for Arena<T> {
    type Output = T;
    #[inline]
    fn index(&self, place: u32) -> &T {
        &self.places[place as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Arena<T> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.places[place as usize]
    }
}

/// A record's neighbours in one list.
#[derive(Clone, Copy)]
pub(super) struct Links {
    pub previous: u32,
    pub next: u32,
}

impl Default for Links {
    fn default() -> Links {
        Links {
            previous: NONE,
            next: NONE,
        }
    }
}

/// Both ends of a list.
#[derive(Clone, Copy)]
pub(super) struct List {
    pub first: u32,
    pub last: u32,
    pub len: u32,
}

impl Default for List {
    fn default() -> List {
        List {
            first: NONE,
            last: NONE,
            len: 0,
        }
    }
}

impl List {
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Adds the record at `place` at the end; `links` says which of its links
    /// belong to this list.
    #[inline]
    pub fn push<T>(
        &mut self,
        arena: &mut Arena<T>,
        place: u32,
        links: impl Fn(&mut T) -> &mut Links,
    ) {
        *links(&mut arena[place]) = self.last_links();
        self.append(arena, place, links);
    }

    /// The links of a record that is about to be [appended](List::append).
    #[inline]
    pub fn last_links(&self) -> Links {
        Links {
            previous: self.last,
            next: NONE,
        }
    }

    /// Like [`push`](List::push), for a record that was made with
    /// [`last_links`](List::last_links).
    #[inline]
    pub fn append<T>(
        &mut self,
        arena: &mut Arena<T>,
        place: u32,
        links: impl Fn(&mut T) -> &mut Links,
    ) {
        match self.last {
            NONE => self.first = place,
            last => links(&mut arena[last]).next = place,
        }
        self.last = place;
        self.len += 1;
    }

    /// Takes out the record at `place`, which must be in this list.
    #[inline]
    pub fn take<T>(
        &mut self,
        arena: &mut Arena<T>,
        place: u32,
        links: impl Fn(&mut T) -> &mut Links,
    ) {
        debug_assert!(self.len > 0);
        let Links { previous, next } = std::mem::take(links(&mut arena[place]));
        match previous {
            NONE => self.first = next,
            previous => links(&mut arena[previous]).next = next,
        }
        match next {
            NONE => self.last = previous,
            next => links(&mut arena[next]).previous = previous,
        }
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Record {
        links: Links,
    }

    fn walk(list: List, arena: &Arena<Record>) -> (Vec<u32>, Vec<u32>) {
        let (mut forth, mut back) = (Vec::new(), Vec::new());
        let mut at = list.first;
        while at != NONE {
            forth.push(at);
            at = arena[at].links.next;
        }
        let mut at = list.last;
        while at != NONE {
            back.push(at);
            at = arena[at].links.previous;
        }
        back.reverse();
        (forth, back)
    }

    #[test]
    fn a_list_is_the_same_both_ways_whatever_is_taken() {
        for taken in 0..4 {
            let (mut arena, mut list) = (Arena::default(), List::default());
            for _ in 0..4 {
                let place = arena.insert(Record::default());
                list.push(&mut arena, place, |record| &mut record.links);
            }
            list.take(&mut arena, taken, |record| &mut record.links);
            let expected: Vec<u32> = (0..4).filter(|&place| place != taken).collect();
            assert_eq!(walk(list, &arena), (expected.clone(), expected));
            assert_eq!(list.len, 3);
        }
    }

    #[test]
    fn a_freed_place_is_used_again() {
        let mut arena = Arena::default();
        let first = arena.insert(1);
        arena.free(first);
        assert_eq!(arena.len(), 0);
        assert_eq!(arena.insert(2), first);
        assert_eq!(arena[first], 2);
    }
}
