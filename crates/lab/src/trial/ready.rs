//! Whether a started subject is ready, by the sign that it declares.

use std::net::TcpStream;
use std::time::Duration;

use prony_record::ReadySign;

use super::log::Log;
use super::place::Place;
use crate::verify;

/// How long one attempt to connect, or one request, may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);

/// Looks for the sign once. An unknown sign is an error, in words.
pub fn is_ready(sign: &ReadySign, place: &Place, log: &Log) -> Result<bool, String> {
    match sign.sign.as_str() {
        "port" => Ok(TcpStream::connect_timeout(&place.address, ATTEMPT_TIMEOUT).is_ok()),
        "line" => Ok(log.has_line(&sign.text)),
        "http" => Ok(verify::answers_ok(
            place.address,
            &place.authority,
            &sign.text,
            ATTEMPT_TIMEOUT,
        )),
        other => Err(format!("`{other}` is no sign of readiness")),
    }
}

/// The sign in words, as it is missed: `its port accepts connections`.
pub fn in_words(sign: &ReadySign) -> String {
    match sign.sign.as_str() {
        "line" => format!("a line with `{}` in its output", sign.text),
        "http" => format!("status 200 for `GET {}`", sign.text),
        _ => "a port that accepts connections".to_owned(),
    }
}
