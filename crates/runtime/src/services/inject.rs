//! Injection by constructor: a closure whose typed arguments are the needs.
//! Not for: needs by callback (`definition`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use super::context::Context;
use super::port::{Port, ProviderRef, Spec, spec};
use super::properties::Properties;
use super::rule::Rule;

/// An argument of a constructor, which asks by its type for what is needed:
///
/// | argument | meaning |
/// |---|---|
/// | `Rc<dyn T>`, `Arc<dyn T>` | required |
/// | `Option<Rc<dyn T>>` | optional; the service is made anew when it comes or goes |
/// | [`Live<Rc<dyn T>>`](Live) | optional; comes and goes while the service runs |
/// | [`Many<Rc<dyn T>>`](Many) | all there are; they come and go while the service runs |
/// | [`Context`] | the service's own name, properties, loop and registry |
pub trait Inject: sealed::Argument {}

impl<T: sealed::Argument> Inject for T {}

mod sealed {
    use crate::services::context::Context;
    use crate::services::port::{ProviderRef, Spec};
    use crate::services::rule::Rule;

    pub trait Argument: Sized + 'static {
        type Slot: Default + 'static;
        fn need() -> Option<(Spec, Rule)>;
        fn added(slot: &Self::Slot, provider: &ProviderRef<'_>);
        fn removed(slot: &Self::Slot, place: u32);
        fn take(slot: &Self::Slot, context: &Context) -> Self;
    }
}

/// A provider that waits for its constructor.
pub struct Waiting<P>(RefCell<Option<P>>);

impl<P> Default for Waiting<P> {
    fn default() -> Waiting<P> {
        Waiting(RefCell::new(None))
    }
}

impl<P: Port> Waiting<P> {
    fn set(&self, provider: &ProviderRef<'_>) {
        let before = self.0.replace(provider.pointer::<P>());
        drop(before);
    }

    fn clear(&self) {
        let before = self.0.take();
        drop(before);
    }
}

macro_rules! required_argument {
    ($pointer:ident) => {
        impl<T: ?Sized + 'static> sealed::Argument for $pointer<T> {
            type Slot = Waiting<$pointer<T>>;

            fn need() -> Option<(Spec, Rule)> {
                Some((spec::<Self>(), Rule::Required))
            }

            fn added(slot: &Self::Slot, provider: &ProviderRef<'_>) {
                slot.set(provider);
            }

            fn removed(slot: &Self::Slot, _: u32) {
                slot.clear();
            }

            fn take(slot: &Self::Slot, _: &Context) -> Self {
                let pointer = slot.0.take();
                pointer.expect("a service is made when all that it requires is there")
            }
        }
    };
}

required_argument!(Rc);
required_argument!(Arc);

impl<P: Port> sealed::Argument for Option<P> {
    type Slot = Waiting<P>;

    fn need() -> Option<(Spec, Rule)> {
        Some((spec::<P>(), Rule::Fixed))
    }

    fn added(slot: &Self::Slot, provider: &ProviderRef<'_>) {
        slot.set(provider);
    }

    fn removed(slot: &Self::Slot, _: u32) {
        slot.clear();
    }

    fn take(slot: &Self::Slot, _: &Context) -> Self {
        slot.0.take()
    }
}

impl sealed::Argument for Context {
    type Slot = ();

    fn need() -> Option<(Spec, Rule)> {
        None
    }

    fn added((): &(), _: &ProviderRef<'_>) {}

    fn removed((): &(), _: u32) {}

    fn take((): &(), context: &Context) -> Context {
        context.clone()
    }
}

/// A provider that comes and goes while its dependent runs.
pub struct Live<P>(Rc<RefCell<Option<P>>>);

impl<P: Port> Live<P> {
    /// The provider, while there is one. Do not keep it: ask again each time.
    pub fn get(&self) -> Option<P> {
        self.0.borrow().clone()
    }
}

impl<P> fmt::Debug for Live<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Live({})",
            if self.0.borrow().is_some() {
                "there"
            } else {
                "not there"
            }
        )
    }
}

/// The slot of a [`Live`], which is filled from outside.
pub struct LiveSlot<P>(Rc<RefCell<Option<P>>>);

impl<P> Default for LiveSlot<P> {
    fn default() -> LiveSlot<P> {
        LiveSlot(Rc::default())
    }
}

impl<P: Port> sealed::Argument for Live<P> {
    type Slot = LiveSlot<P>;

    fn need() -> Option<(Spec, Rule)> {
        Some((spec::<P>(), Rule::Optional))
    }

    fn added(slot: &Self::Slot, provider: &ProviderRef<'_>) {
        let before = slot.0.replace(provider.pointer::<P>());
        drop(before);
    }

    fn removed(slot: &Self::Slot, _: u32) {
        let before = slot.0.take();
        drop(before);
    }

    fn take(slot: &Self::Slot, _: &Context) -> Self {
        Live(slot.0.clone())
    }
}

type Members<P> = Rc<RefCell<BTreeMap<u32, (P, Properties)>>>;

/// All providers of an interface, as they come and go.
pub struct Many<P>(Members<P>);

impl<P: Port> Many<P> {
    /// The providers that are there now.
    pub fn to_vec(&self) -> Vec<P> {
        let members = self.0.borrow();
        members
            .values()
            .map(|(pointer, _)| pointer.clone())
            .collect()
    }

    /// The providers that are there now, with their properties.
    pub fn with_properties(&self) -> Vec<(P, Properties)> {
        self.0.borrow().values().cloned().collect()
    }

    /// The number of providers that are there now.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// True when there is none now.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
}

impl<P> fmt::Debug for Many<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Many({})", self.0.borrow().len())
    }
}

/// The slot of a [`Many`], which is filled from outside.
pub struct ManySlot<P>(Members<P>);

impl<P> Default for ManySlot<P> {
    fn default() -> ManySlot<P> {
        ManySlot(Rc::default())
    }
}

impl<P: Port> sealed::Argument for Many<P> {
    type Slot = ManySlot<P>;

    fn need() -> Option<(Spec, Rule)> {
        Some((spec::<P>(), Rule::Many))
    }

    fn added(slot: &Self::Slot, provider: &ProviderRef<'_>) {
        if let Some(pointer) = provider.pointer::<P>() {
            let member = (pointer, provider.properties.clone());
            slot.0.borrow_mut().insert(provider.place, member);
        }
    }

    fn removed(slot: &Self::Slot, place: u32) {
        let member = slot.0.borrow_mut().remove(&place);
        drop(member);
    }

    fn take(slot: &Self::Slot, _: &Context) -> Self {
        Many(slot.0.clone())
    }
}

/// A function that makes a service from arguments each of which is an [`Inject`]:
/// any closure of up to eight. It is called once for each start.
pub trait Constructor<A>: 'static {
    /// The service.
    type Made;
    #[doc(hidden)]
    fn into_source(self) -> Box<dyn Source<Self::Made>>;
}

/// A constructor with the places of its arguments.
pub trait Source<S> {
    /// Number of arguments that are needs.
    fn count(&self) -> usize;
    /// Need number `which`.
    fn need(&self, which: usize) -> Option<(Spec, Rule)>;
    /// Hands a provider to need number `which`.
    fn added(&self, which: usize, provider: &ProviderRef<'_>);
    /// Takes it back.
    fn removed(&self, which: usize, place: u32);
    /// Calls the constructor.
    fn make(&self, context: &Context) -> S;
}

struct Call<F, T> {
    function: F,
    slots: T,
}

macro_rules! constructor {
    ($($argument:ident $index:tt),*) => {
        impl<Made: 'static, Function, $($argument: Inject),*> Constructor<($($argument,)*)> for Function
        where
            Function: Fn($($argument),*) -> Made + 'static,
        {
            type Made = Made;

            fn into_source(self) -> Box<dyn Source<Made>> {
                let source: Call<Function, ($(Argument<$argument>,)*)> = Call {
                    function: self,
                    slots: ($(Argument::<$argument>(Default::default()),)*),
                };
                Box::new(source)
            }
        }

        impl<Made, Function, $($argument: Inject),*> Source<Made> for Call<Function, ($(Argument<$argument>,)*)>
        where
            Function: Fn($($argument),*) -> Made,
        {
            fn count(&self) -> usize {
                0 $(+ usize::from($argument::need().is_some()))*
            }

            #[allow(unused_variables, unused_mut, unused_assignments, reason = "a constructor may have no argument")]
            fn need(&self, which: usize) -> Option<(Spec, Rule)> {
                let mut left = which;
                $(if let Some(need) = $argument::need() {
                    if left == 0 {
                        return Some(need);
                    }
                    left -= 1;
                })*
                None
            }

            #[allow(unused_variables, unused_mut, unused_assignments, reason = "a constructor may have no argument")]
            fn added(&self, which: usize, provider: &ProviderRef<'_>) {
                let mut left = which;
                $(if $argument::need().is_some() {
                    if left == 0 {
                        return $argument::added(&self.slots.$index.0, provider);
                    }
                    left -= 1;
                })*
            }

            #[allow(unused_variables, unused_mut, unused_assignments, reason = "a constructor may have no argument")]
            fn removed(&self, which: usize, place: u32) {
                let mut left = which;
                $(if $argument::need().is_some() {
                    if left == 0 {
                        return $argument::removed(&self.slots.$index.0, place);
                    }
                    left -= 1;
                })*
            }

            #[allow(unused_variables, reason = "a constructor may have no argument")]
            fn make(&self, context: &Context) -> Made {
                (self.function)($($argument::take(&self.slots.$index.0, context)),*)
            }
        }
    };
}

struct Argument<A: Inject>(A::Slot);

constructor!();
constructor!(A 0);
constructor!(A 0, B 1);
constructor!(A 0, B 1, C 2);
constructor!(A 0, B 1, C 2, D 3);
constructor!(A 0, B 1, C 2, D 3, E 4);
constructor!(A 0, B 1, C 2, D 3, E 4, F 5);
constructor!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
constructor!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
