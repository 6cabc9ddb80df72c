// What Rust adds: enums with values, slices, options, closures, generics, traits.
#![no_std]
#![crate_type = "lib"]

pub enum Shape {
    Empty,
    Circle { radius: u32 },
    Square(u16, u16),
    Named(&'static str, Option<u64>),
}

pub trait Area {
    fn area(&self) -> u64;
}

impl Area for Shape {
    #[inline(never)]
    fn area(&self) -> u64 {
        match self {
            Shape::Empty => 0,
            Shape::Circle { radius } => 3 * u64::from(*radius) * u64::from(*radius),
            Shape::Square(w, h) => u64::from(*w) * u64::from(*h),
            Shape::Named(name, scale) => name.len() as u64 * scale.unwrap_or(1),
        }
    }
}

#[inline(always)]
fn each<T: Copy, F: FnMut(T) -> u64>(all: &[T], mut f: F) -> u64 {
    let mut sum = 0u64;
    for v in all {
        sum = sum.wrapping_add(f(*v));
    }
    sum
}

#[inline(never)]
pub fn total(numbers: &[u32], by: (i8, bool), letter: char) -> u64 {
    let factor = u64::from(by.1) + letter as u64;
    each(numbers, |n| factor.wrapping_mul(u64::from(n)).wrapping_add(by.0 as u64))
}

#[inline(never)]
pub fn find(text: &str, what: u8) -> Option<usize> {
    text.bytes().position(|b| b == what)
}

#[no_mangle]
pub extern "C" fn entry(n: u32) -> u64 {
    let shapes = [Shape::Circle { radius: n }, Shape::Square(n as u16, 4), Shape::Named("x", find("abcdef", n as u8).map(|i| i as u64)), Shape::Empty];
    let dynamic: &dyn Area = &shapes[(n & 3) as usize];
    let mut sum = dynamic.area();
    for s in &shapes {
        sum = sum.wrapping_add(s.area());
    }
    sum.wrapping_add(total(&[n, 2, 3], (-1, n > 2), 'é'))
}
