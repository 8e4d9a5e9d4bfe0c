#pragma once
// Which file is read next: once through the files that are there, or on and on as they grow, come
// and are rotated.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connectors/file_catalog.h"
#include "connectors/file_reader.h"

namespace flow::files {

// One pass over one file. reader null: nothing to read now.
struct Turn {
  FileReader* reader = nullptr;
  Tail tail = Tail::read;
};

struct AgendaProgress {
  std::optional<std::uint64_t> total;  // bytes of the files
  std::optional<std::uint64_t> done;
  std::string waiting_for;
};

// Owner: the source; the readers are the agenda's. Threads: one.
class Agenda {
 public:
  virtual ~Agenda() = default;
  virtual Result<Turn> next() = 0;
  // The pass that next() gave has come to its end.
  virtual void passed(FileReader& reader) = 0;
  // No file will come any more.
  virtual bool finished() const = 0;
  // Spans without records: positions that go on under another name. They are to be committed before
  // or with anything read under the old name.
  virtual Spans take_relocated() = 0;
  virtual AgendaProgress progress() const = 0;
};

struct AgendaSetup {
  const FileSourceSpec* spec = nullptr;
  ReaderSetup reader;
  std::vector<Known> known;
};

// Reports what was found. Errors: nothing there, unreadable, cut files; before anything is read.
Result<std::unique_ptr<Agenda>> make_bounded_agenda(AgendaSetup setup);
// Waits for what is not there yet.
Result<std::unique_ptr<Agenda>> make_follow_agenda(AgendaSetup setup);

// Shared by both: a cut file refuses the run; the span of a file that goes on under another name.
Result<void> refuse_cut(const Survey& survey);
std::optional<Span> relocated(const Found& found, const std::vector<Known>& known);
std::unique_ptr<FileReader> make_reader(const ReaderSetup& setup, Found found,
                                        const std::vector<Known>& known);

}  // namespace flow::files
