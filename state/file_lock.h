#pragma once
// Locks as operating system locks on files, freed by the death of their holder whatever its pid
// was.
#include <string>

#include "state/session.h"

namespace flow {

// Locks in one directory, a file each, named by the lock. Shape: open-file-description locks, so
// two holders exclude each other inside one process too. A released lock takes its file away; one
// left by a killed process means nothing. Threads: any. Errors: a file system without locks is
// class setup.
class FileLocks final : public Locks {
 public:
  explicit FileLocks(std::string directory) : directory_(std::move(directory)) {}

  Result<std::unique_ptr<Lock>> take(const std::string& name, Millis wait) override;
  Result<bool> held(const std::string& name) override;
  Result<void> confirm() override { return {}; }

 private:
  std::string directory_;
};

// Any name as a file name: other characters than letters, digits, '.', '-' and '_' become %XX, a
// long one ends in its hash.
std::string lock_file_name(const std::string& name);

}  // namespace flow
