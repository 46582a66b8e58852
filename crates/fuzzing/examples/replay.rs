//! Runs kept inputs: `cargo run -p lasthop-fuzzing --example replay -- TARGET FILE…`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().and_then(|name| fuzzing::Target::named(&name));
    let Some(target) = target else {
        eprintln!("usage: replay TARGET FILE…, with TARGET one of");
        fuzzing::TARGETS.iter().for_each(|target| eprintln!("  {}", target.name));
        return ExitCode::from(2);
    };
    for file in arguments {
        match std::fs::read(&file) {
            Ok(bytes) => (target.run)(&bytes),
            Err(error) => {
                eprintln!("read {file}: {error}");
                return ExitCode::from(2);
            }
        }
        println!("{file}: no invariant breaks");
    }
    ExitCode::SUCCESS
}
