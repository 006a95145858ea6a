//! Records of TLS 1.2 and 1.3 after the handshake: one pass over the bytes, in place, and nothing is allocated.
//! Not for: handshakes, alerts and what else is in a record (`session`).

use ring::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use rustls::{AlertDescription, ConnectionTrafficSecrets};

use crate::error::TlsError;

/// Bytes of a record's header: type, version, length.
pub const HEADER_BYTES: usize = 5;
/// Most plain bytes of a record (RFC 8446, section 5.1).
pub const PLAIN_BYTES_MAX: usize = 1 << 14;
const TAG_BYTES: usize = 16;
/// The part of a nonce that TLS 1.2 sends with each record of AES-GCM.
const EXPLICIT_BYTES: usize = 8;
/// Most bytes that a record may have more than its plain ones, by version.
const OVERHEAD_BYTES_MAX_12: usize = 2048;
const OVERHEAD_BYTES_MAX_13: usize = 256;

/// The content types of records, as on the wire.
pub mod content {
    pub const CHANGE_CIPHER_SPEC: u8 = 20;
    pub const ALERT: u8 = 21;
    pub const HANDSHAKE: u8 = 22;
    pub const DATA: u8 = 23;
}

/// A violation of the protocol by a peer.
pub struct PeerFault {
    /// The alert that tells it so; none where the peer itself has sent one.
    pub alert: Option<AlertDescription>,
    pub error: TlsError,
}

impl PeerFault {
    pub fn new(alert: AlertDescription, why: &str) -> PeerFault {
        PeerFault {
            alert: Some(alert),
            error: TlsError::Protocol(why.to_owned()),
        }
    }
}

/// How records are laid out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RecordLayout {
    /// The type inside, the header as additional data.
    Tls13,
    /// The type outside, and a part of the nonce before the data.
    Tls12Explicit,
    /// The type outside, and no nonce, as with ChaCha20-Poly1305.
    Tls12,
}

/// The key of one direction.
pub struct RecordKey {
    key: LessSafeKey,
    iv: [u8; 12],
    /// Number of the next record.
    number: u64,
    layout: RecordLayout,
}

/// A decrypted record: its type, and where its plain bytes are.
#[derive(Debug, Eq, PartialEq)]
pub struct OpenedRecord {
    pub content: u8,
    /// From here, counted from the record's first byte.
    pub from: usize,
    pub to: usize,
}

impl RecordKey {
    /// The key from what a handshake has agreed, by the number of its next record.
    pub fn new(
        (number, secrets): (u64, ConnectionTrafficSecrets),
        is_tls13: bool,
    ) -> Result<RecordKey, TlsError> {
        let (algorithm, key, iv, is_gcm) = match &secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv, true),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv, true),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (&CHACHA20_POLY1305, key, iv, false)
            }
            _ => {
                return Err(TlsError::Protocol(
                    "its cipher is not known here".to_owned(),
                ));
            }
        };
        let unfit =
            |_| TlsError::Protocol("its key has another length than its cipher's".to_owned());
        let key = UnboundKey::new(algorithm, key.as_ref()).map_err(unfit)?;
        let iv = <[u8; 12]>::try_from(iv.as_ref());
        Ok(RecordKey {
            key: LessSafeKey::new(key),
            iv: iv.map_err(|_| TlsError::Protocol("its nonce has another length".to_owned()))?,
            number,
            layout: match (is_tls13, is_gcm) {
                (true, _) => RecordLayout::Tls13,
                (false, true) => RecordLayout::Tls12Explicit,
                (false, false) => RecordLayout::Tls12,
            },
        })
    }

    /// Records so far, with this key.
    pub fn count(&self) -> u64 {
        self.number
    }

    /// The nonce of the next record.
    fn nonce(&self) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(self.number.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    /// The additional data that TLS 1.2 authenticates with a record.
    fn additional(&self, content: u8, plain_bytes: usize) -> [u8; 13] {
        let mut bytes = [0; 13];
        bytes[..8].copy_from_slice(&self.number.to_be_bytes());
        bytes[8..11].copy_from_slice(&[content, 3, 3]);
        bytes[11..].copy_from_slice(&(plain_bytes as u16).to_be_bytes());
        bytes
    }

    /// Appends a record with `plain`, at most [`PLAIN_BYTES_MAX`] bytes, to `out`.
    pub fn seal(&mut self, content: u8, plain: &[u8], out: &mut Vec<u8>) -> Result<(), TlsError> {
        let nonce = self.nonce();
        let (inside, before) = match self.layout {
            RecordLayout::Tls13 => (plain.len() + 1, 0),
            RecordLayout::Tls12Explicit => (plain.len(), EXPLICIT_BYTES),
            RecordLayout::Tls12 => (plain.len(), 0),
        };
        let length = (before + inside + TAG_BYTES) as u16;
        let outside = match self.layout {
            RecordLayout::Tls13 => content::DATA,
            RecordLayout::Tls12Explicit | RecordLayout::Tls12 => content,
        };
        let [high, low] = length.to_be_bytes();
        let header = [outside, 3, 3, high, low];
        out.reserve(HEADER_BYTES + usize::from(length));
        out.extend_from_slice(&header);
        out.extend_from_slice(&nonce[nonce.len() - before..]);
        let from = out.len();
        out.extend_from_slice(plain);
        if self.layout == RecordLayout::Tls13 {
            out.push(content);
        }
        let (key, nonce) = (&self.key, Nonce::assume_unique_for_key(nonce));
        let sealed = match self.layout {
            RecordLayout::Tls13 => {
                key.seal_in_place_separate_tag(nonce, Aad::from(header), &mut out[from..])
            }
            RecordLayout::Tls12Explicit | RecordLayout::Tls12 => {
                let additional = self.additional(content, plain.len());
                key.seal_in_place_separate_tag(nonce, Aad::from(additional), &mut out[from..])
            }
        };
        let tag =
            sealed.map_err(|_| TlsError::Protocol("a record could not be encrypted".to_owned()))?;
        out.extend_from_slice(tag.as_ref());
        self.number += 1;
        Ok(())
    }

    /// How many bytes the record has that `bytes` begin with; `None`: more are needed to know.
    pub fn length_of(&self, bytes: &[u8]) -> Result<Option<usize>, PeerFault> {
        let Some(&[_, _, _, high, low]) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let overhead = match self.layout {
            RecordLayout::Tls13 => OVERHEAD_BYTES_MAX_13,
            RecordLayout::Tls12Explicit | RecordLayout::Tls12 => OVERHEAD_BYTES_MAX_12,
        };
        if length > PLAIN_BYTES_MAX + overhead {
            return Err(too_long());
        }
        Ok(Some(HEADER_BYTES + length))
    }

    /// Decrypts `record`, which is whole, in place.
    pub fn open(&mut self, record: &mut [u8]) -> Result<OpenedRecord, PeerFault> {
        let undecipherable = || {
            PeerFault::new(
                AlertDescription::BadRecordMac,
                "what came cannot be decrypted: it was changed on the way, or wrong from the start",
            )
        };
        let out_of_place = || {
            PeerFault::new(
                AlertDescription::UnexpectedMessage,
                "the peer sent a record that has no place there",
            )
        };
        let Some(header) = record.first_chunk::<HEADER_BYTES>().copied() else {
            return Err(undecipherable());
        };
        // What is protected is called data, whatever is in it.
        if self.layout == RecordLayout::Tls13 && header[0] != content::DATA {
            return Err(out_of_place());
        }
        let (mut nonce, from) = match self.layout {
            RecordLayout::Tls12Explicit => (self.iv, HEADER_BYTES + EXPLICIT_BYTES),
            RecordLayout::Tls13 | RecordLayout::Tls12 => (self.nonce(), HEADER_BYTES),
        };
        let Some(plain_bytes) = record.len().checked_sub(from + TAG_BYTES) else {
            return Err(undecipherable());
        };
        if self.layout == RecordLayout::Tls12Explicit {
            nonce[4..].copy_from_slice(&record[HEADER_BYTES..from]);
        }
        let (key, nonce) = (&self.key, Nonce::assume_unique_for_key(nonce));
        let opened = match self.layout {
            RecordLayout::Tls13 => key.open_in_place(nonce, Aad::from(header), &mut record[from..]),
            RecordLayout::Tls12Explicit | RecordLayout::Tls12 => {
                let additional = self.additional(header[0], plain_bytes);
                key.open_in_place(nonce, Aad::from(additional), &mut record[from..])
            }
        };
        let plain = opened.map_err(|_| undecipherable())?;
        self.number += 1;
        let (content, length) = match self.layout {
            RecordLayout::Tls12Explicit | RecordLayout::Tls12 => (header[0], plain.len()),
            // Zeros pad it behind its type.
            RecordLayout::Tls13 => match plain.iter().rposition(|&byte| byte != 0) {
                Some(last) => (plain[last], last),
                None => return Err(out_of_place()),
            },
        };
        if length > PLAIN_BYTES_MAX {
            return Err(too_long());
        }
        Ok(OpenedRecord {
            content,
            from,
            to: from + length,
        })
    }
}

fn too_long() -> PeerFault {
    PeerFault::new(
        AlertDescription::RecordOverflow,
        "the peer sent a record that is too long",
    )
}
