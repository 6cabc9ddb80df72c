// A program whose output depends on nothing: traits, closures, strings, maps, panics that are caught, threads.
use std::collections::BTreeMap;

trait Shape {
    fn area(&self) -> f64;
    fn name(&self) -> String;
}
struct Square(f64);
struct Circle(f64);
impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
    fn name(&self) -> String {
        format!("square {}", self.0)
    }
}
impl Shape for Circle {
    fn area(&self) -> f64 {
        self.0 * self.0 * 3.25
    }
    fn name(&self) -> String {
        format!("circle {:>4}", self.0)
    }
}

#[inline(never)]
fn collatz(mut n: u64) -> u32 {
    let mut steps = 0;
    while n != 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

#[inline(never)]
fn sorted(n: u32) -> Vec<u32> {
    let mut v: Vec<u32> = (0..n).map(|i| i.wrapping_mul(7919) % 101).collect();
    v.sort_by(|a, b| b.cmp(a));
    v.dedup();
    v
}

#[inline(never)]
fn words(text: &str) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    for w in text.split_whitespace() {
        *out.entry(w.to_lowercase()).or_insert(0) += 1;
    }
    out
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(2.5)), Box::new(Circle(1.5)), Box::new(Square(4.0))];
    for s in &shapes {
        println!("{}: {:.3}", s.name(), s.area());
    }
    println!("{:?}", (1..30).map(collatz).collect::<Vec<_>>());
    println!("{:?}", sorted(200));
    println!("{:?}", words("the quick fox and The lazy dog and the end"));
    let caught = std::panic::catch_unwind(|| sorted(3)[50]);
    println!("{}", caught.is_err());
    let threads: Vec<_> = (1..4u64).map(|i| std::thread::spawn(move || (i..i + 50).map(collatz).sum::<u32>())).collect();
    println!("{:?}", threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>());
    let mut a = [0f32; 1000];
    for (i, x) in a.iter_mut().enumerate() {
        *x = (i as f32).sqrt() * 0.5;
    }
    println!("{:.4}", a.iter().sum::<f32>());
}
