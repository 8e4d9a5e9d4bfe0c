#pragma once
#include <string>

#include "tests/support/services.h"
#include "tests/support/temp_dir.h"

namespace flow::test {

// A Kafka or PostgreSQL of this test alone, for what must not happen to the shared ones: it may be
// killed, stopped, frozen and started again, on the same data and port. Owner: this object; the
// servers stop with it, and with this process however it ends. Errors: throws std::runtime_error
// with the message of scripts/services.
class OwnServer {
 public:
  enum class Kind { kafka, postgres };

  explicit OwnServer(Kind kind, std::string script = FLOW_SOURCE_DIR "/scripts/services");
  ~OwnServer();
  OwnServer(const OwnServer&) = delete;
  OwnServer& operator=(const OwnServer&) = delete;

  const Services& at() const { return at_; }

  void kill() const { control("kill"); }        // SIGKILL to all its processes
  void halt() const { control("halt"); }        // a clean stop; the data stay
  void restart() const { control("restart"); }  // returns when it answers again
  void freeze() const { control("freeze"); }    // SIGSTOP: connections stay open, nothing answers
  void thaw() const { control("thaw"); }

 private:
  void control(const std::string& what) const;

  TempDir dir_;
  std::string script_;
  std::string name_;
  Services at_;
};

}  // namespace flow::test
