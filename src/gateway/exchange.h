// One request's life between its client and the upstream: bytes of the upstream in, bytes for the client out, piece by
// piece as they come, and at the end the judgement of truth.h carried out.
//
// A copy of the bytes is read by wire::AnswerReader for its facts and then forgotten; nothing is held back for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "answer/record.h"
#include "base/time.h"
#include "gateway/error_body.h"
#include "gateway/response_head.h"
#include "gateway/truth.h"
#include "net/service.h"
#include "wire/answer_reader.h"
#include "wire/http_framing.h"

namespace fullstop::gateway {

/// What all exchanges of one gateway share.
struct Route {
    wire::ServerUrl upstream;
    std::string name;                    ///< of the upstream, in headers and metrics: host:port
    std::optional<base::Duration> idle;  ///< absent: silence is not limited
};

class Exchange {
public:
    Exchange(const Route& route, const net::ServiceRequest& request, std::string request_id, base::Instant now);
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    /// Head and body for the upstream, once.
    std::string take_request() { return std::move(request_); }

    /// Each appends bytes for the client. After over() none is called again.
    void received(std::string_view bytes, base::Instant at, std::string& out);
    void stopped(Stop stop, std::string_view words, base::Instant at, std::string& out);
    void not_connected(net::ConnectFailure why, std::string_view words, base::Instant at, std::string& out);

    bool over() const { return end_.has_value(); }
    const End& end() const { return *end_; }
    /// After over(): the client's connection may carry a next request.
    bool keep_alive() const { return keep_alive_ && end_->whole && client_framing_ != ClientFraming::kUntilClose; }

    /// After over(): so may the upstream's. Only a whole answer, by framing that leaves no doubt, is followed by another one.
    bool upstream_reusable() const { return upstream_reusable_ && end_->whole; }

    /// Where only the close ends the body, an orderly close would say "whole".
    net::CloseKind close_kind() const { return client_framing_ == ClientFraming::kUntilClose && !end_->whole ? net::CloseKind::kRst : net::CloseKind::kFin; }

    /// The client takes nothing: the upstream is not read meanwhile, and its silence is not counted.
    void hold(bool on, base::Instant at);
    /// Since when nothing moved: from the upstream, or towards a client that lags. At first the moment of the request.
    base::Instant quiet_since() const { return last_byte_; }
    std::size_t relayed() const { return relayed_; }  ///< bytes of the body

private:
    void begin_response(std::string& out);
    void finish(Stop stop, std::string detail, std::string& out);
    void fail_before_head(End end, int status, std::string& out);
    void relay(std::string_view body, std::string& out);
    void read_copy(std::string_view bytes);
    std::string describe(Stop stop, std::string_view words) const;
    AnswerNumbers numbers() const;
    wire::Headers own_headers() const;

    const Route* route_;
    std::string request_, request_id_;
    bool head_only_, keep_alive_, close_asked_, answer_expected_, reads_;
    base::Instant started_, last_byte_, now_;
    answer::Record record_;
    wire::AnswerReader reader_;
    wire::HttpFraming framing_;
    std::string raw_head_, tail_;
    bool begun_ = false, held_ = false, upstream_reusable_ = false;
    BodyForm form_ = BodyForm::kOther;
    ClientFraming client_framing_ = ClientFraming::kNone;
    std::size_t relayed_ = 0;
    std::optional<End> end_;
};

}  // namespace fullstop::gateway
