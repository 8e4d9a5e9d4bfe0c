// What `flow offsets inspect` and `flow check --connect` say about files.
#include "connectors/file_catalog.h"
#include "connectors/registry.h"

namespace flow {

namespace files {

namespace {

Identity identity_now(const Sighting& file) {
  Identity id;
  id.device = file.device;
  id.inode = file.inode;
  id.set_heads(file.head);
  return id;
}

std::string reason_for(const Found& found, const Known* known) {
  const std::string was = known != nullptr ? known->path : std::string();
  switch (found.placement.standing) {
    case Standing::fresh: return "new: no position is stored for it";
    case Standing::same: return "same: the file that the position was stored for";
    case Standing::moved: return "rotated: it was " + was;
    case Standing::copied: return "copied: the content of " + was + " in another inode";
    case Standing::truncated:
      return "truncated: same inode, other content; " + std::to_string(known->position) +
             " bytes were read before; the next run reads from its start";
    case Standing::replaced:
      return "replaced: another file under this name; " + std::to_string(known->position) +
             " bytes of the old one were read; the next run reads from its start";
    case Standing::cut: return "cut: shorter than what was read of it; the next run refuses it";
  }
  return {};
}

OffsetRow row_of(const Found& found, const std::vector<Known>& known) {
  const Sighting& file = found.file;
  const Placement& p = found.placement;
  const Known* by = p.known ? &known[*p.known] : nullptr;
  OffsetRow row;
  row.partition = {file.path, 0};
  if (file.pipe) {
    row.verdict = "no_position";
    row.reason = "a pipe keeps no position: each run reads all that comes";
    return row;
  }
  row.identity = identity_now(file).text();
  row.log_start = 0;
  row.reason = reason_for(found, by);
  if (by != nullptr) row.committed = row.state = by->position;
  const bool compressed = file.compression != Compression::none;
  const auto& ended = by != nullptr ? by->identity.ended : std::nullopt;
  if (!compressed) {
    row.high = file.size;
  } else if (ended && ended->position == p.position && ended->raw_size == file.size) {
    row.high = ended->position;
  } else {
    row.reason += "; compressed: how much is left is not known before it is unpacked";
  }
  if (p.standing == Standing::cut) {
    row.verdict = "blocked";
    return row;
  }
  if (row.high) row.lag = *row.high - p.position;
  if (by == nullptr) {
    row.verdict = row.lag == 0 ? "caught_up" : "no_position";
  } else {
    row.verdict = !row.lag ? "unknown" : *row.lag == 0 ? "caught_up" : "behind";
  }
  return row;
}

}  // namespace

}  // namespace files

Result<std::vector<OffsetRow>> inspect_files(const Context& context) {
  auto known = files::load_known(context);
  if (!known) return std::move(known).failure();
  auto found = files::survey(context.pipeline->source.file, *known);
  if (!found) return std::move(found).failure();
  std::vector<OffsetRow> rows;
  for (const files::Found& f : found->files) rows.push_back(files::row_of(f, *known));
  for (const files::Known& k : found->gone) {
    OffsetRow row;
    row.partition = {k.path, 0};
    row.committed = row.state = k.position;
    row.identity = k.identity.text();
    row.verdict = "unknown";
    row.reason = "gone: the file is not there any more; whether it held more is not known";
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<std::string>> check_file_source(const Context& context) {
  auto known = files::load_known(context);
  if (!known) return std::move(known).failure();
  auto found = files::survey(context.pipeline->source.file, *known);
  if (!found) return std::move(found).failure();
  if (!found->unmatched.empty()) return files::unmatched_failure(found->unmatched.front());
  std::vector<std::string> notes;
  for (const files::Found& f : found->files) {
    if (f.placement.standing == files::Standing::cut) {
      return files::cut_failure(f.file.path, f.placement.position, f.file.size);
    }
    std::string note = f.file.path + ": ";
    if (f.file.pipe) {
      note += "a pipe";
    } else {
      note += std::to_string(f.file.size) + " bytes, " +
              std::string(files::name_of(f.placement.standing));
    }
    if (f.file.compression == Compression::gzip) note += ", gzip";
    if (f.file.compression == Compression::zstd) note += ", zstd";
    if (f.placement.position > 0) {
      note += ", read up to byte " + std::to_string(f.placement.position);
    }
    notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace flow
