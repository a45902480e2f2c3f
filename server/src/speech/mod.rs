//! What this process writes down speech with: a model of `encoders`, or a client of a service. Both are one trait.

mod service;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use reprise_encoders::speech::{Silero, SpeechDetector, detector};
use reprise_encoders::transcriber::{Transcriber, TranscriberDescription};
use reprise_encoders::{LoadError, ModelName};

use crate::config::Config;
use service::{Service, Settings, WrongService};

/// What writes down speech in this process.
pub struct Speech {
    engine: Engine,
    description: TranscriberDescription,
    /// Silero's detector, if its file was given.
    silero: Option<Silero>,
}

enum Engine {
    /// A model in this process. One job at a time has it.
    Model(Arc<Mutex<Box<dyn Transcriber>>>),
    /// A service elsewhere. Each job has a client of its own.
    Service(Box<Service>),
}

/// Why speech can't be written down as the command line wants.
#[derive(Debug, thiserror::Error)]
pub enum SpeechError {
    /// The model did not load.
    #[error("--transcribe {model}: {error}")]
    Load {
        /// Name from the operator.
        model: String,
        /// The reason.
        error: LoadError,
    },
    /// Loading panicked. This is a defect of the service.
    #[error("--transcribe {0}: loading panicked")]
    Panicked(String),
    /// The voice activity detector did not load.
    #[error("--vad {file}: {error}")]
    Vad {
        /// The file.
        file: PathBuf,
        /// The reason.
        #[source]
        error: LoadError,
    },
    /// The address of the service can't be used.
    #[error("--transcribe-url {0}")]
    Service(#[from] WrongService),
}

impl Speech {
    /// Loads the model that the configuration names, or makes a client of its service; `None` if it names neither.
    ///
    /// # Errors
    /// See [`SpeechError`]. A service is not asked: it may start later.
    pub async fn open(config: &Config) -> Result<Option<Speech>, SpeechError> {
        // A wrong file is refused even where nobody transcribes.
        let silero = config.speech.vad.as_deref().map(open_silero).transpose()?;
        let (engine, description) = if let Some(model) = &config.speech.transcribe {
            load(model.clone(), config).await?
        } else {
            let Some(settings) = Settings::of(&config.speech)? else {
                if silero.is_some() {
                    tracing::warn!("--vad does nothing without --transcribe or --transcribe-url");
                }
                return Ok(None);
            };
            tracing::info!(host = settings.host(), model = settings.model, "speech is sent to a service");
            let service = Box::new(Service::new(settings));
            let description = service.description().clone();
            (Engine::Service(service), description)
        };
        Ok(Some(Speech { engine, description, silero }))
    }

    /// What it is.
    pub fn description(&self) -> &TranscriberDescription {
        &self.description
    }

    /// Finds speech in one video: by Silero's network if its file was given, else by loudness.
    pub fn detector(&self) -> Box<dyn SpeechDetector> {
        detector(self.silero.as_ref())
    }

    /// Whether it works on this machine, beside searches.
    pub fn is_local(&self) -> bool {
        matches!(self.engine, Engine::Model(_))
    }

    /// Whether it knows a language, by its BCP 47 tag. It knows all if it names none.
    pub fn knows(&self, language: &str) -> bool {
        let known = &self.description.languages;
        known.is_empty() || known.iter().any(|it| it == code_of(language))
    }

    /// Does `work` with the transcriber. Blocks; waits for the job before it.
    pub fn with<T>(&self, work: impl FnOnce(&mut dyn Transcriber) -> T) -> T {
        match &self.engine {
            // A panic left nothing half done that the next window reads.
            Engine::Model(model) => work(&mut **model.lock().unwrap_or_else(PoisonError::into_inner)),
            Engine::Service(service) => work(&mut *service.clone()),
        }
    }
}

async fn load(model: ModelName, config: &Config) -> Result<(Engine, TranscriberDescription), SpeechError> {
    let (options, name) = (config.load_options(), model.to_string());
    let load = move || reprise_encoders::load_transcriber(&model, &options);
    let loaded = tokio::task::spawn_blocking(load).await;
    let loaded = loaded.map_err(|_| SpeechError::Panicked(name.clone()))?;
    let transcriber = loaded.map_err(|error| SpeechError::Load { model: name, error })?;
    let description = transcriber.description().clone();
    Ok((Engine::Model(Arc::new(Mutex::new(transcriber))), description))
}

fn open_silero(file: &Path) -> Result<Silero, SpeechError> {
    Silero::open(file).map_err(|error| SpeechError::Vad { file: file.to_owned(), error })
}

/// The part of a tag that models know: `en` of `en-GB`.
pub fn code_of(tag: &str) -> &str {
    tag.split('-').next().unwrap_or(tag)
}
