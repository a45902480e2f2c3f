//! The memory of searches: the query log of a server, and the views and questions of docs/sql.md.

mod query_log;
mod sql;
