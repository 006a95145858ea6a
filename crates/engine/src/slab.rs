//! Things at numbered places, each place with a generation, so that a [`Key`]
//! kept for too long names nothing instead of another record.
//! Not for: iteration in a meaningful order.

/// Names one thing in a [`Slab`] for as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub index: u32,
    pub generation: u32,
}

impl Key {
    /// Bits of a generation that a token or a waker has room for.
    pub const GENERATION_BITS: u32 = 24;
    const GENERATION_MASK: u32 = (1 << Key::GENERATION_BITS) - 1;
}

struct Place<T> {
    generation: u32,
    thing: Option<T>,
}

/// Things at numbered places. Places are used again, last freed first, so that
/// a steady state allocates nothing and stays in cache.
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub fn new() -> Slab<T> {
        Slab {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub fn insert(&mut self, thing: T) -> Key {
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[index as usize];
            place.thing = Some(thing);
            return Key {
                index,
                generation: place.generation,
            };
        }
        let index = u32::try_from(self.places.len()).expect("a slab holds under 2^32 things");
        self.places.push(Place {
            generation: 0,
            thing: Some(thing),
        });
        Key {
            index,
            generation: 0,
        }
    }

    pub fn get(&self, key: Key) -> Option<&T> {
        let place = self.places.get(key.index as usize)?;
        (place.generation == key.generation).then_some(place.thing.as_ref())?
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.places.get_mut(key.index as usize)?;
        (place.generation == key.generation).then_some(place.thing.as_mut())?
    }

    /// Whatever is at this place now.
    pub fn at(&self, index: u32) -> Option<(Key, &T)> {
        let place = self.places.get(index as usize)?;
        let generation = place.generation;
        let thing = place.thing.as_ref()?;
        Some((Key { index, generation }, thing))
    }

    /// Whatever is at this place now, to be changed.
    pub fn at_mut(&mut self, index: u32) -> Option<(Key, &mut T)> {
        let place = self.places.get_mut(index as usize)?;
        let generation = place.generation;
        let thing = place.thing.as_mut()?;
        Some((Key { index, generation }, thing))
    }

    pub fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.generation != key.generation {
            return None;
        }
        let thing = place.thing.take()?;
        place.generation = (place.generation + 1) & Key::GENERATION_MASK;
        self.free.push(key.index);
        Some(thing)
    }

    /// The keys of all that is there now, lowest place first.
    pub fn keys(&self) -> Vec<Key> {
        let place_key = |(index, place): (usize, &Place<T>)| {
            place.thing.is_some().then_some(Key {
                index: index as u32,
                generation: place.generation,
            })
        };
        self.places
            .iter()
            .enumerate()
            .filter_map(place_key)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_key_names_nothing_after_its_place_was_used_again() {
        let mut slab = Slab::new();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second");
        assert_eq!(second.index, first.index);
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&"second"));
        assert_eq!(slab.keys(), [second]);
        assert_eq!(slab.len(), 1);
    }
}
