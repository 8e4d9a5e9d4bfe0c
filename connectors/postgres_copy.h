#pragma once
// Cells to Postgres' binary format: for COPY BINARY and for binary array parameters.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "connectors/postgres_catalog.h"
#include "core/value.h"

namespace flow {

// Bytes that grow; clear() keeps the memory.
class ByteSink {
 public:
  // Room for `bytes` more, to be written at once.
  char* grow(std::size_t bytes) {
    if (size_ + bytes > capacity_) [[unlikely]]
      enlarge(bytes);
    char* at = data_.get() + size_;
    size_ += bytes;
    return at;
  }
  void append(std::string_view bytes) {
    std::memcpy(grow(bytes.size()), bytes.data(), bytes.size());
  }
  void put16(std::uint16_t v) { put(__builtin_bswap16(v)); }
  void put32(std::uint32_t v) { put(__builtin_bswap32(v)); }
  void put64(std::uint64_t v) { put(__builtin_bswap64(v)); }
  std::size_t size() const { return size_; }
  std::string_view view() const { return {data_.get(), size_}; }
  void clear() { size_ = 0; }

 private:
  template <class T>
  void put(T v) {
    std::memcpy(grow(sizeof v), &v, sizeof v);
  }
  void enlarge(std::size_t bytes);

  std::unique_ptr<char[]> data_ = std::make_unique<char[]>(0);
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

// A cell as a length and its binary value; null and missing as length -1. False: the cell is not of
// the column's kind, or is a number beyond what numeric can hold; the sink may then hold a part of
// it.
[[nodiscard]] bool put_cell(ByteSink& sink, PgWire wire, const Value& cell);

// The stream of COPY BINARY: header, rows, trailer.
void put_copy_header(ByteSink& sink);
void put_copy_trailer(ByteSink& sink);
// False: put_cell refused cell `at`.
[[nodiscard]] bool put_copy_row(ByteSink& sink, const std::vector<PgWire>& wires,
                                const Value* cells, std::size_t& at);

// The start of a one-dimensional array of `count` elements; put_cell() writes each of them.
void put_array_header(ByteSink& sink, Oid element, std::size_t count);

}  // namespace flow
