//! Interfaces: what a service provides and another one asks for, as a pointer
//! type such as `Rc<dyn Logger>`; and the typed tables that hold the pointers.
//! Not for: which service is bound to which (`graph`).

use std::any::{Any, TypeId, type_name};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::properties::Properties;

/// A pointer by which services know each other: `Rc<dyn Trait>` within a loop,
/// `Arc<dyn Trait + Send + Sync>` for what several loops share. `Rc<Concrete>`
/// works too.
pub trait Port: Clone + 'static + sealed::Sealed {}

impl<T: ?Sized + 'static> Port for Rc<T> {}
impl<T: ?Sized + 'static> Port for Arc<T> {}

mod sealed {
    pub trait Sealed {
        fn name() -> String;
    }
    impl<T: ?Sized + 'static> Sealed for std::rc::Rc<T> {
        fn name() -> String {
            crate::services::port::short_type_name::<T>()
        }
    }
    impl<T: ?Sized + 'static> Sealed for std::sync::Arc<T> {
        fn name() -> String {
            format!("shared {}", crate::services::port::short_type_name::<T>())
        }
    }
}

/// `dyn Logger` for `dyn my_crate::log::Logger + Send + Sync`.
pub(super) fn short_type_name<T: ?Sized>() -> String {
    let full = type_name::<T>();
    let mut short = String::with_capacity(full.len());
    let mut word = String::new();
    for c in full.chars() {
        match c {
            ':' => word.clear(),
            c if c.is_alphanumeric() || "_{}#".contains(c) => word.push(c),
            c => {
                short.push_str(&std::mem::take(&mut word));
                short.push(c);
            }
        }
    }
    short.push_str(&word);
    short.replace(" + Send", "").replace(" + Sync", "")
}

/// An interface before it has a number.
#[derive(Clone, Copy)]
pub struct Spec {
    pub(super) type_id: TypeId,
    pub(super) name: fn() -> String,
    pub(super) table: fn() -> Rc<dyn AnyTable>,
}

pub(super) fn spec<P: Port>() -> Spec {
    Spec {
        type_id: TypeId::of::<P>(),
        name: P::name,
        table: || Rc::new(Table::<P>::new()),
    }
}

/// All pointers of one interface, each at the place of its offer.
pub(super) struct Table<P> {
    places: RefCell<Vec<Option<P>>>,
}

impl<P: Port> Table<P> {
    fn new() -> Table<P> {
        Table {
            places: RefCell::default(),
        }
    }

    /// The table behind an erased one; the caller knows its interface.
    pub fn of(table: &dyn AnyTable) -> &Table<P> {
        let any: &dyn Any = table;
        any.downcast_ref()
            .expect("a table belongs to its interface")
    }

    pub fn get(&self, place: u32) -> Option<P> {
        self.places.borrow().get(place as usize)?.clone()
    }

    pub fn set(&self, place: u32, pointer: P) {
        let mut places = self.places.borrow_mut();
        if places.len() <= place as usize {
            places.resize(place as usize + 1, None);
        }
        let before = places[place as usize].replace(pointer);
        drop(places);
        drop(before);
    }
}

/// A table whose pointer type is not known here.
pub trait AnyTable: Any {
    /// Drops the pointer at `place`; its owner's code may run.
    fn clear(&self, place: u32);
}

impl<P: Port> AnyTable for Table<P> {
    fn clear(&self, place: u32) {
        let mut places = self.places.borrow_mut();
        let before = places.get_mut(place as usize).and_then(Option::take);
        drop(places);
        drop(before);
    }
}

/// Reference to a provider, as its dependents receive it.
pub struct ProviderRef<'a> {
    pub(super) table: &'a dyn AnyTable,
    pub(super) place: u32,
    pub(super) properties: &'a Properties,
}

impl ProviderRef<'_> {
    /// The provider itself, while it is there.
    pub(super) fn pointer<P: Port>(&self) -> Option<P> {
        Table::<P>::of(self.table).get(self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    trait Logger {}
    trait Of<T> {
        type Kind: From<T>;
    }

    #[test]
    fn an_interface_is_named_without_its_modules() {
        use sealed::Sealed;
        assert_eq!(<Rc<dyn Logger>>::name(), "dyn Logger");
        assert_eq!(<Arc<dyn Logger + Send + Sync>>::name(), "shared dyn Logger");
        assert_eq!(<Rc<String>>::name(), "String");
        assert_eq!(
            <Rc<dyn Of<Vec<u8>, Kind = Box<[u8]>>>>::name(),
            "dyn Of<Vec<u8>, Kind = Box<[u8]>>"
        );
    }
}
