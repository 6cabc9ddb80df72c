// Functions: inlined and not, narrow types, many arguments, loops, recursion, generics, closures.
use crate::truth::{random, sink, sunk};

// trace: add a b
#[inline(never)]
fn add(a: i32, b: i32) -> i32 {
    a.wrapping_mul(3).wrapping_add(b)
}

// trace: add_in a b
#[inline]
fn add_in(a: i64, b: i64) -> i64 {
    sink(a);
    a ^ b
}

// trace: narrow flag c s us b ch
#[inline(never)]
fn narrow(flag: bool, c: i8, s: i16, us: u16, b: u8, ch: char) -> i64 {
    let r = c as i64 + s as i64 * us as i64 - b as i64;
    if flag {
        r + ch as i64 + sunk()
    } else {
        r
    }
}

// trace: narrow_in flag c s us b ch
#[inline(always)]
fn narrow_in(flag: bool, c: i8, s: i16, us: u16, b: u8, ch: char) -> i64 {
    sink(s as i64);
    if flag {
        c as i64 + ch as i64
    } else {
        us as i64 - b as i64
    }
}

// trace: many a b c d e f g h
#[inline(never)]
fn many(a: i64, b: i32, c: u64, d: i16, e: i64, f: u32, g: i64, h: i8) -> i64 {
    a.wrapping_add(b as i64).wrapping_mul(c as i64).wrapping_sub(d as i64) ^ e.wrapping_add(f as i64) ^ g.wrapping_mul(h as i64)
}

// trace: down n step
#[inline]
fn down(mut n: u32, mut step: u32) -> u32 {
    let mut r = 0u32;
    while n > 0 {
        n -= 1;
        r = r.wrapping_mul(3).wrapping_add(step);
        sink(r as i64);
        step = step.wrapping_add(n);
    }
    r
}

// trace: visit v i
#[inline]
fn visit(v: i64, i: usize) {
    sink(v.wrapping_add(i as i64));
}

// trace: visit_all n
#[inline(never)]
fn visit_all(items: &[i64], n: usize) {
    for (i, v) in items.iter().enumerate().take(n) {
        visit(*v, i);
    }
}

// trace: factorial n
#[inline(never)]
fn factorial(n: u64) -> u64 {
    if n < 2 {
        1
    } else {
        n.wrapping_mul(factorial(n - 1))
    }
}

// trace: tail n sum
fn tail(n: u32, sum: u64) -> u64 {
    sink(sum as i64);
    if n == 0 {
        return sum;
    }
    tail(n - 1, sum.wrapping_mul(3).wrapping_add(n as u64))
}

// trace greater: greater* a b
#[inline]
fn greater<T: PartialOrd + Copy + Into<i64>>(a: T, b: T) -> T {
    sink(a.into());
    if a > b {
        a
    } else {
        b
    }
}

// trace: apply k
#[inline]
fn apply<F: Fn(i64) -> i64>(f: F, k: i64) -> i64 {
    sink(k);
    f(k)
}

// trace: applied v by
#[inline]
fn applied(v: i64, by: i64) -> i64 {
    sink(by);
    v.wrapping_mul(by)
}

// trace: apply_dyn k
#[inline(never)]
fn apply_dyn(f: &dyn Fn(i64) -> i64, k: i64) -> i64 {
    f(k)
}

// trace: mode_of mode x
#[inline(never)]
fn mode_of(mode: i32, x: i64) -> i64 {
    sink(x);
    if mode == 5 {
        x.wrapping_mul(7)
    } else {
        x
    }
}

// trace: wide w lo
#[inline(never)]
fn wide(w: u128, lo: u64) -> u64 {
    (w >> 64) as u64 ^ w as u64 ^ lo
}

fn numbers() {
    let (a, b) = (random() as i32, random() as i32);
    let (x, y) = (random(), random());
    open!();
    run!("add", a = a, b = b);
    call!(add(hide!(a), hide!(b)));

    open!();
    run!("add_in", a = x, b = y);
    call!(add_in(hide!(x), hide!(y)));

    open!();
    run!("add_in", a = 7, b = y);
    call!(add_in(7, hide!(y)));

    open!();
    run!("mode_of", mode = 5, x = x);
    call!(mode_of(5, hide!(x)));

    let flag = x & 2 != 0;
    let ch = char::from_u32((y & 0xfff) as u32).unwrap_or('x');
    open!();
    run!("narrow", flag = flag, c = x as i8, s = y as i16, us = x as u16, b = y as u8, ch = ch);
    call!({
        let x = hide!(x);
        let y = hide!(y);
        narrow(x & 2 != 0, x as i8, y as i16, x as u16, y as u8, ch)
    });

    open!();
    run!("narrow_in", flag = flag, c = x as i8, s = y as i16, us = x as u16, b = y as u8, ch = ch);
    call!({
        let x = hide!(x);
        let y = hide!(y);
        narrow_in(x & 2 != 0, x as i8, y as i16, x as u16, y as u8, ch)
    });

    open!();
    run!("many", a = x, b = b, c = y as u64, d = x as i16, e = y, f = a as u32, g = x.wrapping_add(1), h = y as i8);
    call!({
        let x = hide!(x);
        let y = hide!(y);
        many(x, hide!(b), y as u64, x as i16, y, hide!(a) as u32, x.wrapping_add(1), y as i8)
    });

    open!();
    run!("wide", lo = x);
    call!(wide((hide!(x) as u128) << 70 | y as u64 as u128, hide!(x) as u64));
}

fn loops() {
    let n = (random() as u32) % 4;
    let step = random() as u32;
    let items = [random(), random(), random(), random(), random()];
    let count = 2 + (random() as usize) % 4;
    open!();
    run!("down", n = n, step = step);
    call!(down(hide!(n), hide!(step)));

    open!();
    run!("down", n = 3, step = step);
    call!(down(3, hide!(step)));

    open!();
    run!("visit_all", n = count);
    for i in 0..count {
        run!("visit", v = items[i], i = i);
    }
    call!(visit_all(&items, hide!(count)));

    open!();
    for i in (1..=n as u64 + 1).rev() {
        run!("factorial", n = i);
    }
    call!(factorial(hide!(n as u64 + 1)));

    open!();
    let mut sum = 1u64;
    for i in (0..=n).rev() {
        run!("tail", n = i, sum = sum);
        sum = sum.wrapping_mul(3).wrapping_add(i as u64);
    }
    call!(tail(hide!(n), hide!(1u64)));
}

fn generics() {
    let (x, y, k) = (random(), random(), random());
    let (a, b) = (random() as i16, random() as i16);
    open!();
    run!("greater", a = x, b = y);
    call!(greater(hide!(x), hide!(y)));

    open!();
    run!("greater", a = a, b = b);
    call!(greater(hide!(a), hide!(b)));

    open!();
    run!("apply", k = k);
    run!("applied", v = k, by = x);
    call!({
        let x = hide!(x);
        apply(|v| applied(v, x), hide!(k))
    });

    open!();
    run!("apply_dyn", k = k);
    run!("applied", v = k, by = y);
    call!({
        let y = hide!(y);
        apply_dyn(&|v| applied(v, y), hide!(k))
    });
}

pub fn all() {
    for _ in 0..10 {
        numbers();
        loops();
        generics();
    }
}
