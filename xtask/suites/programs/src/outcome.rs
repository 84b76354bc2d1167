/// Result of a driver.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
