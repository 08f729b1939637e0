use super::Call;
use crate::cluster::{ErrorCode, StoredContent};
use crate::gateway::route::Route;
use crate::gateway::shapes::ImageStoreContent;
use crate::gateway::wire::{Answer, ApiError};

pub(super) const ROUTES: &[Route] = &[
    Route::get("/ImageStore", root),
    Route::get("/ImageStore/{path*}", content),
    Route::put("/ImageStore/{path*}", upload).uploading(),
    Route::delete("/ImageStore/{path*}", delete),
    Route::post("/ImageStore/$/Copy", not_there),
    Route::get("/ImageStore/$/FolderSize", not_there),
    Route::get("/ImageStore/$/Info", not_there),
    Route::get("/ImageStore/$/GetUploadSession", not_there),
    Route::post("/ImageStore/$/CommitUploadSession", not_there),
    Route::delete("/ImageStore/$/DeleteUploadSession", not_there),
    Route::get("/ImageStore/{path*}/$/FolderSize", not_there),
    Route::get("/ImageStore/{path*}/$/GetUploadSession", not_there),
    Route::put("/ImageStore/{path*}/$/UploadChunk", not_there).uploading(),
];

fn root(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    listed(call, "")
}

fn content(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    listed(call, call.at("path"))
}

fn listed(call: &Call<'_>, path: &str) -> Result<Answer, ApiError> {
    let content: StoredContent = call.cluster.stored(path).ok_or_else(|| {
        let message = format!("the image store has nothing at '{path}'");
        ApiError::new(ErrorCode::FileNotFound, message)
    })?;
    Answer::json(&ImageStoreContent::new(&content, call.shared.epoch()))
}

fn upload(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let path = call.at("path").to_owned();
    call.cluster.upload(&path, call.size, call.body)?;
    Ok(Answer::done())
}

fn delete(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let path = call.at("path").to_owned();
    call.cluster.delete_upload(&path)?;
    Ok(Answer::done())
}

fn not_there(_: &mut Call<'_>) -> Result<Answer, ApiError> {
    Err(ApiError::new(
        ErrorCode::NotImplemented,
        "the image store of the emulator takes, lists and removes files; it has no copies, sizes and upload sessions",
    ))
}
