//! Frames of the connection, and of streams beside heads and bodies.

use prony_wire::http2::{FrameHead, WINDOW_MAX, code, flag, kind, setting};

use super::{
    Fatal, Http2Session, SessionEvent, SessionResult, TRUNCATED, check_dependency, fatal, four,
};

impl Http2Session {
    pub(super) fn reset(&mut self, frame: FrameHead, payload: &[u8]) -> SessionResult {
        four(payload)?;
        self.check_named(frame.stream)?;
        self.calm.spend_reset()?;
        let Some(place) = self.place_of(frame.stream) else {
            return Ok(SessionEvent::More);
        };
        self.shared.counters.streams_cancelled.add(1);
        Ok(self.give_up(place, false))
    }

    pub(super) fn window_update(&mut self, frame: FrameHead, payload: &[u8]) -> SessionResult {
        let more = four(payload)? & WINDOW_MAX as u32;
        self.calm.spend_frame(&self.frames)?;
        if frame.stream != 0 {
            self.check_named(frame.stream)?;
        }
        let place = match frame.stream {
            0 => None,
            id => match self.place_of(id) {
                Some(place) => Some(place),
                None => return Ok(SessionEvent::More),
            },
        };
        let code = match (more, self.frames.widen(place, i64::from(more))) {
            (0, _) => code::PROTOCOL_ERROR,
            (_, Err(_)) => code::FLOW_CONTROL_ERROR,
            (_, Ok(())) => return Ok(SessionEvent::More),
        };
        match place {
            Some(place) => self.break_off(place, code),
            None => Err(fatal(code, "the connection's window is wrong")),
        }
    }

    pub(super) fn settings(&mut self, frame: FrameHead, payload: &[u8]) -> Result<(), Fatal> {
        if frame.stream != 0 {
            return Err(fatal(code::PROTOCOL_ERROR, "settings are the connection's"));
        }
        if frame.has(flag::ACK) {
            return match payload.is_empty() {
                true => self.calm.spend_frame(&self.frames),
                false => Err(TRUNCATED),
            };
        }
        if !payload.len().is_multiple_of(6) {
            return Err(TRUNCATED);
        }
        match std::mem::replace(&mut self.has_settings, true) {
            false => {}
            true => self.calm.spend_frame(&self.frames)?,
        }
        for entry in payload.chunks_exact(6) {
            let number = u16::from_be_bytes([entry[0], entry[1]]);
            let value = four(&entry[2..])?;
            match number {
                setting::ENABLE_PUSH if value > 1 => {
                    return Err(fatal(
                        code::PROTOCOL_ERROR,
                        "ENABLE_PUSH is neither 0 nor 1",
                    ));
                }
                setting::INITIAL_WINDOW_SIZE => {
                    let wrong = fatal(code::FLOW_CONTROL_ERROR, "a window is too large");
                    if i64::from(value) > WINDOW_MAX {
                        return Err(wrong);
                    }
                    self.frames
                        .set_first_window(i64::from(value))
                        .map_err(|_| wrong)?;
                }
                setting::MAX_FRAME_SIZE if !(1 << 14..1 << 24).contains(&value) => {
                    return Err(fatal(
                        code::PROTOCOL_ERROR,
                        "MAX_FRAME_SIZE is out of its range",
                    ));
                }
                // The others tell of what this side does not use: pushes, a table, longer frames.
                _ => {}
            }
        }
        self.frames.frame(kind::SETTINGS, flag::ACK, 0, &[]);
        Ok(())
    }

    pub(super) fn ping(&mut self, frame: FrameHead, payload: &[u8]) -> Result<(), Fatal> {
        if frame.stream != 0 {
            return Err(fatal(code::PROTOCOL_ERROR, "a ping is the connection's"));
        }
        if payload.len() != 8 {
            return Err(TRUNCATED);
        }
        self.calm.spend_frame(&self.frames)?;
        if !frame.has(flag::ACK) {
            self.frames.frame(kind::PING, flag::ACK, 0, payload);
        }
        Ok(())
    }

    pub(super) fn goaway(&mut self, frame: FrameHead, payload: &[u8]) -> Result<(), Fatal> {
        if frame.stream != 0 {
            return Err(fatal(code::PROTOCOL_ERROR, "GOAWAY is the connection's"));
        }
        if payload.len() < 8 {
            return Err(TRUNCATED);
        }
        // The client closes the connection, or lets it rest, when it wants to.
        self.calm.spend_frame(&self.frames)
    }

    pub(super) fn priority(&mut self, frame: FrameHead, payload: &[u8]) -> Result<(), Fatal> {
        if frame.stream == 0 {
            return Err(fatal(code::PROTOCOL_ERROR, "a priority is a stream's"));
        }
        if payload.len() != 5 {
            return Err(TRUNCATED);
        }
        check_dependency(frame.stream, payload)?;
        self.calm.spend_frame(&self.frames)
    }

    /// Only streams that were opened may be named.
    pub(super) fn check_named(&self, id: u32) -> Result<(), Fatal> {
        match id % 2 == 1 && id <= self.last {
            true => Ok(()),
            false => Err(fatal(
                code::PROTOCOL_ERROR,
                "a frame names a stream that is not open",
            )),
        }
    }
}
