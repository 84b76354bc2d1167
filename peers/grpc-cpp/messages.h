#pragma once

#include <grpcpp/support/status.h>

#include "common/load_options.h"
#include "grpc/testing/messages.pb.h"

// Creates a request of `size` bytes for a response of `response_size` bytes. With 0 there is no payload: an empty
// message.
inline grpc::testing::SimpleRequest MakeRequest(int size, int response_size) {
  grpc::testing::SimpleRequest request;
  request.set_response_size(response_size);
  if (size > 0) request.mutable_payload()->mutable_body()->resize(static_cast<size_t>(size));
  return request;
}

// Resizes the payload of `response` to `size` bytes. Leaves it unchanged if it has that size already.
inline grpc::Status MakeResponse(int size, grpc::testing::SimpleResponse* response) {
  if (size < 0 || size > kPayloadBytesMax) {
    return {grpc::StatusCode::INVALID_ARGUMENT,
            "an answer of " + std::to_string(size) + " bytes was asked for; this server sends 0 to " +
                std::to_string(kPayloadBytesMax)};
  }
  if (size == 0) {
    response->clear_payload();
  } else if (response->payload().body().size() != static_cast<size_t>(size)) {
    response->mutable_payload()->mutable_body()->resize(static_cast<size_t>(size));
  }
  return grpc::Status::OK;
}

// Returns what is wrong with a reply to a request for `expected` payload bytes; empty if nothing.
inline std::string WrongSize(const grpc::testing::SimpleResponse& response, int expected) {
  const size_t got = response.payload().body().size();
  if (got == static_cast<size_t>(expected)) return {};
  return "a reply of " + std::to_string(expected) + " bytes was asked for, " + std::to_string(got) + " came";
}
