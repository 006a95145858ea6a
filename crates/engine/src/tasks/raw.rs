//! A task in one piece of memory: what it is, who waits for it, and its future,
//! whose room its result takes in the end.
//! Not for: which task runs when (`tasks`).
//!
//! [`task`] makes the two shares of one such piece: the loop's [`Listing`], which
//! polls and drops the future, and the spawner's [`Share`], which takes the result.
//! The piece is freed with the later of them. Pieces of up to [`KEPT_PIECE_MAX`]
//! bytes are kept in [`Pieces`] for the next task, so that a steady state allocates
//! nothing.
//!
//! After a change here, run the tests of tasks, `random_tests` above all, with something
//! that sees a wrong access: `cargo +nightly miri test -p prony-engine --lib tasks::`, or
//! `RUSTFLAGS=-Zsanitizer=address cargo +nightly test -p prony-engine --lib --target
//! x86_64-unknown-linux-gnu tasks::`.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, offset_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::{self, NonNull, null_mut};
use std::task::{Context, Poll, Waker};
use std::thread;

use super::TaskWaker;

/// Sizes are rounded up to multiples of this, so that different futures share
/// pieces: a line of the cache.
const PIECE_STEP: usize = 64;
/// The largest piece, in bytes, that is kept for the next task.
pub(super) const KEPT_PIECE_MAX: usize = 1024;
/// Alignment, in bytes, of the pieces that are kept.
const KEPT_ALIGN: usize = 16;
/// Most bytes kept of each size.
const KEPT_BYTES_MAX: usize = 256 << 10;
const SIZES: usize = KEPT_PIECE_MAX / PIECE_STEP;

/// What the room behind the header holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    Future,
    Value,
    Panic,
    Nothing,
}

/// How to treat a task whose future's type is not known any more.
struct Kind {
    layout: Layout,
    /// The list of kept pieces of this size; [`SIZES`] where they are not kept.
    size: usize,
    /// Where in the piece the room begins.
    room_offset: usize,
    /// A panic is the task's result.
    catches: bool,
    poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> Poll<()>,
    /// Drops what the room holds.
    empty: unsafe fn(NonNull<Header>),
}

struct Header {
    kind: &'static Kind,
    /// Who awaits the task.
    waiter: Cell<TaskWaker>,
    room: Cell<Room>,
    is_listed: Cell<bool>,
    is_shared: Cell<bool>,
    is_finished: Cell<bool>,
}

/// What a panic carries.
pub(super) type Payload = Box<dyn Any + Send>;

#[repr(C)]
union Contents<F, T> {
    future: ManuallyDrop<F>,
    value: ManuallyDrop<T>,
    panic: ManuallyDrop<Payload>,
}

#[repr(C)]
struct Piece<F, T> {
    header: Header,
    contents: Contents<F, T>,
}

/// A pointer to a live `Piece<F, T>` of which only the header is known.
///
/// INVARIANT: it points to memory that [`allocate`] gave for `kind.layout`, with an
/// initialised header, as long as `is_listed` or `is_shared` is set. There is at
/// most one [`Listing`] (exactly while `is_listed`) and at most one [`Share`]
/// (exactly while `is_shared`). `room` says what `contents` holds. Only the
/// listing touches a future, only the share a value; all of it on one thread,
/// because neither is `Send`.
#[derive(Clone, Copy)]
struct Pointer(NonNull<Header>);

impl<F: Future> Piece<F, F::Output> {
    const PLAIN: &'static Kind = &Self::kind(false);
    const CAUGHT: &'static Kind = &Self::kind(true);

    const fn kind(catches: bool) -> Kind {
        Kind {
            layout: rounded(Layout::new::<Self>()),
            size: size_of_layout(rounded(Layout::new::<Self>())),
            room_offset: offset_of!(Self, contents),
            catches,
            poll: Self::poll,
            empty: Self::empty,
        }
    }

    /// # Safety
    /// `header` is that of a live `Self`, whose room holds the future, and which
    /// only the caller polls.
    unsafe fn poll(header: NonNull<Header>, cx: &mut Context<'_>) -> Poll<()> {
        let piece = header.cast::<Self>().as_ptr();
        // SAFETY: the piece is alive, and `ManuallyDrop` lays out as what it holds.
        let future = unsafe { (&raw mut (*piece).contents.future).cast::<F>() };
        // SAFETY: the caller says that the future is there, and nobody else has a
        // reference to it. It never moves: it is dropped in its place.
        let future = unsafe { Pin::new_unchecked(&mut *future) };
        let Poll::Ready(value) = future.poll(cx) else {
            return Poll::Pending;
        };
        // SAFETY: the piece is alive: the caller's share of it is.
        let shared = unsafe { header.as_ref() };
        shared.room.set(Room::Nothing);
        // SAFETY: the future was there, is used no more, and the room is marked empty
        // before its owner's code runs, so that it is not dropped twice.
        unsafe { ManuallyDrop::drop(&mut (*piece).contents.future) };
        shared.is_finished.set(true);
        if shared.is_shared.get() {
            // SAFETY: the room is empty, and large enough for a value.
            unsafe { (&raw mut (*piece).contents.value).write(ManuallyDrop::new(value)) };
            shared.room.set(Room::Value);
        }
        Poll::Ready(())
    }

    /// Drops what the room holds.
    ///
    /// # Safety
    /// `header` is that of a live `Self`, and only the caller uses its room.
    unsafe fn empty(header: NonNull<Header>) {
        let piece = header.cast::<Self>().as_ptr();
        // SAFETY: the piece is alive.
        let room = unsafe { header.as_ref() }.room.replace(Room::Nothing);
        match room {
            // SAFETY: the room held it, and says so no more.
            Room::Future => unsafe { ManuallyDrop::drop(&mut (*piece).contents.future) },
            // SAFETY: the room held it, and says so no more.
            Room::Value => unsafe { ManuallyDrop::drop(&mut (*piece).contents.value) },
            // SAFETY: the room held it, and says so no more.
            Room::Panic => unsafe { ManuallyDrop::drop(&mut (*piece).contents.panic) },
            Room::Nothing => {}
        }
    }
}

/// The layout that a piece is allocated with: a multiple of [`PIECE_STEP`].
const fn rounded(layout: Layout) -> Layout {
    let size = layout.size().next_multiple_of(PIECE_STEP);
    let align = if layout.align() < KEPT_ALIGN {
        KEPT_ALIGN
    } else {
        layout.align()
    };
    match Layout::from_size_align(size, align) {
        Ok(rounded) => rounded,
        Err(_) => layout,
    }
}

/// The list that pieces of this layout are kept on.
const fn size_of_layout(layout: Layout) -> usize {
    if layout.size() <= KEPT_PIECE_MAX && layout.align() == KEPT_ALIGN {
        layout.size() / PIECE_STEP - 1
    } else {
        SIZES
    }
}

/// Makes a task of `future`: the loop's share and the spawner's.
#[inline(always)]
pub(super) fn task<F>(future: F, catches: bool, pieces: &Pieces) -> (Listing, Share<F::Output>)
where
    F: Future + 'static,
    F::Output: 'static,
{
    let kind = match catches {
        true => Piece::<F, F::Output>::CAUGHT,
        false => Piece::<F, F::Output>::PLAIN,
    };
    let memory = pieces.allocate(kind);
    let header = Header {
        kind,
        waiter: Cell::default(),
        room: Cell::new(Room::Future),
        is_listed: Cell::new(true),
        is_shared: Cell::new(true),
        is_finished: Cell::new(false),
    };
    let piece: *mut Piece<F, F::Output> = memory.as_ptr().cast();
    // SAFETY: the memory is new, aligned and large enough for the piece.
    unsafe {
        (&raw mut (*piece).contents.future).write(ManuallyDrop::new(future));
        (&raw mut (*piece).header).write(header);
    }
    let pointer = Pointer(memory.cast());
    (Listing(pointer), Share(pointer, PhantomData))
}

impl Pointer {
    #[inline(always)]
    fn header(&self) -> &Header {
        // SAFETY: by the invariant it is alive: who holds a pointer holds a share.
        unsafe { self.0.as_ref() }
    }

    /// Where what comes after the header begins.
    fn room<R>(self) -> *mut R {
        let offset = self.header().kind.room_offset;
        // SAFETY: the room lies in the piece, which is alive.
        unsafe { self.0.as_ptr().byte_add(offset).cast() }
    }

    /// Frees the piece.
    ///
    /// # Safety
    /// Both shares are gone.
    #[inline(always)]
    unsafe fn free(self, pieces: Option<&Pieces>) {
        let kind = self.header().kind;
        // SAFETY: nobody uses the header any more.
        unsafe { ptr::drop_in_place(&raw mut (*self.0.as_ptr()).waiter) };
        match pieces {
            // SAFETY: no share is left, so nobody uses the piece any more; it was
            // allocated for this kind.
            Some(pieces) => unsafe { pieces.keep(self.0.cast(), kind) },
            // SAFETY: as above.
            None => unsafe { dealloc(self.0.as_ptr().cast(), kind.layout) },
        }
    }
}

/// The loop's share of a task: polls its future, and drops it.
pub(super) struct Listing(Pointer);

impl Listing {
    /// Polls the future. Once ready, the result is there for the other share, and
    /// the future is dropped.
    ///
    /// # Safety
    /// No poll before was ready or panicked.
    #[inline(always)]
    pub unsafe fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let header = self.0.header();
        // SAFETY: the room holds the future; there is one listing, borrowed mutably,
        // so that nobody else polls.
        unsafe { (header.kind.poll)(self.0.0, cx) }
    }

    /// As dropping it after a poll was ready, but the memory is kept.
    #[inline(always)]
    pub fn recycle_finished(self, pieces: &Pieces) {
        let this = ManuallyDrop::new(self);
        let header = this.0.header();
        if header.is_shared.get() {
            // Woken while this share still keeps the piece alive.
            header.waiter.take().wake();
            header.is_listed.set(false);
            if header.is_shared.get() {
                return;
            }
        }
        // SAFETY: there was this share, and now there is none.
        unsafe { this.0.free(Some(pieces)) };
    }

    /// Whether a panic is the task's result.
    pub fn catches(&self) -> bool {
        self.0.header().kind.catches
    }

    /// Ends the task after a panic, which becomes its result; or comes back, where
    /// nobody will ask for it. What is left of the future is dropped, and a further
    /// panic in that tells nothing new.
    #[cold]
    pub fn fail(self, payload: Payload, pieces: &Pieces) -> Option<Payload> {
        let header = self.0.header();
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: what the room holds is the listing's, because it is not finished
            // or its result has not been seen: this is the poll that would show it.
            unsafe { (header.kind.empty)(self.0.0) };
        }));
        header.is_finished.set(true);
        let unseen = if header.is_shared.get() {
            // SAFETY: the room is empty, and large enough for a payload.
            unsafe { self.0.room::<Payload>().write(payload) };
            header.room.set(Room::Panic);
            None
        } else {
            Some(payload)
        };
        self.recycle_finished(pieces);
        unseen
    }

    /// As dropping it, but the memory is kept.
    pub fn recycle(self, pieces: &Pieces) {
        ManuallyDrop::new(self).leave(Some(pieces));
    }

    fn leave(&self, pieces: Option<&Pieces>) {
        let header = self.0.header();
        // Done also when dropping the future panics.
        let _leaving = Leaving {
            piece: self.0,
            pieces,
        };
        if header.room.get() != Room::Future {
            return;
        }
        // SAFETY: the room holds the future, which is the listing's alone.
        let drop_future = || unsafe { (header.kind.empty)(self.0.0) };
        // A caught task is cancelled either way, and says so; and a second panic would
        // end the process.
        if header.kind.catches || thread::panicking() {
            let _ = catch_unwind(AssertUnwindSafe(drop_future));
        } else {
            drop_future();
        }
    }
}

/// What is left to do when a listing goes: it comes after the future was dropped, because
/// its owner's code may drop the share.
///
/// INVARIANT: made by the listing of this piece alone, which does nothing after it.
struct Leaving<'a> {
    piece: Pointer,
    pieces: Option<&'a Pieces>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let header = self.piece.header();
        // Who awaits it hears that it was cancelled, once this share is gone.
        let is_awaited = header.is_shared.get();
        let waiter = header.waiter.take();
        header.is_listed.set(false);
        if !is_awaited {
            // SAFETY: there was this share, and now there is none.
            unsafe { self.piece.free(self.pieces) };
        } else {
            waiter.wake();
        }
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.leave(None);
    }
}

/// What a task came to.
#[derive(Debug)]
pub enum Outcome<T> {
    /// It ran to its end.
    Value(T),
    /// It panicked, and was [spawned](crate::Handle::spawn_caught) so that this is a
    /// result. This is what the panic carried.
    Panicked(Box<dyn Any + Send>),
    /// It was cancelled, by whomever; or its result was taken before.
    Cancelled,
}

/// The spawner's share of a task: takes its result.
pub(super) struct Share<T>(Pointer, PhantomData<T>);

impl<T> Share<T> {
    /// The payload of a panic that nobody has seen.
    #[inline(always)]
    pub fn unseen_panic(&self) -> Option<Payload> {
        let header = self.0.header();
        if header.room.get() != Room::Panic {
            return None;
        }
        header.room.set(Room::Nothing);
        // SAFETY: the room held a payload, and says so no more; only the share touches
        // it.
        Some(unsafe { self.0.room::<Payload>().read() })
    }

    /// True when the task has run to its end.
    pub fn is_finished(&self) -> bool {
        self.0.header().is_finished.get()
    }

    /// The result; None while it is not there, and `waker` is woken once it is.
    #[inline]
    pub fn poll(&self, waker: &Waker) -> Option<Outcome<T>> {
        let header = self.0.header();
        match header.room.get() {
            Room::Value => {
                header.room.set(Room::Nothing);
                // SAFETY: the room held a value of this task's output, which is T, and
                // says so no more; only the share touches it.
                return Some(Outcome::Value(unsafe { self.0.room::<T>().read() }));
            }
            Room::Panic => {
                header.room.set(Room::Nothing);
                // SAFETY: the room held a payload, and says so no more; only the share
                // touches it.
                return Some(Outcome::Panicked(unsafe {
                    self.0.room::<Payload>().read()
                }));
            }
            Room::Future | Room::Nothing => {}
        }
        if !header.is_listed.get() || header.is_finished.get() {
            return Some(Outcome::Cancelled);
        }
        drop(header.waiter.replace(TaskWaker::of(waker)));
        None
    }

    /// Drops it, if the future is still there: then the listing frees the piece.
    #[inline(always)]
    pub fn leave_running(self) -> Option<Share<T>> {
        let header = self.0.header();
        if header.room.get() != Room::Future {
            return Some(self);
        }
        ManuallyDrop::new(self).0.header().is_shared.set(false);
        None
    }

    /// As dropping it, but the memory is kept.
    #[inline(always)]
    pub fn recycle(self, pieces: &Pieces) {
        ManuallyDrop::new(self).leave(Some(pieces));
    }

    #[inline(always)]
    fn leave(&self, pieces: Option<&Pieces>) {
        let header = self.0.header();
        if header.room.get() == Room::Future {
            // So it is listed, and the listing frees the piece.
            header.is_shared.set(false);
            return;
        }
        // SAFETY: what the room holds is the share's alone.
        unsafe { (header.kind.empty)(self.0.0) };
        header.is_shared.set(false);
        if !header.is_listed.get() {
            // SAFETY: there was this share, and now there is none.
            unsafe { self.0.free(pieces) };
        }
    }
}

impl<T> Drop for Share<T> {
    fn drop(&mut self) {
        self.leave(None);
    }
}

/// Memory of ended tasks, kept for the next ones: a list for each size.
///
/// INVARIANT: each list links pieces that [`allocate`](Pieces::allocate) made for its
/// size and that nobody uses.
pub(super) struct Pieces {
    lists: [FreeList; SIZES],
}

struct FreeList {
    first: Cell<*mut Free>,
    /// How many more may be kept.
    room: Cell<usize>,
}

struct Free {
    next: *mut Free,
}

impl Pieces {
    pub fn new() -> Pieces {
        Pieces {
            lists: std::array::from_fn(|size| FreeList {
                first: Cell::new(null_mut()),
                room: Cell::new(KEPT_BYTES_MAX / bytes_of(size)),
            }),
        }
    }

    #[inline(always)]
    fn allocate(&self, kind: &Kind) -> NonNull<u8> {
        if let Some(list) = self.lists.get(kind.size)
            && let Some(first) = NonNull::new(list.first.get())
        {
            // SAFETY: what is on the list is a live, unused piece with a link in it.
            list.first.set(unsafe { first.as_ref() }.next);
            list.room.set(list.room.get() + 1);
            return first.cast();
        }
        let memory = allocate(kind.layout.size(), kind.layout.align());
        // SAFETY: where there is no memory it does not return.
        unsafe { NonNull::new_unchecked(memory) }
    }

    /// Takes a piece back.
    ///
    /// # Safety
    /// It was allocated for this kind, and nobody uses it any more.
    #[inline(always)]
    unsafe fn keep(&self, piece: NonNull<u8>, kind: &Kind) {
        if let Some(list) = self.lists.get(kind.size)
            && let Some(room) = list.room.get().checked_sub(1)
        {
            let free = piece.cast::<Free>();
            let next = list.first.get();
            // SAFETY: the piece is unused, and large and aligned enough for a link.
            unsafe { free.write(Free { next }) };
            list.first.set(free.as_ptr());
            list.room.set(room);
            return;
        }
        // SAFETY: as the caller says.
        unsafe { deallocate(piece, kind.layout) };
    }
}

/// Size, in bytes, of the pieces on a list.
fn bytes_of(size: usize) -> usize {
    (size + 1) * PIECE_STEP
}

/// # Safety
/// As that of `dealloc`.
#[cold]
#[inline(never)]
unsafe fn deallocate(piece: NonNull<u8>, layout: Layout) {
    // SAFETY: as the caller says.
    unsafe { dealloc(piece.as_ptr(), layout) };
}

/// By the C convention because nothing is to unwind from here: a future that is about to
/// be put into this memory then needs no second place, from which it would be dropped.
#[cold]
#[inline(never)]
extern "C" fn allocate(bytes: usize, align: usize) -> *mut u8 {
    let Ok(layout) = Layout::from_size_align(bytes, align) else {
        std::process::abort();
    };
    // SAFETY: no layout here is of size zero: a header is in each.
    let memory = unsafe { alloc(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    memory
}

impl Drop for Pieces {
    fn drop(&mut self) {
        for (size, list) in self.lists.iter().enumerate() {
            let layout = Layout::from_size_align(bytes_of(size), KEPT_ALIGN);
            let layout = layout.expect("sizes are small");
            while let Some(first) = NonNull::new(list.first.get()) {
                // SAFETY: what is on the list is a live, unused piece with a link in it.
                list.first.set(unsafe { first.as_ref() }.next);
                // SAFETY: pieces on this list were allocated with this layout.
                unsafe { dealloc(first.as_ptr().cast(), layout) };
            }
        }
    }
}
