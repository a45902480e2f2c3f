//! Names in the API for states and kinds that other rooms own, which only describe the values in the OpenAPI file: those
//! rooms do not know it. And boxes of lines on screen.

use serde::Serialize;
use utoipa::ToSchema;

use crate::catalog::CueBox;

/// State of a video. `pending`: stored, not yet searchable. `ready`: searchable. `failed`: the ingest failed; its job has
/// the reason.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes values in the OpenAPI file")]
#[schema(as = VideoState, rename_all = "snake_case")]
pub(super) enum VideoStateName {
    Pending,
    Ready,
    Failed,
}

/// Level of a span. `video`: the full video. `clip`: a part of it. `moment`: a window of 1, 2 or 4 s inside a clip.
/// `passage`: about half a minute of subtitles.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes values in the OpenAPI file")]
#[schema(as = Level, rename_all = "snake_case")]
pub(super) enum LevelName {
    Video,
    Clip,
    Moment,
    Passage,
}

/// Kind of a track. `speech`: spoken words. `caption`: descriptions of the picture. `ocr`: text recognised in the picture.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes values in the OpenAPI file")]
#[schema(as = TrackKind, rename_all = "snake_case")]
pub(super) enum TrackKindName {
    Speech,
    Caption,
    Ocr,
}

/// Kind of a job. `ingest`: cuts a video into clips and encodes them. `fill`: adds missing vectors. `export`: makes a file of
/// ranges. `evaluation`: asks spaces the queries of an evaluation. `map`: makes a map of a space and level. `transcribe`: writes
/// down speech. `read_text`: reads text on screen. `caption` and `reindex` are reserved.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes values in the OpenAPI file")]
#[schema(as = JobKind, rename_all = "snake_case")]
pub(super) enum JobKindName {
    Ingest,
    Fill,
    Transcribe,
    ReadText,
    Caption,
    Export,
    Reindex,
    Evaluation,
    Map,
}

/// State of a job. `queued`: waits for a worker or for its next attempt. `running`: a worker has it. `succeeded`, `failed`
/// and `cancelled`: it has ended.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes values in the OpenAPI file")]
#[schema(as = JobState, rename_all = "snake_case")]
pub(super) enum JobStateName {
    Queued,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

/// A right of an API key. `read`: search, and read videos, clips, jobs and counts. `write`: add, change and delete videos,
/// clips and subtitles. `admin`: everything, with keys, models and the audit log.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes values in the OpenAPI file")]
#[schema(as = Scope, rename_all = "snake_case")]
pub(super) enum ScopeName {
    Read,
    Write,
    Admin,
}

/// Training data of a model's weights. `nothing`: the weights are seeded noise. `rendered_clips`: rendered drawings of
/// sports. `unstated`: unknown.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes values in the OpenAPI file")]
#[schema(as = TrainedOn, rename_all = "snake_case")]
pub(super) enum TrainedOnName {
    Nothing,
    RenderedClips,
    Unstated,
}

/// Number format of a model's matrix products.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes values in the OpenAPI file")]
#[schema(as = Precision, rename_all = "snake_case")]
pub(super) enum PrecisionName {
    F32,
    Int8,
    Bf16,
    F16,
}

/// Kind of the vector engine.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes values in the OpenAPI file")]
#[schema(as = EngineKind, rename_all = "snake_case")]
pub(super) enum EngineKindName {
    Builtin,
    HnswRs,
    Pgvector,
    Milvus,
}

/// Kind of the database.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes values in the OpenAPI file")]
#[schema(as = DatabaseKind, rename_all = "snake_case")]
pub(super) enum DatabaseName {
    Sqlite,
    Postgres,
}

/// The bytes of a file.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes a body in the OpenAPI file")]
#[schema(value_type = String, format = Binary)]
pub(super) struct FileBytes(Vec<u8>);

/// Where a line stands on screen, as fractions of the picture, 0 to 1.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = TextBox)]
pub(super) struct BoxOut {
    /// The left edge, 0 to 1 of the picture's width.
    #[schema(minimum = 0, maximum = 1)]
    left: f64,
    /// The upper edge, 0 to 1 of the picture's height.
    #[schema(minimum = 0, maximum = 1)]
    top: f64,
    /// The width, 0 to 1 of the picture's.
    #[schema(minimum = 0, maximum = 1)]
    width: f64,
    /// The height, 0 to 1 of the picture's.
    #[schema(minimum = 0, maximum = 1)]
    height: f64,
}

impl From<CueBox> for BoxOut {
    fn from(of: CueBox) -> BoxOut {
        let CueBox { left, top, width, height } = of;
        BoxOut { left, top, width, height }
    }
}

#[cfg(test)]
mod tests {
    use reprise_encoders::{Precision, TrainedOn};
    use serde_json::{Value, json};
    use utoipa::PartialSchema;

    use super::*;
    use crate::catalog::{CueKind, JobName, JobState, Scope, VideoState};
    use crate::terms::Level;
    use crate::vectors::EngineKind;

    #[track_caller]
    fn check<Name: PartialSchema>(values: Value) {
        assert_eq!(json!(Name::schema())["enum"], values);
    }

    #[test]
    fn the_contract_names_the_values_of_the_other_rooms() {
        check::<VideoStateName>(json!([VideoState::Pending, VideoState::Ready, VideoState::Failed]));
        check::<LevelName>(json!([Level::Video, Level::Clip, Level::Moment, Level::Passage]));
        check::<TrackKindName>(json!([CueKind::Speech, CueKind::Caption, CueKind::Ocr]));
        check::<JobKindName>(json!(JobName::ALL));
        check::<JobStateName>(json!(JobState::ALL));
        check::<ScopeName>(json!(Scope::ALL));
        check::<TrainedOnName>(json!([TrainedOn::Nothing, TrainedOn::RenderedClips, TrainedOn::Unstated]));
        check::<PrecisionName>(json!([Precision::F32, Precision::Int8, Precision::Bf16, Precision::F16]));
        let engines = [EngineKind::Builtin, EngineKind::HnswRs, EngineKind::Pgvector, EngineKind::Milvus];
        check::<EngineKindName>(json!(engines.map(EngineKind::name)));
    }
}

/// What was done with a hit. `opened`: it was looked at. `relevant`, `not_relevant`: it is what was sought, or it is not; the
/// later one holds. `exported`: it was taken out of the library.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes values in the OpenAPI file")]
#[schema(as = Verdict, rename_all = "snake_case")]
pub(super) enum VerdictName {
    Opened,
    Relevant,
    NotRelevant,
    Exported,
}
