// The program.
#[macro_use]
mod truth;
mod functions;
mod types;

fn main() {
    functions::all();
    types::all();
    unsafe { truth::truth_print() };
}
