//! Runs a command while the program of ../libbpf/count.bpf.c counts: count ./target
mod bpfprologue;

use bpfprologue::{check, prepare, Attached, Object};
use std::ffi::{c_void, CString};
use std::io::Error;
use std::os::raw::{c_char, c_int};

#[link(name = "bpf")]
extern "C" {
    fn bpf_object__open_file(path: *const c_char, options: *const c_void) -> *mut Object;
    fn bpf_object__load(object: *mut Object) -> c_int;
    fn bpf_object__close(object: *mut Object);
    fn bpf_object__find_map_by_name(object: *const Object, name: *const c_char) -> *mut c_void;
    fn bpf_map__get_next_key(map: *const c_void, key: *const i64, next: *mut i64, size: usize) -> c_int;
    fn bpf_map__lookup_elem(map: *const c_void, key: *const i64, key_size: usize, value: *mut i64, value_size: usize, flags: u64) -> c_int;
}

fn run(command: &str) -> Result<(), Error> {
    unsafe {
        let object = bpf_object__open_file(CString::new("count.o")?.as_ptr(), std::ptr::null());
        if object.is_null() {
            return Err(Error::last_os_error());
        }
        prepare(object)?;
        check(bpf_object__load(object))?;
        let attached = Attached::new(object, None)?;
        println!("{} probes, {} refused", attached.probes(), attached.refused());
        std::process::Command::new(command).status()?;
        let counts = bpf_object__find_map_by_name(object, CString::new("counts")?.as_ptr());
        let (mut hits, mut sum, mut last) = (0, 0, None);
        let (mut key, mut n) = (0i64, 0i64);
        while bpf_map__get_next_key(counts, last.as_ref().map_or(std::ptr::null(), |k| k), &mut key, 8) == 0 {
            check(bpf_map__lookup_elem(counts, &key, 8, &mut n, 8, 0))?;
            hits += n;
            sum += key * n;
            last = Some(key);
        }
        println!("{hits} hits, sum {sum}");
        drop(attached);
        bpf_object__close(object);
    }
    Ok(())
}

fn main() {
    let command = std::env::args().nth(1).expect("a command");
    if let Err(err) = run(&command) {
        eprintln!("count: {err}");
        std::process::exit(1);
    }
}
