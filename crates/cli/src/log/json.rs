//! A log for programs.

use prony_report::log::{Account, Change, Difference, History};
use serde_json::{Value, json};

/// Version of this output.
const SCHEMA: u32 = 2;

/// The entries with their differences, and the change points.
pub fn json(history: &History) -> anyhow::Result<String> {
    let value = json!({
        "schema": SCHEMA,
        "entries": history.accounts.iter().map(account).collect::<Vec<_>>(),
        "changes": history.changes.iter().map(change).collect::<Vec<_>>(),
        "change_points_searched": { "figures": history.searched.0, "entries": history.searched.1 },
    });
    Ok(format!("{}\n", serde_json::to_string_pretty(&value)?))
}

fn account(account: &Account) -> Value {
    json!({
        "entry": account.entry,
        "differences": account.differences.iter().map(difference).collect::<Vec<_>>(),
    })
}

fn difference(d: &Difference) -> Value {
    let interval = d
        .compared
        .interval
        .map(|spread| [spread.low.0, spread.high.0]);
    json!({
        "cell": d.cell,
        "earlier_per_s": d.sides.earlier,
        "later_per_s": d.sides.later,
        "beside": d.sides.beside,
        "ratio": d.compared.ratio.0,
        "interval": interval,
        "between_sessions": d.compared.between,
        "degrees": d.compared.degrees,
        "resolution": d.compared.resolution,
        "conclusion": d.compared.conclusion,
    })
}

fn change(c: &Change) -> Value {
    json!({
        "cell": c.cell,
        "entry": c.entry,
        "ratio": c.ratio,
        "chance": c.chance,
    })
}
