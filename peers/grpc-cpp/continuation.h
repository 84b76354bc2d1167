#pragma once

// The continuation of an operation, as returned by a completion queue.
class Continuation {
 public:
  virtual void Resume(bool ok) = 0;

  // Tag for the queue, which returns it as a `Continuation*`.
  void* tag() { return this; }

 protected:
  ~Continuation() = default;
};

// Continues with a method of the object that started the operation.
template <class Owner, void (Owner::*kMethod)(bool ok)>
class Then final : public Continuation {
 public:
  explicit Then(Owner* owner) : owner_(owner) {}
  void Resume(bool ok) override { (owner_->*kMethod)(ok); }

 private:
  Owner* owner_;
};
