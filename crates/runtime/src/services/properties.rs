//! Names and properties of services, and filters over them.
//! Not for: configuration of any depth; a property is one flat value.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use serde::{Serialize, Serializer};

/// Most properties that one service may have.
pub const PROPERTIES_MAX: usize = 64;

/// A string that is cheap to clone: a literal, or shared on its thread.
#[derive(Clone)]
pub struct Text(Repr);

#[derive(Clone)]
enum Repr {
    Literal(&'static str),
    Shared(Rc<str>),
}

impl Text {
    /// The string.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Literal(text) => text,
            Repr::Shared(text) => text,
        }
    }
}

impl std::ops::Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Default for Text {
    /// The empty string.
    fn default() -> Text {
        Text(Repr::Literal(""))
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Text {
        Text(Repr::Literal(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(Repr::Shared(text.into()))
    }
}

impl From<&Text> for Text {
    fn from(text: &Text) -> Text {
        text.clone()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

/// The value of a property.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A string.
    Text(Text),
}

impl PartialEq for Value {
    /// Numbers are equal bit by bit, so that a value can be looked up.
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Bool(one), Value::Bool(other)) => one == other,
            (Value::Int(one), Value::Int(other)) => one == other,
            (Value::Float(one), Value::Float(other)) => one.to_bits() == other.to_bits(),
            (Value::Text(one), Value::Text(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Value::Bool(value) => value.hash(state),
            Value::Int(value) => value.hash(state),
            Value::Float(value) => value.to_bits().hash(state),
            Value::Text(value) => value.hash(state),
        }
    }
}

impl Value {
    /// The string, where it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, where it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident),+) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Value {
                Value::$variant(value.into())
            }
        })+
    };
}

value_from!(bool => Bool, i64 => Int, i32 => Int, u32 => Int, u16 => Int, f64 => Float);
value_from!(&'static str => Text, String => Text, Text => Text, &Text => Text);

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value}"),
            Value::Text(value) => write!(f, "{value}"),
        }
    }
}

/// One property.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// Its name.
    pub name: Text,
    /// Its value.
    pub value: Value,
}

/// The properties of one service: few, and never changed once it is added.
#[derive(Clone, Debug, Default)]
pub struct Properties(Option<Rc<[Property]>>);

impl Properties {
    pub(super) fn new(properties: Vec<Property>) -> Properties {
        Properties((!properties.is_empty()).then(|| properties.into()))
    }

    /// The value of the property `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.iter().find(|property| &*property.name == name);
        found.map(|property| &property.value)
    }

    /// All of them, in the order in which they were given.
    pub fn iter(&self) -> std::slice::Iter<'_, Property> {
        self.0.as_deref().unwrap_or_default().iter()
    }

    /// The number of properties.
    pub fn len(&self) -> usize {
        self.iter().len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// Which providers a requirement accepts.
#[derive(Clone)]
pub struct Filter(Test);

#[derive(Clone)]
enum Test {
    Equal(Text, Value),
    Predicate(Rc<dyn Fn(&Properties) -> bool>),
}

impl Filter {
    /// Accepts providers whose property `name` is `value`. Found by an index, whatever the
    /// number of providers.
    pub fn equal(name: impl Into<Text>, value: impl Into<Value>) -> Filter {
        Filter(Test::Equal(name.into(), value.into()))
    }

    /// Accepts providers for whose properties `accepts` is true. It is called for each
    /// provider of the interface, and must give the same answer each time.
    pub fn matching(accepts: impl Fn(&Properties) -> bool + 'static) -> Filter {
        Filter(Test::Predicate(Rc::new(accepts)))
    }

    /// Whether a provider with these properties is accepted. A predicate that
    /// panics accepts nothing.
    pub fn accepts(&self, properties: &Properties) -> bool {
        match &self.0 {
            Test::Equal(name, value) => properties.get(name) == Some(value),
            Test::Predicate(accepts) => {
                super::failure::caught(|| accepts(properties)).unwrap_or(false)
            }
        }
    }

    pub(super) fn equality(&self) -> Option<(&Text, &Value)> {
        match &self.0 {
            Test::Equal(name, value) => Some((name, value)),
            Test::Predicate(_) => None,
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Test::Equal(name, value) => write!(f, "{name}={value}"),
            Test::Predicate(_) => f.write_str("a predicate"),
        }
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filter({self})")
    }
}
