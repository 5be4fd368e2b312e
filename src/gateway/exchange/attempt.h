// One try of an exchange at an upstream: where it goes, the response that comes back, and what is
// read of a copy of it. It does not decide what the client gets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "answer/record.h"
#include "base/time.h"
#include "gateway/ending/json_depth.h"
#include "gateway/ending/truth.h"
#include "gateway/placement/placement.h"
#include "wire/answer_reader.h"
#include "wire/http/http_framing.h"

namespace fullstop::gateway {

class Attempt {
public:
    enum class Asks {
        kNothing,   ///< it waits in the queue, or nobody takes it
        kTemplate,  ///< how this upstream would continue an answer
        kAnswer,    ///< the request itself, or the rest of its answer
    };
    Attempt() = default;
    /// `limit`: tokens that the request asks for. `others`: a further upstream could take it.
    Attempt(UpstreamId id, const Upstream& upstream, std::int64_t need, bool others, Asks asks,
            std::optional<std::int64_t> limit);
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;

    Asks asks() const { return asks_; }
    UpstreamId upstream() const { return upstream_; }
    const std::string& name() const { return name_; }
    const wire::ServerUrl& url() const { return url_; }
    std::int64_t need() const { return need_; }
    bool others() const { return others_; }
    const answer::Record& record() const { return record_; }

    /// It is over, and the exchange is in the queue again.
    void leave();
    /// From kTemplate to kAnswer, on the same connection.
    void ask_for_the_rest();
    /// It stands for an earlier attempt, which was the last one after all.
    void stand_for(std::string name, answer::Record record);
    /// Of a part that died; this attempt has none then.
    answer::Record take_record() { return std::exchange(record_, {}); }

    // The response as it comes
    const wire::HttpFraming& framing() const { return framing_; }
    const wire::ResponseHead& head() const { return framing_.head(); }
    int status() const { return framing_.head().status; }
    const std::string& raw_head() const { return raw_head_; }
    void forget_raw_head() { raw_head_ = {}; }
    /// The next piece of the body; what of `bytes` was looked at is taken off its front. The bytes
    /// of a head are kept as they came.
    std::string_view next(std::string_view& bytes, bool in_head);
    /// Why a response with this head is not passed on, if it is not. `answer`: a model's is wanted.
    std::optional<std::pair<Stop, std::string>> unfit(bool answer) const;
    bool close_delimited() const { return framing_.framing() == answer::Framing::kUntilClose; }
    /// Follows brackets of a body that only its close ends.
    void follow_json(std::string_view body) { json_.feed(body); }
    bool json_open() const { return json_.open(); }

    // The copy. `at`: since the request arrived. Only the facts of the end are wanted: what a long
    // answer says is not kept.
    void read(std::string_view bytes, base::Duration at);
    void read_end(wire::StreamEnd::Kind kind, base::Duration at);
    std::optional<answer::Api> dialect() const;
    wire::OwnEnd own_end() const { return reader_->own_end(); }
    bool overflowed() const { return reader_->overflowed(); }
    std::size_t held_bytes() const { return reader_ ? reader_->held_bytes() : 0; }

private:
    Asks asks_ = Asks::kNothing;
    UpstreamId upstream_ = 0;
    wire::ServerUrl url_;
    std::string name_;
    std::int64_t need_ = 0;
    bool others_ = false;
    answer::Record record_;
    std::unique_ptr<wire::AnswerReader> reader_;  ///< null: kNothing
    wire::HttpFraming framing_;
    std::string raw_head_;
    JsonDepth json_;
};

}  // namespace fullstop::gateway
