//! A task in one allocation: a header, and behind it the future, whose memory its result
//! takes in the end.
//! Not for: which task runs when (`tasks`).
//!
//! [`task`] makes the two owners of such an allocation: the loop's [`TaskRef`], which polls
//! and drops the future, and the spawner's [`JoinHandle`], which takes the result. The later
//! of them to go frees the allocation. Allocations of up to [`CACHED_BYTES_MAX`] bytes are
//! kept in an [`AllocationCache`] for the next task, so that a steady state allocates
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

use super::waker::TaskWaker;

/// Sizes are rounded up to multiples of this, a cache line, so that different futures
/// share allocations.
const SIZE_STEP: usize = 64;
/// The largest allocation, in bytes, that is kept for the next task.
pub(super) const CACHED_BYTES_MAX: usize = 1024;
/// Alignment, in bytes, of the allocations that are kept.
const CACHED_ALIGN: usize = 16;
/// Most bytes kept of each size.
const CACHE_BYTES_PER_SIZE_MAX: usize = 256 << 10;
const SIZES: usize = CACHED_BYTES_MAX / SIZE_STEP;

/// The kind of contents behind the header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskState {
    /// The future.
    Running,
    /// Its value.
    Finished,
    /// The payload of its panic.
    Panicked,
    /// Nothing any more.
    Consumed,
}

/// The functions and the layout of a task whose future's type is erased.
struct Vtable {
    layout: Layout,
    /// The list of cached allocations of this size; [`SIZES`] where they are not cached.
    size: usize,
    /// The offset of the contents in the allocation, in bytes.
    contents_offset: usize,
    /// A panic is the task's result.
    catches: bool,
    poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> Poll<()>,
    /// Drops the contents.
    drop_contents: unsafe fn(NonNull<Header>),
}

struct Header {
    vtable: &'static Vtable,
    /// Woken when the task is finished or cancelled.
    join_waker: Cell<TaskWaker>,
    state: Cell<TaskState>,
    is_referenced: Cell<bool>,
    is_joinable: Cell<bool>,
    is_finished: Cell<bool>,
}

/// The payload of a panic.
pub(super) type Payload = Box<dyn Any + Send>;

#[repr(C)]
union Contents<F, T> {
    future: ManuallyDrop<F>,
    value: ManuallyDrop<T>,
    panic: ManuallyDrop<Payload>,
}

#[repr(C)]
struct Allocation<F, T> {
    header: Header,
    contents: Contents<F, T>,
}

/// A pointer to a live `Allocation<F, T>` of which only the header's type is known.
///
/// INVARIANT: it points to memory that [`allocate`] gave for `vtable.layout`, with an
/// initialised header, as long as `is_referenced` or `is_joinable` is set. There is at
/// most one [`TaskRef`] (exactly while `is_referenced`) and at most one [`JoinHandle`]
/// (exactly while `is_joinable`). `state` says what `contents` holds. Only the `TaskRef`
/// touches a future, only the `JoinHandle` a value; all of it on one thread, because
/// neither is `Send`.
#[derive(Clone, Copy)]
struct RawTask(NonNull<Header>);

impl<F: Future> Allocation<F, F::Output> {
    const PLAIN: &'static Vtable = &Self::vtable(false);
    const CAUGHT: &'static Vtable = &Self::vtable(true);

    const fn vtable(catches: bool) -> Vtable {
        Vtable {
            layout: rounded(Layout::new::<Self>()),
            size: size_of_layout(rounded(Layout::new::<Self>())),
            contents_offset: offset_of!(Self, contents),
            catches,
            poll: Self::poll,
            drop_contents: Self::drop_contents,
        }
    }

    /// # Safety
    /// `header` is that of a live `Self`, whose contents are the future, and which
    /// only the caller polls.
    unsafe fn poll(header: NonNull<Header>, cx: &mut Context<'_>) -> Poll<()> {
        let allocation = header.cast::<Self>().as_ptr();
        // SAFETY: the allocation is alive, and `ManuallyDrop<F>` has the layout of `F`.
        let future = unsafe { (&raw mut (*allocation).contents.future).cast::<F>() };
        // SAFETY: the caller says that the future is there, and there is no other
        // reference to it. It never moves: it is dropped in its place.
        let future = unsafe { Pin::new_unchecked(&mut *future) };
        let Poll::Ready(value) = future.poll(cx) else {
            return Poll::Pending;
        };
        // SAFETY: the allocation is alive: the caller's `TaskRef` is.
        let shared = unsafe { header.as_ref() };
        shared.state.set(TaskState::Consumed);
        // SAFETY: the future was there, is used no more, and the state says so
        // before its owner's code runs, so that it is not dropped twice.
        unsafe { ManuallyDrop::drop(&mut (*allocation).contents.future) };
        shared.is_finished.set(true);
        if shared.is_joinable.get() {
            // SAFETY: there are no contents, and there is space for a value.
            unsafe { (&raw mut (*allocation).contents.value).write(ManuallyDrop::new(value)) };
            shared.state.set(TaskState::Finished);
        }
        Poll::Ready(())
    }

    /// Drops the contents.
    ///
    /// # Safety
    /// `header` is that of a live `Self`, and only the caller uses its contents.
    unsafe fn drop_contents(header: NonNull<Header>) {
        let allocation = header.cast::<Self>().as_ptr();
        // SAFETY: the allocation is alive.
        let state = unsafe { header.as_ref() }
            .state
            .replace(TaskState::Consumed);
        match state {
            // SAFETY: the contents were that, and the state says so no more.
            TaskState::Running => unsafe { ManuallyDrop::drop(&mut (*allocation).contents.future) },
            // SAFETY: the contents were that, and the state says so no more.
            TaskState::Finished => unsafe { ManuallyDrop::drop(&mut (*allocation).contents.value) },
            // SAFETY: the contents were that, and the state says so no more.
            TaskState::Panicked => unsafe { ManuallyDrop::drop(&mut (*allocation).contents.panic) },
            TaskState::Consumed => {}
        }
    }
}

/// The layout that a task is allocated with: a multiple of [`SIZE_STEP`].
const fn rounded(layout: Layout) -> Layout {
    let size = layout.size().next_multiple_of(SIZE_STEP);
    let align = if layout.align() < CACHED_ALIGN {
        CACHED_ALIGN
    } else {
        layout.align()
    };
    match Layout::from_size_align(size, align) {
        Ok(rounded) => rounded,
        Err(_) => layout,
    }
}

/// The list of cached allocations of this layout.
const fn size_of_layout(layout: Layout) -> usize {
    if layout.size() <= CACHED_BYTES_MAX && layout.align() == CACHED_ALIGN {
        layout.size() / SIZE_STEP - 1
    } else {
        SIZES
    }
}

/// Makes a task of `future`: the loop's reference and the spawner's handle.
#[inline(always)]
pub(super) fn task<F>(
    future: F,
    catches: bool,
    cache: &AllocationCache,
) -> (TaskRef, JoinHandle<F::Output>)
where
    F: Future + 'static,
    F::Output: 'static,
{
    let vtable = match catches {
        true => Allocation::<F, F::Output>::CAUGHT,
        false => Allocation::<F, F::Output>::PLAIN,
    };
    let memory = cache.allocate(vtable);
    let header = Header {
        vtable,
        join_waker: Cell::default(),
        state: Cell::new(TaskState::Running),
        is_referenced: Cell::new(true),
        is_joinable: Cell::new(true),
        is_finished: Cell::new(false),
    };
    let allocation: *mut Allocation<F, F::Output> = memory.as_ptr().cast();
    // SAFETY: the memory is new, aligned and large enough.
    unsafe {
        (&raw mut (*allocation).contents.future).write(ManuallyDrop::new(future));
        (&raw mut (*allocation).header).write(header);
    }
    let pointer = RawTask(memory.cast());
    (TaskRef(pointer), JoinHandle(pointer, PhantomData))
}

impl RawTask {
    #[inline(always)]
    fn header(&self) -> &Header {
        // SAFETY: by the invariant it is alive: the caller is one of its owners.
        unsafe { self.0.as_ref() }
    }

    /// The contents, behind the header.
    fn contents<R>(self) -> *mut R {
        let offset = self.header().vtable.contents_offset;
        // SAFETY: the contents lie in the allocation, which is alive.
        unsafe { self.0.as_ptr().byte_add(offset).cast() }
    }

    /// Frees the allocation.
    ///
    /// # Safety
    /// Both owners are gone.
    #[inline(always)]
    unsafe fn free(self, cache: Option<&AllocationCache>) {
        let vtable = self.header().vtable;
        debug_assert!(self.header().state.get() != TaskState::Running);
        // SAFETY: the header is used no more.
        unsafe { ptr::drop_in_place(&raw mut (*self.0.as_ptr()).join_waker) };
        match cache {
            // SAFETY: no owner is left, so the allocation is used no more; it was made
            // for this vtable.
            Some(cache) => unsafe { cache.keep(self.0.cast(), vtable) },
            // SAFETY: as above.
            None => unsafe { dealloc(self.0.as_ptr().cast(), vtable.layout) },
        }
    }
}

/// The loop's reference to a task: polls its future, and drops it.
pub(super) struct TaskRef(RawTask);

impl TaskRef {
    /// Polls the future. Once ready, the result is there for the join handle, and
    /// the future is dropped.
    ///
    /// # Safety
    /// No poll before was ready or panicked.
    #[inline(always)]
    pub unsafe fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let header = self.0.header();
        debug_assert!(header.is_referenced.get() && header.state.get() == TaskState::Running);
        // SAFETY: the contents are the future; there is one `TaskRef`, borrowed mutably,
        // so that there is no other poll.
        unsafe { (header.vtable.poll)(self.0.0, cx) }
    }

    /// As dropping it after a poll was ready, but the memory is kept.
    #[inline(always)]
    pub fn recycle_finished(self, cache: &AllocationCache) {
        let this = ManuallyDrop::new(self);
        let header = this.0.header();
        if header.is_joinable.get() {
            // Woken while this reference still keeps the allocation alive.
            header.join_waker.take().wake();
            header.is_referenced.set(false);
            if header.is_joinable.get() {
                return;
            }
        }
        // SAFETY: this was the last owner.
        unsafe { this.0.free(Some(cache)) };
    }

    /// Whether a panic is the task's result.
    pub fn catches(&self) -> bool {
        self.0.header().vtable.catches
    }

    /// Ends the task after a panic, which becomes its result; or is returned, where
    /// there is no join handle any more. What is left of the future is dropped, and a
    /// further panic in that is ignored.
    #[cold]
    pub fn fail(self, payload: Payload, cache: &AllocationCache) -> Option<Payload> {
        let header = self.0.header();
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the contents are the reference's, because the task is not finished
            // or its result has not been taken: this is the poll that would give it.
            unsafe { (header.vtable.drop_contents)(self.0.0) };
        }));
        header.is_finished.set(true);
        let unseen = if header.is_joinable.get() {
            // SAFETY: there are no contents, and there is space for a payload.
            unsafe { self.0.contents::<Payload>().write(payload) };
            header.state.set(TaskState::Panicked);
            None
        } else {
            Some(payload)
        };
        self.recycle_finished(cache);
        unseen
    }

    /// As dropping it, but the memory is kept.
    pub fn recycle(self, cache: &AllocationCache) {
        ManuallyDrop::new(self).release(Some(cache));
    }

    fn release(&self, cache: Option<&AllocationCache>) {
        let header = self.0.header();
        // Done also when dropping the future panics.
        let _release = ReleaseGuard {
            task: self.0,
            cache,
        };
        if header.state.get() != TaskState::Running {
            return;
        }
        // SAFETY: the contents are the future, which is the reference's alone.
        let drop_future = || unsafe { (header.vtable.drop_contents)(self.0.0) };
        // A task whose panics are caught is cancelled either way, and its handle gets that;
        // and a second panic would end the process.
        if header.vtable.catches || thread::panicking() {
            let _ = catch_unwind(AssertUnwindSafe(drop_future));
        } else {
            drop_future();
        }
    }
}

/// Releases a reference when it is dropped: after the future was, because that runs its
/// owner's code, which may drop the join handle.
///
/// INVARIANT: made by the `TaskRef` of this task alone, which does nothing after it.
struct ReleaseGuard<'a> {
    task: RawTask,
    cache: Option<&'a AllocationCache>,
}

impl Drop for ReleaseGuard<'_> {
    fn drop(&mut self) {
        let header = self.task.header();
        // The awaiting task sees that this one was cancelled, once this reference is gone.
        let is_awaited = header.is_joinable.get();
        let join_waker = header.join_waker.take();
        header.is_referenced.set(false);
        if !is_awaited {
            // SAFETY: this was the last owner.
            unsafe { self.task.free(self.cache) };
        } else {
            join_waker.wake();
        }
    }
}

impl Drop for TaskRef {
    fn drop(&mut self) {
        self.release(None);
    }
}

/// How a task ended.
#[derive(Debug)]
pub enum JoinOutcome<T> {
    /// It ran to its end.
    Value(T),
    /// It panicked, and was [spawned](crate::Handle::spawn_caught) so that this is a
    /// result: the payload of the panic.
    Panicked(Box<dyn Any + Send>),
    /// It was cancelled; or its result was taken before.
    Cancelled,
}

/// The spawner's handle of a task: takes its result.
pub(super) struct JoinHandle<T>(RawTask, PhantomData<T>);

impl<T> JoinHandle<T> {
    /// The payload of a panic that was not taken as a result.
    #[inline(always)]
    pub fn unseen_panic(&self) -> Option<Payload> {
        let header = self.0.header();
        if header.state.get() != TaskState::Panicked {
            return None;
        }
        header.state.set(TaskState::Consumed);
        // SAFETY: the contents were a payload, and the state says so no more; only the
        // join handle touches it.
        Some(unsafe { self.0.contents::<Payload>().read() })
    }

    /// True when the task has run to its end.
    pub fn is_finished(&self) -> bool {
        self.0.header().is_finished.get()
    }

    /// The result; None while it is not there, and `waker` is woken once it is.
    #[inline]
    pub fn poll(&self, waker: &Waker) -> Option<JoinOutcome<T>> {
        let header = self.0.header();
        match header.state.get() {
            TaskState::Finished => {
                header.state.set(TaskState::Consumed);
                // SAFETY: the contents were a value of this task's output, which is T, and
                // the state says so no more; only the join handle touches it.
                return Some(JoinOutcome::Value(unsafe { self.0.contents::<T>().read() }));
            }
            TaskState::Panicked => {
                header.state.set(TaskState::Consumed);
                // SAFETY: the contents were a payload, and the state says so no more; only
                // the join handle touches it.
                return Some(JoinOutcome::Panicked(unsafe {
                    self.0.contents::<Payload>().read()
                }));
            }
            TaskState::Running | TaskState::Consumed => {}
        }
        if !header.is_referenced.get() || header.is_finished.get() {
            return Some(JoinOutcome::Cancelled);
        }
        drop(header.join_waker.replace(TaskWaker::of(waker)));
        None
    }

    /// Drops it, if the future is still there: then the `TaskRef` frees the allocation.
    #[inline(always)]
    pub fn detach_running(self) -> Option<JoinHandle<T>> {
        let header = self.0.header();
        if header.state.get() != TaskState::Running {
            return Some(self);
        }
        ManuallyDrop::new(self).0.header().is_joinable.set(false);
        None
    }

    /// As dropping it, but the memory is kept.
    #[inline(always)]
    pub fn recycle(self, cache: &AllocationCache) {
        ManuallyDrop::new(self).release(Some(cache));
    }

    #[inline(always)]
    fn release(&self, cache: Option<&AllocationCache>) {
        let header = self.0.header();
        if header.state.get() == TaskState::Running {
            // So there is a `TaskRef`, which frees the allocation.
            header.is_joinable.set(false);
            return;
        }
        // SAFETY: the contents are the join handle's alone.
        unsafe { (header.vtable.drop_contents)(self.0.0) };
        header.is_joinable.set(false);
        if !header.is_referenced.get() {
            // SAFETY: this was the last owner.
            unsafe { self.0.free(cache) };
        }
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        self.release(None);
    }
}

/// Memory of ended tasks, kept for the next ones: a list for each size.
///
/// INVARIANT: each list links allocations that [`allocate`](AllocationCache::allocate) made
/// for its size and that are not in use.
pub(super) struct AllocationCache {
    lists: [FreeList; SIZES],
}

struct FreeList {
    first: Cell<*mut Free>,
    /// The number that may still be kept.
    left: Cell<usize>,
}

struct Free {
    next: *mut Free,
}

impl AllocationCache {
    pub fn new() -> AllocationCache {
        AllocationCache {
            lists: std::array::from_fn(|size| FreeList {
                first: Cell::new(null_mut()),
                left: Cell::new(CACHE_BYTES_PER_SIZE_MAX / bytes_of(size)),
            }),
        }
    }

    #[inline(always)]
    fn allocate(&self, vtable: &Vtable) -> NonNull<u8> {
        if let Some(list) = self.lists.get(vtable.size)
            && let Some(first) = NonNull::new(list.first.get())
        {
            // SAFETY: what is on the list is a live, unused allocation with a link in it.
            list.first.set(unsafe { first.as_ref() }.next);
            list.left.set(list.left.get() + 1);
            return first.cast();
        }
        let memory = allocate(vtable.layout.size(), vtable.layout.align());
        // SAFETY: where there is no memory it does not return.
        unsafe { NonNull::new_unchecked(memory) }
    }

    /// Takes an allocation back.
    ///
    /// # Safety
    /// It was made for this vtable, and is used no more.
    #[inline(always)]
    unsafe fn keep(&self, allocation: NonNull<u8>, vtable: &Vtable) {
        if let Some(list) = self.lists.get(vtable.size)
            && let Some(left) = list.left.get().checked_sub(1)
        {
            let free = allocation.cast::<Free>();
            let next = list.first.get();
            // SAFETY: the allocation is unused, and large and aligned enough for a link.
            unsafe { free.write(Free { next }) };
            list.first.set(free.as_ptr());
            list.left.set(left);
            return;
        }
        // SAFETY: as the caller says.
        unsafe { deallocate(allocation, vtable.layout) };
    }
}

/// Size, in bytes, of the allocations on a list.
fn bytes_of(size: usize) -> usize {
    (size + 1) * SIZE_STEP
}

/// # Safety
/// As that of `dealloc`.
#[cold]
#[inline(never)]
unsafe fn deallocate(allocation: NonNull<u8>, layout: Layout) {
    // SAFETY: as the caller says.
    unsafe { dealloc(allocation.as_ptr(), layout) };
}

/// By the C convention because nothing unwinds from here: a future that is about to
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

impl Drop for AllocationCache {
    fn drop(&mut self) {
        for (size, list) in self.lists.iter().enumerate() {
            let layout = Layout::from_size_align(bytes_of(size), CACHED_ALIGN);
            let layout = layout.expect("sizes are small");
            while let Some(first) = NonNull::new(list.first.get()) {
                // SAFETY: what is on the list is a live, unused allocation with a link in it.
                list.first.set(unsafe { first.as_ref() }.next);
                // SAFETY: allocations on this list were made with this layout.
                unsafe { dealloc(first.as_ptr().cast(), layout) };
            }
        }
    }
}
