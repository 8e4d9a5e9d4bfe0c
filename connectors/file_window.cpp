#include "connectors/file_window.h"

#include <algorithm>
#include <cstring>

namespace flow::files {

void Window::clear() {
  begin_ = end_ = 0;
  if (capacity_ > usual_bytes) {
    data_.reset();
    capacity_ = 0;
  }
}

// The unfinished record goes to the front; a record that fills the window doubles it.
void Window::make_room() {
  const std::size_t left = end_ - begin_;
  std::size_t want = std::max(capacity_, usual_bytes);
  if (left == capacity_ && capacity_ > 0) want = capacity_ * 2;
  if (left < usual_bytes / 2) want = usual_bytes;
  if (want != capacity_) {
    std::unique_ptr<char[]> data(new char[want]);
    if (left > 0) std::memcpy(data.get(), data_.get() + begin_, left);
    data_ = std::move(data);
    capacity_ = want;
  } else if (begin_ > 0 && left > 0) {
    std::memmove(data_.get(), data_.get() + begin_, left);
  }
  begin_ = 0;
  end_ = left;
}

Result<Got> Window::fill(InputStream& stream) {
  make_room();
  auto got = stream.read(data_.get() + end_, capacity_ - end_);
  if (got) end_ += got->bytes;
  return got;
}

}  // namespace flow::files
