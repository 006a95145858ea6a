//! How much data a client may send: exactly what it was granted.

use std::rc::Rc;

use prony_base::Nanos;
use prony_engine::Config;
use prony_engine::sim::{SimOptions, World};
use prony_wire::http2::{FrameHead, PREFACE, put_frame_head};

use super::*;
use crate::options::ServerOptions;

/// A session whose client has sent its preface and no more.
fn with_session<T: 'static>(test: impl FnOnce(&mut Http2Session) -> T + 'static) -> T {
    let mut world = World::new(1, SimOptions::default());
    let outcome = world.spawn_loop(&Config::default(), async move |handle| {
        let shared = Rc::new(ServerState::new(&handle, ServerOptions::default()));
        let mut session = Http2Session::new(&shared, None);
        send(&mut session, PREFACE).expect("a preface");
        send(&mut session, &frame(kind::SETTINGS, 0, 0, &[])).expect("settings");
        session.frames.take_out(Vec::new());
        test(&mut session)
    });
    world.run(Nanos::from_secs(1)).expect("an end");
    outcome.take().expect("it has run")
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_frame_head(&mut out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
    out
}

fn send(session: &mut Http2Session, mut bytes: &[u8]) -> Result<(), u32> {
    session.take(&mut bytes).map_err(|fatal| fatal.code)?;
    assert!(bytes.is_empty());
    Ok(())
}

/// A POST without its body.
fn begin(session: &mut Http2Session, stream: u32) {
    let head = b"\x83\x86\x84\x41\x01a";
    send(
        session,
        &frame(kind::HEADERS, flag::END_HEADERS, stream, head),
    )
    .expect("a head");
}

fn data(session: &mut Http2Session, stream: u32, bytes: u32) -> Result<(), u32> {
    let mut left = bytes as usize;
    while left > 0 {
        let count = left.min(FRAME_BYTES);
        send(session, &frame(kind::DATA, 0, stream, &vec![b'x'; count]))?;
        left -= count;
    }
    Ok(())
}

/// What was granted of late: on the connection, and on stream 1.
fn granted(session: &mut Http2Session) -> [u32; 2] {
    session.grant();
    let out = session.frames.take_out(Vec::new());
    let (mut rest, mut sums) = (&out[..], [0; 2]);
    while let Some((head, after)) = rest.split_first_chunk() {
        let head = FrameHead::read(*head);
        let (payload, after) = after.split_at(head.length);
        rest = after;
        if head.kind == kind::WINDOW_UPDATE {
            sums[head.stream as usize] += four(payload).expect("four bytes");
        }
    }
    sums
}

#[test]
fn more_data_than_a_stream_was_granted_was_taken() {
    let (within, beyond) = with_session(|session| {
        begin(session, 1);
        let within = data(session, 1, STREAM_WINDOW);
        (within, data(session, 1, 1))
    });
    assert_eq!((within, beyond), (Ok(()), Err(code::FLOW_CONTROL_ERROR)));
}

#[test]
fn more_data_than_the_connection_was_granted_was_taken() {
    let (within, beyond) = with_session(|session| {
        let streams = CONNECTION_WINDOW / STREAM_WINDOW;
        let ids = (0..=streams).map(|number| 2 * number + 1);
        ids.clone().for_each(|id| begin(session, id));
        let mut within = ids.take(streams as usize);
        let within = within.try_for_each(|id| data(session, id, STREAM_WINDOW));
        (within, data(session, 2 * streams + 1, 1))
    });
    assert_eq!((within, beyond), (Ok(()), Err(code::FLOW_CONTROL_ERROR)));
}

#[test]
fn what_was_granted_was_booked_by_half_and_long_uploads_ended() {
    with_session(|session| {
        begin(session, 1);
        let mut windows = [CONNECTION_WINDOW, STREAM_WINDOW];
        let mut left = 5 << 20;
        while left > 0 {
            let count = windows[0].min(windows[1]).min(left);
            assert!(
                count > 0,
                "nothing more is granted, {left} bytes from the end"
            );
            assert_eq!(data(session, 1, count), Ok(()), "{left} bytes from the end");
            left -= count;
            for (window, more) in windows.iter_mut().zip(granted(session)) {
                *window = *window - count + more;
            }
        }
        assert!(windows[0] <= CONNECTION_WINDOW && windows[1] <= STREAM_WINDOW);
        // And no more than was granted.
        assert_eq!(data(session, 1, windows[0].min(windows[1])), Ok(()));
        assert_eq!(data(session, 1, 1), Err(code::FLOW_CONTROL_ERROR));
    });
}
