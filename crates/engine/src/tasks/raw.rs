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
//! Its tests are to be run under Miri as well:
//! `cargo +nightly miri test -p prony-engine --lib tasks::`.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, offset_of};
use std::pin::Pin;
use std::ptr::{NonNull, null_mut};
use std::task::{Context, Poll, Waker};

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
    Nothing,
}

/// How to treat a task whose future's type is not known any more.
struct Kind {
    layout: Layout,
    /// Where in the piece the room begins.
    room_offset: usize,
    poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> Poll<()>,
    empty: unsafe fn(NonNull<Header>),
}

struct Header {
    kind: &'static Kind,
    /// Who awaits the task.
    waiter: Cell<Option<Waker>>,
    room: Cell<Room>,
    is_listed: Cell<bool>,
    is_shared: Cell<bool>,
    is_finished: Cell<bool>,
}

#[repr(C)]
union Contents<F, T> {
    future: ManuallyDrop<F>,
    value: ManuallyDrop<T>,
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
    const KIND: &'static Kind = &Kind {
        layout: rounded(Layout::new::<Self>()),
        room_offset: offset_of!(Self, contents),
        poll: Self::poll,
        empty: Self::empty,
    };

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
        // SAFETY: the future was there, is used no more, and the room is marked empty
        // before its owner's code runs, so that it is not dropped twice.
        unsafe { Self::empty(header) };
        // SAFETY: the piece is alive: the caller's share of it is.
        let shared = unsafe { header.as_ref() };
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
const fn size_index(layout: Layout) -> Option<usize> {
    let fits = layout.size() <= KEPT_PIECE_MAX && layout.align() == KEPT_ALIGN;
    if fits {
        Some(layout.size() / PIECE_STEP - 1)
    } else {
        None
    }
}

/// Makes a task of `future`: the loop's share and the spawner's.
#[inline(always)]
pub(super) fn task<F>(future: F, pieces: &Pieces) -> (Listing, Share<F::Output>)
where
    F: Future + 'static,
    F::Output: 'static,
{
    let kind = Piece::<F, F::Output>::KIND;
    let memory = pieces.allocate(kind.layout);
    let header = Header {
        kind,
        waiter: Cell::new(None),
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
    fn header(&self) -> &Header {
        // SAFETY: by the invariant it is alive: who holds a pointer holds a share.
        unsafe { self.0.as_ref() }
    }

    /// Frees the piece when both shares are gone.
    fn let_go(self, pieces: Option<&Pieces>) {
        let header = self.header();
        if header.is_listed.get() || header.is_shared.get() {
            return;
        }
        let layout = header.kind.layout;
        drop(header.waiter.take());
        match pieces {
            // SAFETY: no share is left, so nobody uses the piece any more; it was
            // allocated with this layout.
            Some(pieces) => unsafe { pieces.keep(self.0.cast(), layout) },
            // SAFETY: as above.
            None => unsafe { dealloc(self.0.as_ptr().cast(), layout) },
        }
    }
}

/// The loop's share of a task: polls its future, and drops it.
pub(super) struct Listing(Pointer);

impl Listing {
    /// Polls the future. Once ready, the result is there for the other share, and
    /// the future is dropped. Only to be called until it is ready.
    #[inline]
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let header = self.0.header();
        if header.room.get() != Room::Future {
            return Poll::Ready(());
        }
        // SAFETY: the room holds the future; there is one listing, borrowed mutably,
        // so that nobody else polls.
        if unsafe { (header.kind.poll)(self.0.0, cx) }.is_pending() {
            return Poll::Pending;
        }
        header.is_finished.set(true);
        if let Some(waiter) = header.waiter.take() {
            waiter.wake();
        }
        Poll::Ready(())
    }

    /// As dropping it, but the memory is kept.
    pub fn recycle(self, pieces: &Pieces) {
        ManuallyDrop::new(self).leave(Some(pieces));
    }

    fn leave(&self, pieces: Option<&Pieces>) {
        let header = self.0.header();
        if header.room.get() == Room::Future {
            // SAFETY: the room holds the future, which is the listing's alone.
            unsafe { (header.kind.empty)(self.0.0) };
        }
        // Cancelled: who awaits it hears of it, when the task is gone for good.
        let waiter = match header.is_finished.get() {
            true => None,
            false => header.waiter.take(),
        };
        // After the future was dropped, because its owner's code may drop the share.
        header.is_listed.set(false);
        self.0.let_go(pieces);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.leave(None);
    }
}

/// What a task came to, as its share sees it.
pub(super) enum Outcome<T> {
    Waiting,
    Value(T),
    /// Cancelled, or taken before.
    Nothing,
}

/// The spawner's share of a task: takes its result.
pub(super) struct Share<T>(Pointer, PhantomData<T>);

impl<T> Share<T> {
    /// True when the task has run to its end.
    pub fn is_finished(&self) -> bool {
        self.0.header().is_finished.get()
    }

    /// The result; else `waker` is woken once it is there.
    #[inline]
    pub fn poll(&self, waker: Option<&Waker>) -> Outcome<T> {
        let header = self.0.header();
        if header.room.get() == Room::Value {
            header.room.set(Room::Nothing);
            // SAFETY: the room held a value of this task's output, which is T, and
            // says so no more; only the share touches it.
            return Outcome::Value(unsafe { self.value().read() });
        }
        if !header.is_listed.get() || header.is_finished.get() {
            return Outcome::Nothing;
        }
        if let Some(waker) = waker {
            let before = header.waiter.replace(None);
            let after = match before {
                Some(before) if before.will_wake(waker) => before,
                _ => waker.clone(),
            };
            header.waiter.set(Some(after));
        }
        Outcome::Waiting
    }

    fn value(&self) -> *mut T {
        let offset = self.0.header().kind.room_offset;
        // SAFETY: the room lies in the piece, which is alive.
        unsafe { self.0.0.as_ptr().byte_add(offset).cast() }
    }

    /// As dropping it, but the memory is kept.
    #[inline]
    pub fn recycle(self, pieces: &Pieces) {
        ManuallyDrop::new(self).leave(Some(pieces));
    }

    #[inline]
    fn leave(&self, pieces: Option<&Pieces>) {
        let header = self.0.header();
        if header.room.get() == Room::Value {
            // SAFETY: the room holds the value, which is the share's alone.
            unsafe { (header.kind.empty)(self.0.0) };
        }
        header.is_shared.set(false);
        self.0.let_go(pieces);
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
/// size and that nobody uses, `kept` of them.
pub(super) struct Pieces {
    lists: [FreeList; SIZES],
}

struct FreeList {
    first: Cell<*mut Free>,
    kept: Cell<usize>,
}

struct Free {
    next: *mut Free,
}

impl Pieces {
    pub fn new() -> Pieces {
        Pieces {
            lists: std::array::from_fn(|_| FreeList {
                first: Cell::new(null_mut()),
                kept: Cell::new(0),
            }),
        }
    }

    #[inline]
    fn allocate(&self, layout: Layout) -> NonNull<u8> {
        if let Some(size) = size_index(layout)
            && let Some(first) = NonNull::new(self.lists[size].first.get())
        {
            let list = &self.lists[size];
            // SAFETY: what is on the list is a live, unused piece with a link in it.
            list.first.set(unsafe { first.as_ref() }.next);
            list.kept.set(list.kept.get() - 1);
            return first.cast();
        }
        allocate(layout)
    }

    /// Takes a piece back.
    ///
    /// # Safety
    /// It was allocated with this layout, and nobody uses it any more.
    #[inline]
    unsafe fn keep(&self, piece: NonNull<u8>, layout: Layout) {
        if let Some(size) = size_index(layout)
            && self.lists[size].kept.get() * layout.size() < KEPT_BYTES_MAX
        {
            let list = &self.lists[size];
            let free = piece.cast::<Free>();
            let next = list.first.get();
            // SAFETY: the piece is unused, and large and aligned enough for a link.
            unsafe { free.write(Free { next }) };
            list.first.set(free.as_ptr());
            list.kept.set(list.kept.get() + 1);
            return;
        }
        // SAFETY: as the caller says.
        unsafe { dealloc(piece.as_ptr(), layout) };
    }
}

#[cold]
#[inline(never)]
fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: no layout here is of size zero: a header is in each.
    let memory = unsafe { alloc(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

impl Drop for Pieces {
    fn drop(&mut self) {
        for (size, list) in self.lists.iter().enumerate() {
            let bytes = (size + 1) * PIECE_STEP;
            let layout = Layout::from_size_align(bytes, KEPT_ALIGN).expect("sizes are small");
            while let Some(first) = NonNull::new(list.first.get()) {
                // SAFETY: what is on the list is a live, unused piece with a link in it.
                list.first.set(unsafe { first.as_ref() }.next);
                // SAFETY: pieces on this list were allocated with this layout.
                unsafe { dealloc(first.as_ptr().cast(), layout) };
            }
        }
    }
}
