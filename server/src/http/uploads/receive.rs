//! The bytes of an upload: written while they arrive, durable before they are acknowledged. The last one makes the video.

use std::io;

use axum::body::Body;
use uuid::Uuid;

use super::super::add::{self, Asked};
use super::super::error::ApiError;
use super::super::extract::Pace;
use super::metadata::{self, Said};
use super::protocol::Checksum;
use crate::app::{App, Authorized};
use crate::catalog::{FinishedUpload, IdempotencyKey, PartialUpload};
use crate::library::{Library, SourceFile};
use crate::storage::PartFile;

/// Bytes after which what has arrived is made durable, if the request goes on.
const KEEP_EVERY: i64 = 8 << 20;

/// An upload whose file this request alone has.
pub(super) struct Receiver {
    app: Authorized,
    upload: PartialUpload,
    part: PartFile,
    /// Bytes in the file.
    arrived: i64,
}

impl Receiver {
    /// Takes the file of an unfinished upload.
    ///
    /// # Errors
    /// 423 if another request has it, 404 if the upload is gone by now, 409 if it is complete.
    pub(super) async fn take(app: &Authorized, upload: &PartialUpload) -> Result<Receiver, ApiError> {
        let id = upload.id;
        let part = lock(app, id).await?;
        // Another request may have written, finished or deleted it before the lock was taken.
        let upload = app.view().upload(id).await?;
        let Some(upload) = upload.filter(|upload| upload.made.is_none()) else {
            app.storage.remove_part(id).await?;
            return Err(ApiError::conflict("the upload was completed or deleted; ask for its offset"));
        };
        let arrived = upload.received;
        Ok(Receiver { app: app.clone(), upload, part, arrived })
    }

    /// The bytes that are durable.
    pub(super) fn offset(&self) -> i64 {
        self.upload.received
    }

    /// Appends a body. Returns the upload as it is then. If the body breaks off, what has arrived of it is kept, unless it
    /// has a checksum.
    ///
    /// # Errors
    /// 400, 408 or 413 for the body, 460 for its checksum, those of a plain upload after the last byte.
    pub(super) async fn append(
        mut self,
        body: Body,
        checksum: Option<Checksum>,
    ) -> Result<PartialUpload, ApiError> {
        let durable = u64::try_from(self.upload.received).unwrap_or_default();
        let length = self.part.length().await?;
        if length < durable {
            // Somebody has cut the file: the client sends the rest again.
            self.arrived = i64::try_from(length).unwrap_or(i64::MAX);
            self.keep().await?;
            return Err(ApiError::conflict("a part of the upload was lost; ask for its offset"));
        }
        // Bytes behind were never acknowledged.
        self.part.cut(durable).await?;
        let mut checksum = checksum;
        let filled = self.fill(body, &mut checksum).await;
        match (checksum.map(Checksum::holds), filled) {
            // Without its end nobody can check it.
            (Some(_), Err(error)) => return Err(error),
            (Some(false), Ok(())) => return Err(ApiError::wrong_checksum()),
            (_, Ok(())) if self.arrived == self.upload.length => return self.finish().await,
            (_, filled) => {
                // An empty part must not hold up the upload's end.
                if self.arrived > self.upload.received {
                    self.keep().await?;
                }
                filled?;
            }
        }
        Ok(self.upload)
    }

    /// Writes a body until it ends or the file is complete.
    async fn fill(&mut self, body: Body, checksum: &mut Option<Checksum>) -> Result<(), ApiError> {
        let (mut pace, mut body) = (Pace::start(), body.into_data_stream());
        while self.arrived < self.upload.length {
            let Some(piece) = pace.piece(&self.app.config, &mut body).await? else { return Ok(()) };
            let bytes = i64::try_from(piece.len()).unwrap_or(i64::MAX);
            if bytes > self.upload.length - self.arrived {
                return Err(too_long(&self.upload));
            }
            self.part.write(&piece).await?;
            self.arrived += bytes;
            match checksum {
                Some(checksum) => checksum.update(&piece),
                None if self.arrived - self.upload.received >= KEEP_EVERY
                    && self.arrived < self.upload.length =>
                {
                    self.keep().await?;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Makes what has arrived durable, and then the offset. The last byte's offset is stored with the video, so that an
    /// upload that is cut off in between is sent on and not taken for complete.
    ///
    /// # Errors
    /// 404 if the upload has expired.
    async fn keep(&mut self) -> Result<(), ApiError> {
        let arrived = self.arrived.min(self.upload.length - 1).max(0);
        self.part.sync().await?;
        let lasts = self.app.config.upload_bounds().lasts;
        let until = self.app.catalog.keep_received(self.upload.id, arrived, lasts).await?;
        let gone = || ApiError::not_found("the upload expired while its bytes came; begin again").at("id");
        self.upload.expires_at_ms = until.ok_or_else(gone)?;
        self.upload.received = arrived;
        Ok(())
    }

    /// Adds the complete file, as a plain upload does. A file that is refused takes its upload with it.
    pub(super) async fn finish(mut self) -> Result<PartialUpload, ApiError> {
        self.part.sync().await?;
        let id = self.upload.id;
        let made = match self.add().await {
            Ok(made) => made,
            Err(error) => {
                if error.is_of_file() {
                    self.app.catalog.delete_upload(id).await?;
                    self.app.storage.remove_part(id).await?;
                }
                return Err(error);
            }
        };
        self.app.catalog.finish_upload(id, &made).await?;
        self.app.storage.remove_part(id).await?;
        Ok(PartialUpload { received: self.upload.length, made: Some(made), ..self.upload })
    }

    async fn add(&self) -> Result<FinishedUpload, ApiError> {
        let received = self.app.storage.receive_part(&self.part).await?;
        let Said { file_name, details } = metadata::parse(&self.upload.metadata)?;
        let (file, upload) = (SourceFile::Received(received), Some(self.upload.id));
        let asked = Asked { file, named_by: "file", file_name, details, upload };
        let key = self.upload.repeat_key.clone();
        let key =
            key.map(|key| IdempotencyKey { key: add::owned(&self.app, key), request_hash: asked.hash() });
        let added = Library::of(&self.app).add(asked.upload(&self.app)?, key).await?;
        let (video, job) = (added.video.id, added.job.map(|job| job.id));
        Ok(FinishedUpload { video, job, duplicate: added.duplicate })
    }
}

pub(super) fn too_long(upload: &PartialUpload) -> ApiError {
    ApiError::too_large(format!("the upload has {} bytes in all", upload.length))
}

/// The file of an upload, for this request alone.
pub(super) async fn lock(app: &App, id: Uuid) -> Result<PartFile, ApiError> {
    app.storage.part(id).await.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => ApiError::locked(
            "another request is sending bytes of this upload; ask for its offset and try again",
        ),
        _ => error.into(),
    })
}
