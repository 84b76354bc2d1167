#pragma once

// What a completion queue hands back: how to go on when an operation has ended.
class Continuation {
 public:
  virtual void Resume(bool ok) = 0;

  // For the queue; it comes back as a `Continuation*`.
  void* tag() { return this; }

 protected:
  ~Continuation() = default;
};

// Goes on with a method of the object that began the operation.
template <class Owner, void (Owner::*kMethod)(bool ok)>
class Then final : public Continuation {
 public:
  explicit Then(Owner* owner) : owner_(owner) {}
  void Resume(bool ok) override { (owner_->*kMethod)(ok); }

 private:
  Owner* owner_;
};
