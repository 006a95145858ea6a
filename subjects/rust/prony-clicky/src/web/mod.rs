//! What the service says over HTTP: answers, events, numbers, the page; its log; and the
//! process around it. [`serve`] is all of it. Not for: counting (`counting`).
//!
//! | path | |
//! |---|---|
//! | `GET /`, `POST /` | the counter; the page to a browser |
//! | `GET /c/NAME`, `POST /c/NAME` | a counter of one's own |
//! | `GET /events`, `GET /c/NAME/events` | totals as they change, as Server-Sent Events |
//! | `GET /healthz` | whether clicks are counted and kept |
//! | `GET /metrics` | numbers, as OpenMetrics text |

mod answers;
mod clicks;
mod events;
mod limiter;
mod log;
mod metrics;
mod page;
mod serve;
mod services;

pub use self::log::{Level, Log, LogFormat, LogPlace, LogSetting};
pub use self::serve::serve;
