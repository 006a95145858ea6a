//! Units of figures as newtypes over `f64`, so that a ratio cannot pass for a rate.
//! Medians and means of counts need not be whole, so these are not integers.

/// A figure with its unit.
pub trait Quantity: Copy {
    /// The figure in the unit that the type's name says.
    fn new(value: f64) -> Self;
    /// The bare number.
    fn value(self) -> f64;
}

macro_rules! quantities {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(pub f64);

        impl Quantity for $name {
            fn new(value: f64) -> $name {
                $name(value)
            }
            fn value(self) -> f64 {
                self.0
            }
        }
    )*};
}

quantities! {
    /// Events a second.
    Rate;
    /// One figure over another of the same unit; 1 where they are equal.
    Ratio;
    /// Part of a whole; 1 is all of it. More than 1 where the "whole" is one core.
    Share;
    /// Nanoseconds.
    Time;
    /// Bytes.
    Bytes;
    /// Connections.
    Connections;
    /// Power of a size.
    Exponent;
}
