"""Names of grpcio's native module that published packages import."""
