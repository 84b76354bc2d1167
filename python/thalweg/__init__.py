"""gRPC on Thalweg's transport. `thalweg.grpc` has grpcio's interface."""
