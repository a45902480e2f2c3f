//! A client of a running server, for the subcommands.

use anyhow::{Context, bail};
use clap::Args;
use reqwest::{RequestBuilder, Response};
use serde_json::Value;

use reprise_server::https;

/// Address and key of the server.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerArgs {
    /// Address of the running server
    #[arg(long, env = "REPRISE_SERVER", default_value = "http://127.0.0.1:8080")]
    pub(crate) server: String,
    /// Key of the server
    #[arg(long, env = "REPRISE_API_KEY", hide_env_values = true)]
    pub(crate) api_key: Option<String>,
}

/// A client of one server.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    key: Option<String>,
}

impl Client {
    pub(crate) fn new(args: &ServerArgs) -> anyhow::Result<Client> {
        // The user names the server. A proxy from the environment could not reach loopback.
        let http = https::client().no_proxy().build()?;
        let base = args.server.trim_end_matches('/').to_owned();
        Ok(Client { http, base, key: args.api_key.clone() })
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.with_key(self.http.get(format!("{}{path}", self.base)))
    }

    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.with_key(self.http.post(format!("{}{path}", self.base)))
    }

    fn with_key(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// Sends a request. Returns the answer's JSON, or the server's problem as an error.
    pub(crate) async fn json(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let response = self.send(request).await?;
        let status = response.status();
        let body: Value = response.json().await.context("the server's answer is not JSON")?;
        if !status.is_success() {
            bail!("{}", problem(&body, status.as_u16()));
        }
        Ok(body)
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        request.send().await.map_err(|error| {
            let said = if error.is_connect() {
                format!("no server answers at {}; start one with `reprise serve`", self.base)
            } else {
                format!("the server at {} broke off", self.base)
            };
            anyhow::Error::new(error).context(said)
        })
    }
}

fn problem(body: &Value, status: u16) -> String {
    let detail = body["detail"].as_str().unwrap_or("the server gave no reason");
    match body["errors"][0]["pointer"].as_str() {
        Some(pointer) => format!("{detail} (status {status}, at {pointer})"),
        None => format!("{detail} (status {status})"),
    }
}
