//! What one user keeps between its steps: cookies and values, by their places among the fields' names.

use crate::cookies::LaneCookies;

/// The memory of one user.
#[derive(Debug, Default)]
pub struct UserMemory {
    /// Its cookies.
    pub cookies: LaneCookies,
    values: Vec<Vec<u8>>,
    has: Vec<bool>,
}

impl UserMemory {
    /// Room for so many values, none of them known.
    pub fn new(values: usize) -> UserMemory {
        UserMemory {
            cookies: LaneCookies::default(),
            values: vec![Vec::new(); values],
            has: vec![false; values],
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.cookies.clear();
        self.has.fill(false);
    }

    /// The value at `place`, where it is known.
    pub fn value(&self, place: usize) -> Option<&[u8]> {
        let is_known = self.has.get(place).copied().unwrap_or_default();
        is_known.then(|| self.values[place].as_slice())
    }

    /// Makes what `write` appends the value at `place`; where it says that there is none, the value is not known any more.
    pub fn set(
        &mut self,
        place: usize,
        write: impl FnOnce(&LaneCookies, &mut Vec<u8>) -> bool,
    ) -> bool {
        let Some(value) = self.values.get_mut(place) else {
            return false;
        };
        value.clear();
        self.has[place] = write(&self.cookies, value);
        self.has[place]
    }
}
