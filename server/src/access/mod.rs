//! Who may do what: API keys, callers, rates, and signed links to media.

mod caller;
mod downloads;
mod gate;
mod links;
mod token;

pub use caller::Caller;
pub use downloads::Downloads;
pub use gate::{Gate, Refusal};
pub use links::{Link, LinkSigner};
pub use token::KeyToken;
