use tokio::signal;

/// Waits until somebody asks the program to stop: Ctrl-C, or SIGTERM where there is one. Where neither can be heard it waits for
/// good. Cancel-safe.
pub(super) async fn asked() {
    #[cfg(unix)]
    {
        let terminate = signal::unix::signal(signal::unix::SignalKind::terminate());
        if let Ok(mut terminate) = terminate {
            tokio::select! {
                _ = terminate.recv() => return,
                heard = signal::ctrl_c() => if heard.is_ok() { return },
            }
        }
    }
    #[cfg(not(unix))]
    if signal::ctrl_c().await.is_ok() {
        return;
    }
    std::future::pending().await
}
