// Runs of Rust's functions: iterators, closures, matches.
static mut SINK: i64 = 0;

fn keep(v: i64) {
    unsafe { std::ptr::addr_of_mut!(SINK).write_volatile(v) }
}

fn seen() -> i64 {
    unsafe { std::ptr::addr_of!(SINK).read_volatile() }
}

// What the compiler knows nothing of.
#[inline(never)]
fn hidden<T>(v: T) -> T {
    let at = std::ptr::addr_of!(v);
    let copy = unsafe { at.read_volatile() };
    std::mem::forget(v);
    copy
}

macro_rules! counters {
    ($($name:ident)*) => {
        $(#[no_mangle] pub static mut $name: u64 = 0;)*
        fn show() {
            $(println!("{} {}", stringify!($name).trim_start_matches("runs_"), unsafe { std::ptr::addr_of!($name).read_volatile() });)*
        }
    };
}

counters! {
    runs_straight runs_matched runs_summed runs_folded runs_early runs_option runs_nested runs_inner
    runs_looping runs_generic runs_called runs_dropped runs_checked runs_recursive runs_parsed
}

macro_rules! run {
    ($name:ident) => {
        unsafe { std::ptr::addr_of_mut!($name).write_volatile(std::ptr::addr_of!($name).read_volatile() + 1) }
    };
}

// trace: straight
#[inline(always)]
fn straight(a: i64, b: i64) {
    run!(runs_straight);
    keep(a + b);
}

// trace: matched
#[inline(always)]
fn matched(x: i64) -> i64 {
    run!(runs_matched);
    match x {
        0 => seen(),
        1 => 7,
        2 => {
            keep(3);
            9
        }
        3 => seen() * 5,
        4 | 5 => -x,
        6 => {
            keep(x);
            1
        }
        _ => x * 2,
    }
}

// trace: summed
#[inline(always)]
fn summed(v: &[i64]) -> i64 {
    let s = v.iter().map(|x| x ^ seen()).sum();
    run!(runs_summed);
    s
}

// trace: folded
#[inline(always)]
fn folded(v: &[i64]) -> i64 {
    run!(runs_folded);
    v.iter().enumerate().filter(|(i, _)| i & 1 == 0).fold(0, |a, (i, x)| a + x * i as i64)
}

// trace: early
#[inline(always)]
fn early(v: Option<&[i64]>, k: usize) -> i64 {
    run!(runs_early);
    let v = match v {
        Some(v) => v,
        None => return -1,
    };
    if k >= v.len() {
        return 0;
    }
    keep(v[k]);
    v[k]
}

// trace: option
#[inline(always)]
fn option(k: i64) -> Option<i64> {
    run!(runs_option);
    if k & 1 == 1 {
        return None;
    }
    Some(seen())
}

// trace: inner
#[inline(always)]
fn inner(k: i64) -> i64 {
    run!(runs_inner);
    k ^ seen()
}

// trace: nested
#[inline(always)]
fn nested(k: i64) -> i64 {
    let r = inner(k);
    run!(runs_nested);
    if k > 3 {
        return r;
    }
    r + inner(r)
}

// trace: looping
#[inline(always)]
fn looping(mut n: i64) -> i64 {
    let mut s = 0;
    while n > 0 {
        s += seen();
        n -= 1;
    }
    run!(runs_looping);
    s
}

// trace: generic*
#[inline(always)]
fn generic<T: std::ops::Add<Output = T> + Copy>(v: T) -> T {
    run!(runs_generic);
    v + v
}

// trace: called*
#[inline(always)]
fn called<F: FnMut(i64)>(n: i64, mut f: F) {
    run!(runs_called);
    for i in 0..n {
        f(i);
    }
}

struct Guard(i64);

impl Drop for Guard {
    // trace dropped: drop@main.rs
    #[inline(always)]
    fn drop(&mut self) {
        run!(runs_dropped);
        keep(self.0);
    }
}

// trace: checked
#[inline(always)]
fn checked(v: &[i64], k: usize) -> i64 {
    run!(runs_checked);
    let _guard = Guard(k as i64);
    v[k] + v[k + 1]
}

// trace: recursive
fn recursive(n: i64) -> i64 {
    run!(runs_recursive);
    if n < 2 {
        return 1;
    }
    n * recursive(n - 1)
}

// trace: parsed
#[inline(always)]
fn parsed(s: &str) -> Result<i64, std::num::ParseIntError> {
    run!(runs_parsed);
    let v: i64 = s.parse()?;
    keep(v);
    Ok(v + 1)
}

#[inline(never)]
fn work(k: i64, v: &[i64]) {
    straight(k, 3);
    for i in 0..k {
        straight(i, k);
        keep(matched(i));
    }
    for i in 0..8 {
        keep(matched(i));
    }
    keep(matched(k));
    keep(summed(&v[..k as usize]));
    keep(folded(v));
    keep(folded(&v[k as usize..]));
    keep(early(if k & 1 == 1 { None } else { Some(v) }, k as usize));
    keep(early(Some(v), 2));
    if let Some(x) = option(k) {
        keep(x);
    }
    keep((0..k).filter_map(option).sum());
    keep((0..k).map(nested).sum());
    keep(nested(k));
    keep(looping(k));
    keep(looping(2));
    keep(generic(k) + generic(2.5f64) as i64);
    called(k, |i| keep(i));
    called(3, |i| keep(generic(i)));
    keep(checked(v, k as usize));
    keep(recursive(k));
    keep(parsed("12").unwrap_or(0));
    keep(parsed(if k & 1 == 1 { "x" } else { "7" }).unwrap_or(-1));
}

fn main() {
    let v: Vec<i64> = (0..20).map(|i| i * 7 % 11).collect();
    for k in 0..12 {
        work(hidden(k), hidden(&v));
    }
    show();
}
