#pragma once

#include <string>

#include "grpc/testing/messages.qpb.h"

// A request of `size` bytes that wants `response_size` bytes back. No payload for 0, so that an empty message is empty.
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

// What is wrong with a reply of which `asked` bytes of payload were asked for, empty: nothing.
inline std::string WrongSize(const grpc::testing::SimpleResponse& response, int asked) {
  const qsizetype got = response.hasPayload() ? response.payload().body().size() : 0;
  if (got == asked) return {};
  return "a reply of " + std::to_string(asked) + " bytes was asked for, " + std::to_string(got) + " came";
}

// The same of the last reply of a call.
inline std::string WrongReply(const QGrpcOperation& call, int asked) {
  const auto response = call.read<grpc::testing::SimpleResponse>();
  return response ? WrongSize(*response, asked) : "a reply came that is none";
}
