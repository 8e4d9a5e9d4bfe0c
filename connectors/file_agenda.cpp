#include "connectors/file_agenda.h"

namespace flow::files {

namespace {

// Each file once, in order, to its end as it is when it is reached.
class BoundedAgenda final : public Agenda {
 public:
  BoundedAgenda(AgendaSetup setup, Survey survey)
      : setup_(std::move(setup)), files_(std::move(survey.files)) {
    std::uint64_t total = 0;
    bool pipes = false;
    for (const Found& f : files_) {
      pipes = pipes || f.file.pipe;
      total += static_cast<std::uint64_t>(f.file.size);
      if (auto span = relocated(f, setup_.known)) relocated_.push_back(std::move(*span));
    }
    if (!pipes) total_ = total;
  }

  Result<Turn> next() override {
    if (at_ == files_.size()) return Turn{};
    reader_ = make_reader(setup_.reader, std::move(files_[at_++]), setup_.known);
    auto check = reader_->check();
    if (!check) return std::move(check).failure();
    if (*check == Check::shorter) {
      return cut_failure(reader_->path(), reader_->position(), reader_->size());
    }
    if (*check == Check::rewritten) {
      return Failure{.cls = FailureClass::setup,
                     .where = reader_->path(),
                     .what = "was written anew while the run was under way",
                     .hint = "run again: the files are looked at anew",
                     .exit = ExitCode::io};
    }
    return Turn{reader_.get(), Tail::read};
  }

  void passed(FileReader& reader) override {
    done_ += static_cast<std::uint64_t>(reader.raw_taken());
    reader_.reset();
  }

  bool finished() const override { return at_ == files_.size() && !reader_; }
  Spans take_relocated() override { return std::exchange(relocated_, {}); }

  AgendaProgress progress() const override {
    const auto now = reader_ ? static_cast<std::uint64_t>(reader_->raw_taken()) : 0U;
    return {total_, done_ + now, {}};
  }

 private:
  AgendaSetup setup_;
  std::vector<Found> files_;
  std::size_t at_ = 0;
  std::unique_ptr<FileReader> reader_;
  Spans relocated_;
  std::optional<std::uint64_t> total_;
  std::uint64_t done_ = 0;
};

}  // namespace

Result<void> refuse_cut(const Survey& survey) {
  for (const Found& f : survey.files) {
    if (f.placement.standing != Standing::cut) continue;
    return cut_failure(f.file.path, f.placement.position, f.file.size);
  }
  return {};
}

std::optional<Span> relocated(const Found& found, const std::vector<Known>& known) {
  const Standing standing = found.placement.standing;
  if (standing != Standing::moved && standing != Standing::copied) return std::nullopt;
  Identity identity = known[*found.placement.known].identity;
  identity.device = found.file.device;
  identity.inode = found.file.inode;
  const Position at{found.placement.position};
  return Span{{found.file.path, 0}, at, at, identity.text()};
}

std::unique_ptr<FileReader> make_reader(const ReaderSetup& setup, Found found,
                                        const std::vector<Known>& known) {
  std::optional<Identity> identity;
  if (found.placement.known && found.placement.position > 0) {
    identity = known[*found.placement.known].identity;
  }
  return std::make_unique<FileReader>(setup, std::move(found.file), found.placement, identity);
}

Result<std::unique_ptr<Agenda>> make_bounded_agenda(AgendaSetup setup) {
  auto found = survey(*setup.spec, setup.known);
  if (!found) return std::move(found).failure();
  if (!found->unmatched.empty()) return unmatched_failure(found->unmatched.front());
  if (auto r = refuse_cut(*found); !r) return std::move(r).failure();
  report(*found, setup.known, *setup.reader.log);
  return std::unique_ptr<Agenda>(
      std::make_unique<BoundedAgenda>(std::move(setup), std::move(*found)));
}

}  // namespace flow::files
