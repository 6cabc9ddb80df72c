// The program of docs/cookbook.md in Rust.
pub struct Customer {
    name: String,
    orders: Vec<u32>,
    phone: Option<u64>,
}

pub enum Payment {
    Cash,
    Card { number: u64, month: u8 },
}

#[inline(never)]
fn sell(who: &Customer, what: &str, paid: Payment) -> u64 {
    let base = match paid {
        Payment::Cash => 1,
        Payment::Card { number, month } => number % 7 + u64::from(month),
    };
    base + (who.name.len() + who.orders.len() + what.len()) as u64 + who.phone.unwrap_or(0)
}

// The program has an argument or none: which one is not known when it is compiled.
fn choose<T>(none: T, one: T) -> T {
    if std::env::args().count() == 1 {
        none
    } else {
        one
    }
}

fn main() {
    let ann = Customer { name: "ann".to_string(), orders: vec![1, 2, 3], phone: Some(555) };
    let bob = Customer { name: "bob".to_string(), orders: vec![], phone: None };
    let mut sum = sell(&ann, choose("tea", "cake"), Payment::Cash);
    sum += sell(&bob, choose("kettle", "pot"), choose(Payment::Card { number: 4711, month: 6 }, Payment::Cash));
    println!("{}", sum);
}
