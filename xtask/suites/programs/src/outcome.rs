/// What a driver says that went wrong.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
