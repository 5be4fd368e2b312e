// Replies are built by our own functions, which hiredis calls as it reads: it would else allocate
// whatever a length says.
#include "adapters/redis/resp.h"

#include <hiredis/hiredis.h>

#include <utility>

#include "adapters/redis/limits.h"
#include "base/assert.h"

namespace fullstop::adapters::redis {
namespace {

/// The place of a new reply: its parent's element, or a root that whoever takes the reply owns.
Reply* place(const redisReadTask* task) {
    if (task->parent == nullptr) return new Reply;
    return &static_cast<Reply*>(task->parent->obj)->elements[static_cast<std::size_t>(task->idx)];
}

void* make_text(const redisReadTask* task, char* text, std::size_t size) {
    Reply* reply = place(task);
    reply->kind = task->type == REDIS_REPLY_ERROR ? Reply::Kind::kError : Reply::Kind::kText;
    reply->text.assign(text, size);
    return reply;
}

/// Null makes the reader say "out of memory", which ends the connection.
void* make_array(const redisReadTask* task, int elements) {
    if (elements < 0 || static_cast<std::size_t>(elements) > kMaxReplyElements) return nullptr;
    Reply* reply = place(task);
    reply->kind = Reply::Kind::kArray;
    reply->elements.resize(static_cast<std::size_t>(elements));
    return reply;
}

void* make_integer(const redisReadTask* task, long long value) {
    Reply* reply = place(task);
    reply->kind = Reply::Kind::kInteger;
    reply->integer = value;
    return reply;
}

void* make_nil(const redisReadTask* task) { return place(task); }

/// Called for roots only: elements are part of them.
void free_reply(void* reply) { delete static_cast<Reply*>(reply); }

redisReplyObjectFunctions functions = {make_text, make_array, make_integer, make_nil, free_reply};

}  // namespace

std::string command(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words)
        texts.push_back(word.data()), sizes.push_back(word.size());
    char* bytes = nullptr;
    const int size =
        redisFormatCommandArgv(&bytes, static_cast<int>(words.size()), texts.data(), sizes.data());
    FULLSTOP_ASSERT(size >= 0, "a command is formatted");
    std::string out(bytes, static_cast<std::size_t>(size));
    redisFreeCommand(bytes);
    return out;
}

ReplyReader::ReplyReader() : reader_(redisReaderCreateWithFunctions(&functions)) {
    FULLSTOP_ASSERT(reader_, "memory for a reader");
}
ReplyReader::~ReplyReader() = default;
ReplyReader::ReplyReader(ReplyReader&&) noexcept = default;
ReplyReader& ReplyReader::operator=(ReplyReader&&) noexcept = default;
void ReplyReader::Free::operator()(redisReader* reader) const { redisReaderFree(reader); }

std::expected<void, std::string> ReplyReader::feed(std::string_view bytes) {
    unfinished_ += bytes.size();
    if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK)
        return std::unexpected(std::string(reader_->errstr));
    return {};
}

std::expected<std::optional<Reply>, std::string> ReplyReader::next() {
    void* found = nullptr;
    if (redisReaderGetReply(reader_.get(), &found) != REDIS_OK)
        return std::unexpected(std::string(reader_->errstr));
    if (found == nullptr) {
        if (unfinished_ > kMaxReplyBytes)
            return std::unexpected(std::string("a reply is longer than any that was asked for"));
        return std::nullopt;
    }
    const std::unique_ptr<Reply> whole(static_cast<Reply*>(found));
    unfinished_ = reader_->len - reader_->pos;
    return std::move(*whole);
}

}  // namespace fullstop::adapters::redis
