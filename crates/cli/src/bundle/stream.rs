//! zstd as streams: what of a bundle passes through memory is a window, however large it is.

use std::io::{self, ErrorKind, Read, Write};

use sha2::{Digest as _, Sha256};
use zstd_safe::{CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer};

use super::fault::Fault;

/// The first four bytes of a bundle: those of zstd.
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Level of compression: records are packed once and kept for years.
const LEVEL: i32 = 19;
/// Window of compression and decompression, as a power of two: what a reader must have in memory.
const WINDOW_LOG: u32 = 26;
/// Bytes that are packed and unpacked at a time.
const STEP_BYTES: usize = 1 << 18;

fn failed(code: usize) -> io::Error {
    io::Error::other(Fault::Damaged(zstd_safe::get_error_name(code).into()))
}

/// Packs what is written to it.
pub struct Packer<W> {
    context: CCtx<'static>,
    to: W,
    step: Vec<u8>,
}

impl<W: Write> Packer<W> {
    /// Packs exactly so many bytes to `to`.
    pub fn new(to: W, bytes: u64) -> io::Result<Packer<W>> {
        let mut context = CCtx::create();
        let parameters = [
            CParameter::CompressionLevel(LEVEL),
            CParameter::WindowLog(WINDOW_LOG),
            CParameter::ChecksumFlag(true),
        ];
        for parameter in parameters {
            context.set_parameter(parameter).map_err(failed)?;
        }
        context.set_pledged_src_size(Some(bytes)).map_err(failed)?;
        let step = vec![0; STEP_BYTES];
        Ok(Packer { context, to, step })
    }

    /// Writes what is left, and gives back where it went.
    pub fn finish(mut self) -> io::Result<W> {
        loop {
            let mut output = OutBuffer::around(&mut self.step[..]);
            let left = self.context.end_stream(&mut output).map_err(failed)?;
            self.to.write_all(output.as_slice())?;
            if left == 0 {
                return Ok(self.to);
            }
        }
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut input = InBuffer::around(bytes);
        while input.pos < bytes.len() {
            let mut output = OutBuffer::around(&mut self.step[..]);
            let step = self.context.compress_stream(&mut output, &mut input);
            step.map_err(failed)?;
            self.to.write_all(output.as_slice())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Unpacks one frame, which may be anybody's, as it is read. Its errors are [`Fault`]s, but for those of the stream below it.
pub struct Unpacker<R> {
    context: DCtx<'static>,
    from: R,
    /// Bytes that were read and not unpacked: from `at` to `end`.
    read: Vec<u8>,
    at: usize,
    end: usize,
    digest: Sha256,
    /// Bytes that may come out.
    left: u64,
    bytes_max: u64,
    is_over: bool,
}

impl<R: Read> Unpacker<R> {
    /// Unpacks at most `bytes_max` bytes.
    pub fn new(from: R, bytes_max: u64) -> io::Result<Unpacker<R>> {
        let mut context = DCtx::create();
        let window = DParameter::WindowLogMax(WINDOW_LOG);
        context.set_parameter(window).map_err(failed)?;
        let mut unpacker = Unpacker {
            context,
            from,
            read: vec![0; STEP_BYTES],
            at: 0,
            end: 0,
            digest: Sha256::new(),
            left: bytes_max,
            bytes_max,
            is_over: false,
        };
        while unpacker.end < MAGIC.len() && unpacker.fill()? {}
        match unpacker.read[..unpacker.end].starts_with(&MAGIC) {
            true => Ok(unpacker),
            false => Err(io::Error::other(Fault::Magic)),
        }
    }

    /// The digest of what was read, all of which it reads.
    pub fn finish(mut self) -> io::Result<Sha256> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(self.digest)
    }

    /// Reads more; `false`: there is no more.
    fn fill(&mut self) -> io::Result<bool> {
        if self.at == self.end {
            (self.at, self.end) = (0, 0);
        }
        loop {
            match self.from.read(&mut self.read[self.end..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(count) => {
                    self.digest.update(&self.read[self.end..self.end + count]);
                    self.end += count;
                    return Ok(count > 0);
                }
            }
        }
    }
}

impl<R: Read> Read for Unpacker<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() || self.is_over {
            return Ok(0);
        }
        loop {
            let mut input = InBuffer::around(&self.read[self.at..self.end]);
            let mut output = OutBuffer::around(&mut *bytes);
            let step = self.context.decompress_stream(&mut output, &mut input);
            let (wanted, made) = (step.map_err(failed)?, output.pos());
            self.at += input.pos;
            let max = self.bytes_max;
            self.left = (self.left.checked_sub(made as u64)).ok_or_else(|| {
                let what = format!("more than {max} bytes unpacked");
                io::Error::other(Fault::TooLarge { what, max })
            })?;
            if wanted == 0 {
                self.is_over = true;
                if self.at < self.end || self.fill()? {
                    let why = Fault::Damaged("bytes follow its end".into());
                    return Err(io::Error::other(why));
                }
                return Ok(made);
            }
            if made > 0 {
                return Ok(made);
            }
            if self.at == self.end && !self.fill()? {
                return Err(io::Error::other(Fault::CutOff));
            }
        }
    }
}
