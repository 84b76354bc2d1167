#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>

#include "messages.h"
#include "write_batch.h"

// State of a server stream that answers every request. Requests are read ahead of the responses. A response with a
// successor is written with the buffer hint, so that both go out together. At most one read and one write are in
// flight; the caller starts them when told to.
class Echo {
 public:
  // A request has arrived, or (not `ok`) the requests have ended.
  void Read(bool ok, const grpc::testing::SimpleRequest& request) {
    reading_ = false;
    if (ok) {
      pending_.push_back(request.response_size());
    } else {
      has_ended_ = true;
    }
  }

  void Wrote(bool ok) {
    writing_ = false;
    is_broken_ = is_broken_ || !ok;
    if (is_broken_) pending_.clear();
  }

  // Returns true if a read is to start.
  bool BeginRead() {
    const bool begins = !reading_ && !has_ended_ && !is_broken_ && status_.ok() && pending_.size() < kAheadMax;
    reading_ = reading_ || begins;
    return begins;
  }

  // Returns true if a write of `response()` with `options()` is to start.
  bool BeginWrite() {
    if (writing_ || pending_.empty() || !status_.ok()) return false;
    const int size = pending_.front();
    pending_.pop_front();
    status_ = MakeResponse(size, &response_);
    if (status_.ok()) options_ = batch_.Next(size, pending_.empty());
    writing_ = status_.ok();
    return writing_;
  }

  // Returns true once, when the call is to be finished with `status()`.
  bool BeginFinish() {
    const bool is_over = (has_ended_ && pending_.empty()) || !status_.ok() || is_broken_;
    const bool begins = is_over && !reading_ && !writing_ && !finishing_;
    finishing_ = finishing_ || begins;
    return begins;
  }

  // A single response waits. Writing it now would cost a system call of its own, and another request may already be
  // there.
  bool MayWait() const { return !writing_ && !has_ended_ && pending_.size() == 1 && pending_.front() < kSmall; }

  const grpc::testing::SimpleResponse& response() const { return response_; }
  const grpc::Status& status() const { return status_; }

  // Options of the response taken by `BeginWrite`.
  grpc::WriteOptions options() const { return options_; }

 private:
  static constexpr size_t kAheadMax = 4096;
  // Responses of this size are worth a system call of their own.
  static constexpr int kSmall = 4096;

  std::deque<int> pending_;
  WriteBatch batch_;
  grpc::WriteOptions options_;
  grpc::testing::SimpleResponse response_;
  grpc::Status status_;
  bool reading_ = false;
  // The first write is the initial metadata, see WriteBatch.
  bool writing_ = true;
  bool has_ended_ = false;
  bool is_broken_ = false;
  bool finishing_ = false;
};
