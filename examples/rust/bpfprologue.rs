//! Attaches the programs of an object file that "prolog-dump object" wrote, by libbpf and ../libbpf/bpfprologue.h. With libbpf-rs, the
//! pointer is that of `AsRawLibbpf::as_libbpf_object`.
use std::ffi::c_void;
use std::io::Error;
use std::os::raw::c_int;

/// A struct bpf_object.
pub type Object = c_void;

#[repr(C)]
struct Raw {
    links: *mut c_void,
    count: c_int,
    probes: c_int,
    refused: c_int,
    error: c_int,
}

extern "C" {
    fn prologue_prepare(object: *mut Object) -> c_int;
    fn prologue_attach(object: *mut Object, pid: c_int, to: *mut Raw) -> c_int;
    fn prologue_detach(from: *mut Raw);
}

/// Probes, until they are dropped.
pub struct Attached(Raw);

/// Turns a result of libbpf into one of Rust.
pub fn check(result: c_int) -> Result<(), Error> {
    if result < 0 {
        return Err(Error::from_raw_os_error(-result));
    }
    Ok(())
}

/// Is called before an object is loaded. The error is ESTALE if a file or the kernel is another build than that the object is for.
///
/// # Safety
/// The pointer is that of an open object.
pub unsafe fn prepare(object: *mut Object) -> Result<(), Error> {
    check(prologue_prepare(object))
}

impl Attached {
    /// Attaches all programs of a loaded object at all their sites: for a process, for this one with `Some(0)`, for all with `None`. A
    /// kernel's probes have no process.
    ///
    /// # Safety
    /// The pointer is that of a loaded object, which outlives the probes.
    pub unsafe fn new(object: *mut Object, pid: Option<i32>) -> Result<Attached, Error> {
        let mut a = Attached(Raw { links: std::ptr::null_mut(), count: 0, probes: 0, refused: 0, error: 0 });
        check(prologue_attach(object, pid.unwrap_or(-1), &mut a.0))?;
        Ok(a)
    }

    /// How many sites have a probe.
    pub fn probes(&self) -> i32 {
        self.0.probes
    }

    /// How many sites the kernel refused.
    pub fn refused(&self) -> i32 {
        self.0.refused
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        unsafe { prologue_detach(&mut self.0) }
    }
}
