// Structures, references, slices, strings, options, methods, traits.
use crate::truth::{random, sink};

#[derive(Clone, Copy)]
pub struct Point {
    x: i64,
    y: i64,
}

#[derive(Clone, Copy)]
pub struct Small {
    a: i32,
    b: i16,
    c: u8,
}

#[derive(Clone, Copy)]
pub struct Large {
    a: [i64; 4],
    n: i32,
}

#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Colour {
    Red = 1,
    Green = 200,
}

trait Area {
    fn area(&self, unit: i64) -> i64;
}

struct Square {
    side: i64,
}

impl Area for Square {
    // trace: area side=self->side unit
    #[inline(never)]
    fn area(&self, unit: i64) -> i64 {
        self.side.wrapping_mul(self.side).wrapping_mul(unit)
    }
}

impl Point {
    // trace: shifted x=self->x y=self->y by
    #[inline]
    fn shifted(&mut self, by: i64) -> i64 {
        self.x = self.x.wrapping_add(by);
        sink(self.x);
        self.y
    }

    // trace: by_value x=self.x y=self.y k
    #[inline]
    fn by_value(self, k: i64) -> i64 {
        sink(k);
        self.x ^ self.y
    }
}

// trace: point_of x=p.x y=p.y k
#[inline(never)]
fn point_of(p: Point, k: i64) -> i64 {
    p.x.wrapping_mul(k) ^ p.y
}

// trace: point_ref x=p->x y=p->y k
#[inline(never)]
fn point_ref(p: &Point, k: i64) -> i64 {
    p.x.wrapping_mul(k) ^ p.y
}

// trace: point_ref_in x=p->x y=p->y k
#[inline]
fn point_ref_in(p: &Point, k: i64) -> i64 {
    sink(p.x);
    p.y.wrapping_add(k)
}

// trace: small_of a=s.a b=s.b c=s.c k
#[inline(never)]
fn small_of(s: Small, k: i32) -> i32 {
    s.a.wrapping_mul(k) + s.b as i32 - s.c as i32
}

// trace: small_in a=s.a b=s.b c=s.c k
#[inline]
fn small_in(s: Small, k: i32) -> i32 {
    sink(s.b as i64);
    s.a.wrapping_add(k).wrapping_sub(s.c as i32)
}

// trace: large_of a1=l.a[1] n=l.n
#[inline(never)]
fn large_of(l: Large) -> i64 {
    l.a[1].wrapping_add(l.n as i64)
}

// trace: large_in a0=l.a[0] a1=l.a[1] n=l.n k
#[inline]
fn large_in(l: Large, k: i64) -> i64 {
    sink(l.n as i64);
    l.a[0].wrapping_mul(k) ^ l.a[1]
}

// trace: slice_of at=s.data_ptr length=s.length first=s.data_ptr[0] k
#[inline(never)]
fn slice_of(s: &[i64], k: i64) -> i64 {
    s.iter().fold(k, |sum, v| sum.wrapping_add(*v))
}

// trace: slice_in length=s.length first=s.data_ptr[0] k
#[inline]
fn slice_in(s: &[i64], k: i64) -> i64 {
    sink(k);
    s[0] ^ s.len() as i64
}

// trace: text_of length=t.length at=t.data_ptr k
#[inline(never)]
fn text_of(t: &str, k: i64) -> i64 {
    t.len() as i64 ^ k
}

// trace: text_in length=t.length k
#[inline]
fn text_in(t: &str, k: i64) -> i64 {
    sink(k);
    t.len() as i64
}

// trace: colour_of c k
#[inline]
fn colour_of(c: Colour, k: i64) -> i64 {
    sink(k);
    c as i64
}

// trace: tuple a=t.__0 b=t.__1 k
#[inline(never)]
fn tuple(t: (i64, i32), k: i64) -> i64 {
    t.0 ^ t.1 as i64 ^ k
}

// trace: change v=p[0] by
#[inline]
fn change(p: &mut i64, by: i64) {
    *p = p.wrapping_add(by);
    sink(*p);
}

// trace: boxed x=b->x k
#[inline(never)]
fn boxed(b: Box<Point>, k: i64) -> i64 {
    b.x ^ k
}

fn points() {
    let mut p = Point { x: random(), y: random() };
    let k = random();
    open!();
    run!("point_of", x = p.x, y = p.y, k = k);
    call!(point_of(Point { x: hide!(p.x), y: hide!(p.y) }, hide!(k)));

    open!();
    run!("point_ref", x = p.x, y = p.y, k = k);
    call!(point_ref(&p, hide!(k)));

    open!();
    run!("point_ref_in", x = p.x, y = p.y, k = k);
    call!(point_ref_in(&Point { x: hide!(p.x), y: hide!(p.y) }, hide!(k)));

    open!();
    run!("by_value", x = p.x, y = p.y, k = k);
    call!(Point { x: hide!(p.x), y: hide!(p.y) }.by_value(hide!(k)));

    open!();
    run!("shifted", x = p.x, y = p.y, by = k);
    keep!(&p);
    call!(p.shifted(hide!(k)));

    open!();
    run!("boxed", x = p.x, k = k);
    call!(boxed(Box::new(p), hide!(k)));

    let square = Square { side: random() };
    let any: &dyn Area = &square;
    open!();
    run!("area", side = square.side, unit = k);
    keep!(&square);
    call!(any.area(hide!(k)));
}

fn others() {
    let s = Small { a: random() as i32, b: random() as i16, c: random() as u8 };
    let k = random();
    open!();
    run!("small_of", a = s.a, b = s.b, c = s.c, k = k as i32);
    call!(small_of(Small { a: hide!(s.a), b: hide!(s.b), c: s.c }, hide!(k) as i32));

    open!();
    run!("small_in", a = s.a, b = s.b, c = s.c, k = k as i32);
    call!(small_in(Small { a: hide!(s.a), b: hide!(s.b), c: s.c }, hide!(k) as i32));

    let l = Large { a: [random(), random(), 3, 4], n: random() as i32 };
    open!();
    run!("large_of", a1 = l.a[1], n = l.n);
    keep!(&l);
    call!(large_of(l));

    open!();
    run!("large_in", a0 = l.a[0], a1 = l.a[1], n = l.n, k = k);
    keep!(&l);
    call!(large_in(l, hide!(k)));

    let items = [random(), random(), random()];
    open!();
    run!("slice_of", at = items.as_ptr() as usize, length = 3, first = items[0], k = k);
    keep!(&items);
    call!(slice_of(&items, hide!(k)));

    open!();
    run!("slice_in", length = 2, first = items[1], k = k);
    keep!(&items);
    call!(slice_in(&items[1..], hide!(k)));

    let text = "a text of the image";
    open!();
    run!("text_of", length = text.len(), at = text.as_ptr() as usize, k = k);
    call!(text_of(text, hide!(k)));

    open!();
    run!("text_in", length = text.len(), k = k);
    call!(text_in(text, hide!(k)));

    let c = if k & 1 == 0 { Colour::Red } else { Colour::Green };
    open!();
    run!("colour_of", c = c, k = k);
    call!({
        let k = hide!(k);
        colour_of(if k & 1 == 0 { Colour::Red } else { Colour::Green }, k)
    });

    open!();
    run!("tuple", a = k, b = s.a, k = 5);
    call!(tuple((hide!(k), hide!(s.a)), 5));

    let mut v = random();
    open!();
    run!("change", v = v, by = k);
    call!({
        v = hide!(v);
        change(&mut v, hide!(k));
        v
    });
}

pub fn all() {
    for _ in 0..10 {
        points();
        others();
    }
}
