//! What came of looking, collected over all that was looked at.

/// What was looked at.
#[derive(Debug, Default)]
pub struct Seen {
    /// What does not hold, a line each.
    pub wrong: Vec<String>,
    /// What could not be understood.
    pub bad: Vec<String>,
    /// What could not be looked at, and is no fault.
    pub notes: Vec<String>,
    /// What holds.
    pub holds: Vec<String>,
    /// What was mended.
    pub mended: Vec<String>,
}

impl Seen {
    /// How much was found out.
    pub fn count(&self) -> usize {
        let all = [&self.wrong, &self.bad, &self.holds, &self.mended];
        all.map(Vec::len).iter().sum()
    }
}
