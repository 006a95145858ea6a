//! The outcome of `prony verify`, collected over all that was checked.

/// The outcome so far.
#[derive(Debug, Default)]
pub struct VerifyOutcome {
    /// The checks that failed, a line each.
    pub wrong: Vec<String>,
    /// The texts that could not be understood.
    pub bad: Vec<String>,
    /// The things that could not be checked, which is no fault.
    pub notes: Vec<String>,
    /// The checks that passed.
    pub holds: Vec<String>,
    /// The figures that were corrected.
    pub mended: Vec<String>,
}

impl VerifyOutcome {
    /// How much was found out.
    pub fn count(&self) -> usize {
        let all = [&self.wrong, &self.bad, &self.holds, &self.mended];
        all.map(Vec::len).iter().sum()
    }
}
