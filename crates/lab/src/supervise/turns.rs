//! What Prony says to a trial in turns while it runs, on its way from the thread that reads it to the trial's loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prony_engine::{Receiver, Sender, mailbox};

use super::order::{INTERRUPT, TURN, TurnOrder};

/// Lines that wait to be heard; Prony gives one turn at a time, and an interruption may come on top.
const LINES_MAX: usize = 16;

/// Whether what is under way is to end now.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// One that is raised by setting `flag`, as a signal handler can.
    pub fn by_flag(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt(flag)
    }

    /// Asks for the end.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What was said.
enum Said {
    Turn(TurnOrder),
    /// The run is to end, or what was said is no turn.
    End,
}

/// The thread's side.
pub struct Teller {
    interrupt: Interrupt,
    send: Sender<Said>,
}

/// The trial's side.
pub struct Turns(Receiver<Said>);

/// Both sides. `interrupt` is raised before the trial hears of it.
pub fn channel(interrupt: Interrupt) -> (Teller, Turns) {
    let (send, receive) = mailbox(LINES_MAX);
    (Teller { interrupt, send }, Turns(receive))
}

impl Teller {
    /// Passes on a line of Prony's.
    pub fn line(&self, line: &str) {
        let said = match line.strip_prefix(TURN) {
            Some(turn) => serde_json::from_str(turn).map_or(Said::End, Said::Turn),
            None if line == INTERRUPT => {
                self.interrupt.raise();
                Said::End
            }
            None => return,
        };
        // A trial that waits for no turn any more has ended.
        let _ = self.send.send(said);
    }
}

impl Turns {
    /// The next turn; `None`: the run is to end. Costs nothing while there is none.
    pub async fn next(&mut self) -> Option<TurnOrder> {
        match self.0.recv().await? {
            Said::Turn(turn) => Some(turn),
            Said::End => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use prony_engine::Config;

    use super::*;

    #[test]
    fn turns_come_in_their_order_and_an_interruption_ends_them() {
        let interrupt = Interrupt::default();
        let (tell, mut turns) = channel(interrupt.clone());
        let visit = TurnOrder::Visit {
            lead_in_ns: 1,
            window_ns: 2,
        };
        tell.line(&format!(
            "{TURN}{}",
            serde_json::to_string(&visit).expect("JSON")
        ));
        tell.line("something else");
        tell.line(INTERRUPT);
        tell.line("turn {}");
        assert!(interrupt.is_raised());
        let heard = prony_engine::run(&Config::default(), move |_| async move {
            (turns.next().await, turns.next().await, turns.next().await)
        });
        assert_eq!(heard.expect("a loop"), (Some(visit), None, None));
    }
}
