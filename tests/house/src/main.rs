//! `cargo run -p reprise-house`: prints faults of the source tree that the compiler does not report.
#![allow(clippy::print_stdout, reason = "it prints its findings")]

use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;

use reprise_house::{
    Circle, Fault, HouseError, Import, Imports, LISTS, PICTURE, Tree, breaches, faulty_fns, file_circles,
    packages, picture, room_circles, workspace,
};

/// Largest number of printed imports between two files.
const SHOWN_MOST: usize = 3;
const USAGE: &str = "usage: reprise-house [list | draw]

without an argument: prints import circles, functions with tuple parameters or too many, and imports through walls; fails if
    one is new
list: writes the lists of those still allowed, tests/it/tidy/allowed/*.txt, anew
draw: draws docs/house.svg anew";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => show(),
        ["list"] => write_lists(),
        ["draw"] => draw(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("reprise-house: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read() -> Result<Tree, HouseError> {
    let packages = packages(&workspace())?;
    Tree::of_packages(&workspace(), packages.iter().filter(|package| package.name != "reprise-tests"))
}

fn write_lists() -> Result<ExitCode, HouseError> {
    let tree = read()?;
    let imports = Imports::of(&tree);
    for list in &LISTS {
        list.write(&workspace(), &tree, &imports)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn draw() -> Result<ExitCode, HouseError> {
    let tree = read()?;
    fs::write(workspace().join(PICTURE), picture(&tree, &Imports::of(&tree)))?;
    Ok(ExitCode::SUCCESS)
}

fn show() -> Result<ExitCode, HouseError> {
    let tree = read()?;
    let imports = Imports::of(&tree);
    let rooms = room_circles(&imports.files);
    rooms.iter().for_each(|circle| show_circle("rooms", circle));
    let files = file_circles(&imports.files);
    files.iter().for_each(|circle| show_circle("files", circle));
    let faulty = faulty_fns(&tree);
    for found in &faulty {
        let fault = match found.fault {
            Fault::Tuple => "tuple parameter",
            Fault::TooMany => "more than five parameters",
        };
        println!("{}:{}: {}: {fault}", found.path, found.line, found.name);
    }
    let breaches = breaches(&imports);
    for breach in &breaches {
        println!("{}:{}: must not know {}: {}", breach.from, breach.line, breach.to, breach.text);
    }
    let differences = LISTS.iter().flat_map(|list| list.differences(&workspace(), &tree, &imports));
    let differences: Vec<String> = differences.collect();
    differences.iter().for_each(|difference| println!("{difference}"));
    println!(
        "{} circles of rooms, {} of files ({} files), {} faulty functions, {} imports through walls; {} differences \
         from the lists",
        rooms.len(),
        files.len(),
        files.iter().map(|circle| circle.members.len()).sum::<usize>(),
        faulty.len(),
        breaches.len(),
        differences.len(),
    );
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show_circle(kind: &str, circle: &Circle) {
    println!("circle of {} {kind}: {}", circle.members.len(), circle.members.join(" "));
    let mut pairs: BTreeMap<(&str, &str), Vec<&Import>> = BTreeMap::new();
    for import in &circle.imports {
        pairs.entry((&import.from, &import.to)).or_default().push(import);
    }
    for ((from, to), imports) in pairs {
        println!("  {from} -> {to}");
        for import in imports.iter().take(SHOWN_MOST) {
            println!("    {from}:{}: {}", import.line, import.text);
        }
        if imports.len() > SHOWN_MOST {
            println!("    and {} more", imports.len() - SHOWN_MOST);
        }
    }
}
