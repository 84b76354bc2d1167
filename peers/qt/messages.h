#pragma once

#include <string>

#include "grpc/testing/messages.qpb.h"

// Creates a request of `size` bytes for a response of `response_size` bytes. With 0 there is no payload: an empty
// message.
inline grpc::testing::SimpleRequest MakeRequest(int size, int response_size) {
  grpc::testing::SimpleRequest request;
  request.setResponseSize(response_size);
  if (size > 0) {
    grpc::testing::Payload payload;
    payload.setBody(QByteArray(size, '\0'));
    request.setPayload(std::move(payload));
  }
  return request;
}

// Returns what is wrong with a reply to a request for `expected` payload bytes; empty if nothing.
inline std::string WrongSize(const grpc::testing::SimpleResponse& response, int expected) {
  const qsizetype got = response.hasPayload() ? response.payload().body().size() : 0;
  if (got == expected) return {};
  return "a reply of " + std::to_string(expected) + " bytes was asked for, " + std::to_string(got) + " came";
}

// The same for the last reply of a call.
inline std::string WrongResponse(const QGrpcOperation& call, int expected) {
  const auto response = call.read<grpc::testing::SimpleResponse>();
  return response ? WrongSize(*response, expected) : "a reply came that is none";
}
