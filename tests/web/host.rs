//! The server of a visit: it can be killed and started again under the same address.

use std::cell::RefCell;
use std::rc::Rc;

use reprise_tests::server::Server;
use tempfile::TempDir;

/// A server with its data folder, which outlives the process.
pub(crate) struct Host {
    pub(crate) data: TempDir,
    pub(crate) base: String,
    arguments: Vec<&'static str>,
    server: RefCell<Option<Rc<Server>>>,
}

impl Host {
    pub(crate) fn start(arguments: impl Iterator<Item = &'static str>) -> Host {
        let data = tempfile::tempdir().expect("a temporary folder");
        let arguments: Vec<_> = arguments.collect();
        let server = Server::start(data.path(), &arguments);
        let base = server.base().to_owned();
        Host { data, base, arguments, server: RefCell::new(Some(Rc::new(server))) }
    }

    /// The running server.
    pub(crate) fn server(&self) -> Rc<Server> {
        Rc::clone(self.server.borrow().as_ref().expect("the server runs"))
    }

    /// Ends the process as `kill -9` does.
    pub(crate) fn kill(&self) {
        let server = self.server.take().expect("the server runs");
        Rc::into_inner(server).expect("nobody else uses it").kill();
    }

    /// Starts the killed server again, on the same address and data.
    pub(crate) fn restart(&self) {
        let address = self.base.trim_start_matches("http://");
        let server = Server::try_start_at(address, self.data.path(), &self.arguments, &[]);
        let server = server.unwrap_or_else(|said| panic!("the server did not start again:\n{said}"));
        self.server.replace(Some(Rc::new(server)));
    }

    /// The last lines of the server's log.
    pub(crate) fn last_lines(&self) -> String {
        let all = std::fs::read_to_string(self.data.path().join("server.log")).unwrap_or_default();
        let lines: Vec<&str> = all.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}
