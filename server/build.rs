//! The migrations are embedded by a macro: a change to them alone must build the server anew.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
    println!("cargo:rerun-if-changed=../static");
}
