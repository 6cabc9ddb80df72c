// What the program records with; see truth.h. Rust's black_box is newer than Debian's compiler,
// so values are hidden by assembly as in C.
use std::os::raw::c_char;

extern "C" {
    pub fn truth_open();
    pub fn truth_run(label: *const c_char);
    pub fn truth_int(name: *const c_char, value: u64);
    pub fn truth_start();
    pub fn truth_stop();
    pub fn truth_random() -> i64;
    pub fn truth_print();
}

pub static mut SINK: i64 = 0;

#[inline(always)]
pub fn sink(v: i64) {
    unsafe { core::ptr::write_volatile(core::ptr::addr_of_mut!(SINK), v) }
}

#[inline(always)]
pub fn sunk() -> i64 {
    unsafe { core::ptr::read_volatile(core::ptr::addr_of!(SINK)) }
}

pub fn random() -> i64 {
    unsafe { truth_random() }
}

// run!("label", a = value, ...) records a run.
#[macro_export]
macro_rules! run {
    ($label:expr $(, $name:ident = $value:expr)*) => {
        unsafe {
            crate::truth::truth_run(concat!($label, "\0").as_ptr() as *const std::os::raw::c_char);
            $(crate::truth::truth_int(concat!(stringify!($name), "\0").as_ptr() as *const std::os::raw::c_char, $value as u64);)*
        }
    };
}

// call!(expression) makes a call between the marks, and uses its result.
#[macro_export]
macro_rules! call {
    ($call:expr) => {{
        unsafe { crate::truth::truth_start() };
        let result = $call;
        keep!(&result);
        unsafe { crate::truth::truth_stop() };
    }};
}

#[macro_export]
macro_rules! open {
    () => {
        unsafe { crate::truth::truth_open() }
    };
}

#[macro_export]
macro_rules! keep {
    ($reference:expr) => {
        unsafe { core::arch::asm!("/* {0} */", in(reg) $reference as *const _ as usize) }
    };
}

// hide!(v) is v, unknown to the compiler from here. v has 16, 32 or 64 bits.
#[macro_export]
macro_rules! hide {
    ($value:expr) => {{
        let mut hidden = $value;
        unsafe { core::arch::asm!("/* {0} */", inout(reg) hidden) };
        hidden
    }};
}
