// The store's protocol as bytes in and out: hiredis formats commands and cuts replies out of any
// pieces; what a reply may be is bounded here, so that garbage costs no memory. The only place that
// sees hiredis.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;

namespace fullstop::adapters::redis {

struct Reply {
    enum class Kind { kNil, kText, kError, kInteger, kArray };
    Kind kind = Kind::kNil;
    std::int64_t integer = 0;
    std::string text;  ///< of kText and kError
    std::vector<Reply> elements;
};

std::string command(const std::vector<std::string>& words);

class ReplyReader {
public:
    ReplyReader();
    ~ReplyReader();
    ReplyReader(ReplyReader&&) noexcept;
    ReplyReader& operator=(ReplyReader&&) noexcept;

    /// The error: why these bytes are no reply of a store. After one nothing more is read.
    std::expected<void, std::string> feed(std::string_view bytes);
    /// The next whole reply; none when more bytes are needed.
    std::expected<std::optional<Reply>, std::string> next();

private:
    struct Free {
        void operator()(redisReader* reader) const;
    };
    std::unique_ptr<redisReader, Free> reader_;
    std::size_t unfinished_ = 0;  ///< bytes fed since the last whole reply
};

}  // namespace fullstop::adapters::redis
