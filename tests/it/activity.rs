//! The memory of searches: the query log of a server, what can be learned from it, and the views and questions of docs/sql.md.

mod query_log;
mod sql;
mod training;
