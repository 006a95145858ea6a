//! A worker: a process that loads the application and serves it, as long as its
//! supervisor wants.

use std::cell::Cell;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use prony_base::Nanos;
use prony_engine::{Accepted, Config, Handle, ListenOptions, Sender, mailbox};
use prony_http::{Counters, Handler, Server, ShutdownHandle, Source, Stopping};
use rustix::net::{SocketType, sockopt};
use rustix::process::{Pid, Signal};

use crate::alone::{DRAIN_GRACE, server_options};
use crate::bell::Bell;
use crate::board::{Board, Line};
use crate::channel::{Channel, MESSAGE_BYTES_MAX, MessageKind, Received, Start};
use crate::connection_limit::ConnectionLimit;
use crate::ending::LoadError;
use crate::post::Post;
use crate::settings::Distribution;
use crate::signals::Signals;
use crate::site::Site;

/// Connections passed to this worker and not yet taken in; more are closed.
const PASSED_MAX: usize = 4096;
/// How long a worker that is replaced keeps a connection at rest, for a request that may
/// be on its way: clients that keep connections mostly use them again within this.
const RETIRE_GRACE: Nanos = Nanos::from_secs(5);

/// The whole life of a worker: to be called by the command that
/// [`supervise`](crate::supervise) starts workers with, on its main thread and before
/// anything else. Yields the status that the process is to exit with.
///
/// Why the application cannot be loaded is reported to the supervisor.
pub fn work<H: Handler + 'static>(load: impl FnOnce(&Post) -> Result<H, LoadError>) -> u8 {
    match try_work(load) {
        Ok(()) => 0,
        Err(why) => {
            // A failing standard error leaves nowhere to say so.
            let _ = writeln!(io::stderr(), "prony: worker: {why}");
            1
        }
    }
}

fn try_work<H: Handler + 'static>(
    load: impl FnOnce(&Post) -> Result<H, LoadError>,
) -> Result<(), String> {
    let system = |what: &'static str| move |error: io::Error| format!("cannot {what}: {error}");
    // First of all, so that not even an application that is stuck outlives its supervisor.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("cannot ask to end with the supervisor: {error}"))?;
    let channel = take_channel()?;
    let signals = Signals::to_leave().map_err(system("listen for signals"))?;
    let Some((start, board, socket)) = hear_start(&channel)? else {
        return Ok(());
    };
    let parent = rustix::process::getppid().map(Pid::as_raw_pid);
    if parent != Some(start.supervisor) {
        // It ended before this process had asked to end with it.
        return Ok(());
    }
    crate::alone::raise_descriptor_limit();
    let config = Config {
        driver: start.settings.driver(),
        ..Config::default()
    };
    let post = Place {
        channel: Rc::new(channel),
        board: Rc::new(board),
        socket,
        start,
    };
    let channel = Rc::clone(&post.channel);
    match prony_engine::run(&config, |handle| post.serve(handle, signals, load)) {
        Ok(served) => served.map_err(system("serve")),
        Err(error @ prony_engine::Error::RingUnavailable { .. }) => {
            // The supervisor and perhaps others have it. Falling back alone would not do:
            // whether a shared socket blocks is the same for all who accept from it.
            let why = format!("a worker's event loop cannot run: {error} (--driver epoll)");
            tell(&channel, MessageKind::Failed, &why);
            Ok(())
        }
        Err(error) => Err(format!("the event loop cannot run: {error}")),
    }
}

/// Takes the socket to the supervisor from standard input, which from then on is empty:
/// the application may read it, and what it starts inherits it.
fn take_channel() -> Result<Channel, String> {
    let stdin = rustix::stdio::stdin();
    if sockopt::socket_type(stdin) != Ok(SocketType::SEQPACKET) {
        return Err("this command is started by a host, not by hand".to_owned());
    }
    let take = || {
        let socket = stdin.try_clone_to_owned()?;
        let nothing = std::fs::File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(nothing)?;
        Ok(Channel::from_socket(socket))
    };
    take().map_err(|error: io::Error| format!("cannot take the socket to the supervisor: {error}"))
}

/// The first message; None if the supervisor is gone.
fn hear_start(channel: &Channel) -> Result<Option<(Start, Board, Option<OwnedFd>)>, String> {
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    let message = match channel.wait(&mut buffer) {
        Received::Message(message) if message.kind == MessageKind::Start => message,
        Received::End => return Ok(None),
        other => return Err(format!("unknown message from the supervisor: {other:?}")),
    };
    let start: Start = serde_json::from_slice(message.text)
        .map_err(|error| format!("the supervisor's settings cannot be read: {error}"))?;
    let mut descriptors = message.descriptors.into_iter();
    let board = descriptors.next().map(Board::from_memory);
    let board = board.ok_or("the supervisor has sent no board")?;
    Ok(Some((start, board, descriptors.next())))
}

/// Where a worker works.
struct Place {
    start: Start,
    channel: Rc<Channel>,
    board: Rc<Board>,
    /// To listen on; None where connections are passed.
    socket: Option<OwnedFd>,
}

impl Place {
    async fn serve<H: Handler + 'static>(
        self,
        handle: Handle,
        signals: Signals,
        load: impl FnOnce(&Post) -> Result<H, LoadError>,
    ) -> io::Result<()> {
        let Place {
            start,
            channel,
            board,
            socket,
        } = self;
        let settings = Rc::new(start.settings);
        let post = Post {
            handle: handle.clone(),
            settings: Rc::clone(&settings),
            number: start.number,
        };
        let spent = Rc::new(Bell::default());
        let loaded = load(&post).and_then(|application| {
            Site::new(application, &post, start.requests_max, Rc::clone(&spent))
        });
        let site = match loaded {
            Ok(site) => site,
            Err(LoadError(why)) => {
                tell(&channel, MessageKind::Failed, &why);
                return Ok(());
            }
        };
        let server = Server::new(&handle, server_options(&settings), site);
        let (sender, received) = mailbox(PASSED_MAX);
        let source = match socket {
            Some(socket) => {
                let options = ListenOptions::default();
                Source::Listener(handle.listen_on(socket, &options)?)
            }
            None => Source::HandedOver(received),
        };
        let status = Rc::new(Status {
            board,
            line: start.line,
            counters: Arc::clone(server.counters()),
            lost: Cell::new(0),
            limit: ConnectionLimit::new(u64::from(settings.connections_max)),
        });
        status.beat(&handle, settings.beat_interval());
        if settings.distribution == Distribution::Least {
            status.report_closed(&handle, &server);
        }
        ask_to_leave(&handle, signals, Rc::clone(&channel), spent);
        let orders = Orders {
            channel: Rc::clone(&channel),
            shutdown: server.shutdown_handle(),
            sender: Some(sender),
            status,
        };
        handle.spawn(orders.obey(handle.clone())).detach();
        tell(&channel, MessageKind::Ready, "");
        server.run(source, std::future::pending()).await;
        Ok(())
    }
}

/// Says something to the supervisor; where that fails it is gone, or knows by our end.
fn tell(channel: &Channel, kind: MessageKind, text: &str) {
    let length = text.floor_char_boundary(MESSAGE_BYTES_MAX - 1);
    let _ = channel.send(kind, &text.as_bytes()[..length], &[]);
}

/// Asks to be replaced when all requests that this worker may have are answered, and when
/// somebody sends it SIGTERM.
fn ask_to_leave(handle: &Handle, signals: Signals, channel: Rc<Channel>, spent: Rc<Bell>) {
    let (loop_handle, also) = (handle.clone(), Rc::clone(&channel));
    handle
        .spawn(async move {
            loop {
                signals.arrived(&loop_handle).await;
                tell(&also, MessageKind::Spent, "");
            }
        })
        .detach();
    handle
        .spawn(async move {
            spent.heard().await;
            tell(&channel, MessageKind::Spent, "");
        })
        .detach();
}

/// The status that this worker writes on the board.
struct Status {
    board: Rc<Board>,
    line: u32,
    counters: Arc<Counters>,
    /// Connections that were passed and could not be taken in.
    lost: Cell<u64>,
    limit: ConnectionLimit,
}

impl Status {
    fn write(&self, handle: &Handle) {
        let (accepted, closed) = self.counters.connections();
        let lost = self.lost.get();
        let line = Line {
            beat_ns: handle.now().0,
            accepted: accepted + lost,
            closed: closed + lost,
            requests: self.counters.requests(),
            connections_max: self.limit.get(),
        };
        self.board.write(self.line, line);
    }

    /// Writes every now and then, which says that the loop turns.
    fn beat(self: &Rc<Self>, handle: &Handle, interval: Nanos) {
        let (status, loop_handle) = (Rc::clone(self), handle.clone());
        // Before it is announced that it serves.
        status.write(handle);
        handle
            .spawn(async move {
                loop {
                    loop_handle.sleep(interval).await;
                    let (accepted, closed) = status.counters.connections();
                    status.limit.look(accepted - closed);
                    status.write(&loop_handle);
                }
            })
            .detach();
    }

    /// Writes whenever connections have ended, once in a turn of the loop.
    fn report_closed<H: Handler + 'static>(self: &Rc<Self>, handle: &Handle, server: &Server<H>) {
        let (status, loop_handle) = (Rc::clone(self), handle.clone());
        let endings = server.close_events();
        handle
            .spawn(async move {
                let mut closed = 0;
                loop {
                    closed = endings.beyond(closed).await;
                    status.write(&loop_handle);
                }
            })
            .detach();
    }
}

/// The orders of the supervisor, and what follows from them.
struct Orders {
    channel: Rc<Channel>,
    shutdown: ShutdownHandle,
    /// Where passed connections go; dropped when there will be none.
    sender: Option<Sender<Accepted>>,
    status: Rc<Status>,
}

impl Orders {
    async fn obey(mut self, handle: Handle) {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        loop {
            match self.channel.receive(&mut buffer) {
                Received::Message(message) => match message.kind {
                    MessageKind::Connections => {
                        self.take(&handle, message.text, message.descriptors);
                        // In a burst the server has to keep up with what is put before it.
                        handle.yield_now().await;
                    }
                    MessageKind::Retire => self.leave(false),
                    MessageKind::Drain => self.leave(true),
                    // Not the supervisor's to say, or not now.
                    MessageKind::Start
                    | MessageKind::Ready
                    | MessageKind::Failed
                    | MessageKind::Spent => {}
                },
                Received::Unknown => {}
                Received::Nothing => {
                    if handle.readable(self.channel.as_fd()).await.is_err() {
                        return self.leave(true);
                    }
                }
                Received::End => return self.leave(true),
            }
        }
    }

    /// Takes connections in. Those that got lost on the way, for want of descriptors,
    /// were closed by the kernel, and count as ended.
    fn take(&self, handle: &Handle, text: &[u8], connections: Vec<OwnedFd>) {
        let passed = text.first().map_or(0, |&count| usize::from(count));
        let mut lost = passed.saturating_sub(connections.len());
        for connection in connections {
            let taken = self.sender.as_ref().map(|to| to.send(connection.into()));
            lost += usize::from(!matches!(taken, Some(Ok(()))));
        }
        if lost > 0 {
            self.status.lost.set(self.status.lost.get() + lost as u64);
            self.status.limit.is_known.set(false);
            self.status.write(handle);
        }
    }

    fn leave(&mut self, is_all: bool) {
        self.shutdown.stop(Stopping {
            takes_backlog: is_all,
            idle_grace: if is_all { DRAIN_GRACE } else { RETIRE_GRACE },
        });
        self.sender = None;
    }
}

#[cfg(test)]
mod tests {
    use prony_http::{Request, Response, ServerOptions};

    use super::*;

    struct Nothing;

    impl Handler for Nothing {
        async fn handle(&self, _: &Request<'_>, response: &mut Response) {
            response.text(404, "");
        }
    }

    #[test]
    fn connections_of_a_burst_were_dropped_where_the_server_had_no_turn_in_it() {
        const BURST: usize = 8;
        let (ours, theirs) = Channel::pair().unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..10 {
            let connections = [socket.as_fd(); BURST];
            let count = [BURST as u8];
            ours.send(MessageKind::Connections, &count, &connections)
                .unwrap();
        }
        drop(ours);
        let taken = prony_engine::run(&Config::default(), |handle| async move {
            let server = Server::new(&handle, ServerOptions::default(), Nothing);
            let (sender, mut received) = mailbox(BURST);
            let status = Rc::new(Status {
                board: Rc::new(Board::new().unwrap()),
                line: 0,
                counters: Arc::clone(server.counters()),
                lost: Cell::new(0),
                limit: ConnectionLimit::new(u64::MAX),
            });
            let orders = Orders {
                channel: Rc::new(Channel::from_socket(theirs)),
                shutdown: server.shutdown_handle(),
                sender: Some(sender),
                status: Rc::clone(&status),
            };
            handle.spawn(orders.obey(handle.clone())).detach();
            let mut taken = 0;
            while received.recv().await.is_some() {
                taken += 1;
            }
            (taken, status.lost.get())
        });
        assert_eq!(taken.unwrap(), (10 * BURST, 0));
    }
}
