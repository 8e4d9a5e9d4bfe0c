// gzip by zlib, zstd by libzstd: several members or frames are one stream.
#include <algorithm>
#include <limits>
#include <string>
#include <zlib.h>
#include <zstd.h>

#include "connectors/file_stream.h"

namespace flow::files {

namespace {

constexpr std::size_t input_bytes = std::size_t{64} << 10;

Failure damaged(const RawInput& raw, std::int64_t out, std::string what) {
  return {.cls = FailureClass::setup,
          .where = raw.path() + " byte " + std::to_string(raw.taken()),
          .what = std::move(what) + " (after " + std::to_string(out) + " decompressed bytes)",
          .hint = "get the whole file again; what was read before this point is kept",
          .exit = ExitCode::data};
}

class GzipCodec final : public Codec {
 public:
  GzipCodec() { ready_ = inflateInit2(&z_, 15 + 16) == Z_OK; }
  ~GzipCodec() override {
    if (ready_) inflateEnd(&z_);
  }
  GzipCodec(const GzipCodec&) = delete;
  GzipCodec& operator=(const GzipCodec&) = delete;

  Result<Got> read(RawInput& raw, char* to, std::size_t size) override {
    if (!ready_) return damaged(raw, out_, "zlib has no memory");
    z_.next_out = reinterpret_cast<Bytef*>(to);
    const auto room =
        static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
    z_.avail_out = room;
    while (z_.avail_out == room) {
      auto got = raw.peek(1);
      if (!got) return got;
      if (got->bytes == 0 && !got->end) return Got{};
      if (got->bytes == 0) {
        if (inside_) return damaged(raw, out_, "the gzip stream is cut short");
        return Got{.bytes = 0, .end = true};
      }
      auto end = between_members(raw);
      if (!end) return std::move(end).failure();
      if (*end) continue;
      if (auto r = inflate_some(raw); !r) return std::move(r).failure();
    }
    const std::size_t bytes = room - z_.avail_out;
    out_ += static_cast<std::int64_t>(bytes);
    return Got{.bytes = bytes, .end = false};
  }

 private:
  // True: bytes between members were skipped (zeros that fill up a block).
  Result<bool> between_members(RawInput& raw) {
    if (inside_) return false;
    if (*raw.buffered() == 0 && out_ > 0) {
      raw.consume(1);
      return true;
    }
    if (static_cast<unsigned char>(*raw.buffered()) != 0x1f) {
      return damaged(raw, out_, "what follows is not a gzip member");
    }
    inflateReset(&z_);
    inside_ = true;
    return false;
  }

  Result<void> inflate_some(RawInput& raw) {
    const std::size_t in = std::min(raw.buffered_size(), input_bytes);
    z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(raw.buffered()));
    z_.avail_in = static_cast<uInt>(in);
    const int code = inflate(&z_, Z_NO_FLUSH);
    raw.consume(in - z_.avail_in);
    if (code == Z_STREAM_END) {
      inside_ = false;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return damaged(raw, out_,
                     std::string("the gzip stream is damaged: ") +
                         (z_.msg != nullptr ? z_.msg : zError(code)));
    }
    return {};
  }

  z_stream z_{};
  bool ready_ = false;
  bool inside_ = false;  // a member has begun and not ended
  std::int64_t out_ = 0;
};

class ZstdCodec final : public Codec {
 public:
  Result<Got> read(RawInput& raw, char* to, std::size_t size) override {
    if (!context_) return damaged(raw, out_, "libzstd has no memory");
    ZSTD_outBuffer out{to, size, 0};
    while (out.pos == 0) {
      auto got = raw.peek(1);
      if (!got) return got;
      if (got->bytes == 0 && !got->end) return Got{};
      const bool flushing = got->bytes == 0 && pending_ && inside_;
      if (got->bytes == 0 && !flushing) {
        if (inside_) return damaged(raw, out_, "the zstd stream is cut short");
        return Got{.bytes = 0, .end = true};
      }
      ZSTD_inBuffer in{raw.buffered(), std::min(raw.buffered_size(), input_bytes), 0};
      const std::size_t code = ZSTD_decompressStream(context_.get(), &out, &in);
      raw.consume(in.pos);
      if (ZSTD_isError(code) != 0U) {
        return damaged(raw, out_,
                       std::string("the zstd stream is damaged: ") + ZSTD_getErrorName(code));
      }
      inside_ = code != 0;
      pending_ = out.pos == out.size;
    }
    out_ += static_cast<std::int64_t>(out.pos);
    return Got{.bytes = out.pos, .end = false};
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context_{ZSTD_createDCtx()};
  bool inside_ = false;   // a frame has begun and not ended
  bool pending_ = false;  // the last call filled its output: more may wait inside
  std::int64_t out_ = 0;
};

}  // namespace

std::unique_ptr<Codec> make_gzip_codec() { return std::make_unique<GzipCodec>(); }
std::unique_ptr<Codec> make_zstd_codec() { return std::make_unique<ZstdCodec>(); }

}  // namespace flow::files
