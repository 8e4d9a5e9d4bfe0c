#include <stdexcept>
#include <unistd.h>
#include <vector>

#ifndef FLOW_SOURCE_DIR
#define FLOW_SOURCE_DIR "."  // only the test's own translation unit says where the scripts are
#endif
#include "tests/support/broker.h"
#include "tests/support/process.h"

namespace flow::test {
namespace {

void call(std::vector<std::string> argv) {
  const Finished finished = run({std::move(argv)}, std::chrono::minutes(4));
  if (finished.ended != Ended{0, 0}) throw std::runtime_error(finished.err + finished.out);
}

}  // namespace

OwnServer::OwnServer(Kind kind, std::string script)
    : script_(std::move(script)), name_(kind == Kind::kafka ? "kafka" : "postgres") {
  call({script_, "start", "--dir", dir_.path().string(), "--only", name_, "--owner",
        std::to_string(::getpid())});
  at_ = read_services(dir_ / "services.env");
}

OwnServer::~OwnServer() {
  try {
    call({script_, "stop", "--dir", dir_.path().string()});
  } catch (const std::exception&) {  // it also stops when this process ends
  }
}

void OwnServer::control(const std::string& what) const {
  call({script_, what, name_, "--dir", dir_.path().string()});
}

}  // namespace flow::test
