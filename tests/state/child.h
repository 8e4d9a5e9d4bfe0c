#pragma once
#include <functional>
#include <sys/types.h>

namespace flow::test {

// A process of its own that runs `work` and ends with its result; killed when this goes out of
// scope.
class Child {
 public:
  explicit Child(const std::function<int()>& work);
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill();  // SIGKILL, and waits for the end
  int wait();   // its exit code

 private:
  pid_t pid_;
};

}  // namespace flow::test
