// One request's life: it waits, is tried at an upstream, perhaps at another one, and ends.
// ClientResponse is what the client has been given, Attempt is the current try at an upstream; this
// class joins them, and ends as truth.h judges.
//
// A copy of the bytes is read for its facts and then forgotten; nothing is held back for it.
// Another upstream may be tried until the client has a byte of a response. A client that asked for
// a stream may get the head early (heartbeats while it waits); after that every failure is reported
// inside the stream.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answer/record.h"
#include "base/time.h"
#include "gateway/budget/output_limit.h"
#include "gateway/ending/deadlines.h"
#include "gateway/ending/truth.h"
#include "gateway/exchange/attempt.h"
#include "gateway/exchange/client_response.h"
#include "gateway/exchange/continuation.h"
#include "gateway/placement/placement.h"
#include "net/memory_budget.h"
#include "net/service.h"

namespace fullstop::gateway {

/// What the policy of the moment of its arrival decides about one request.
struct Terms {
    Deadlines deadlines;
    std::optional<base::Duration> heartbeat;
    bool retry = true;
    bool continuation = false;
    bool own_keys = false;  ///< the client's key was the gateway's: a server gets its own one
};

std::optional<std::int64_t> reported(const answer::Fact<base::Tokens>& fact);

class Exchange {
public:
    Exchange(net::ServiceRequest request, std::string request_id, Work work, Terms terms,
             base::Instant now);
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    const Work& work() const { return work_; }
    const std::string& request_id() const { return request_id_; }
    const std::string& method() const { return request_.method; }
    std::size_t body_bytes() const { return body().size(); }
    std::size_t asked_bytes() const { return asked_bytes_; }  ///< of the body as it came
    /// Until a response has begun; false when there is no room for it.
    bool hold_body(net::MemoryBudget& memory, base::Instant now) {
        kept_ = net::MemoryBudget::Hold(memory);
        continuation_bytes_ = parts_.continuation ? body_bytes() : 0;
        return kept_.resize(body_bytes() + continuation_bytes_, now);
    }
    /// Lowers the request's own limit; before it is sent.
    void limit_output(const OutputLimit& limit);
    std::optional<std::int64_t> max_tokens() const {
        return limit_ ? std::optional(limit_->max_tokens) : work_.max_tokens;
    }

    // Where it goes. `others`: a further upstream could take it.
    void send_to(UpstreamId id, const Upstream& upstream, std::int64_t need, bool others,
                 base::Instant at);
    void back_in_queue();
    UpstreamId upstream() const { return attempt_->upstream(); }
    const std::string& upstream_name() const { return attempt_->name(); }
    std::int64_t need() const { return attempt_->need(); }
    const std::set<UpstreamId>& tried() const { return tried_; }
    /// Head and body for the upstream, once it is connected.
    net::Send first_bytes(net::ConnectionId connection);
    /// What else it wants to say on the same connection, once.
    std::string further_bytes() { return std::exchange(parts_.next_request, {}); }

    // An answer whose server died, and whose rest another one may write (continuation.h; the steps
    // are in exchange_part.cc)
    bool between_parts() const { return parts_.died.has_value(); }
    /// The same model, and a kind of server that can be asked for the rest.
    bool may_write_the_rest(const Upstream& upstream) const;
    /// Nobody does: it ends as its server left it.
    void give_up(std::string_view why, base::Instant at, std::string& out);

    /// Each appends bytes for the client. After over() none is called again.
    void received(std::string_view bytes, base::Instant at, std::string& out);
    /// Reads the copy of what the last received() passed on; call it while those bytes live, and
    /// before anything else.
    void read_on(std::string& out);
    void stopped(Stop stop, std::string_view detail, base::Instant at, std::string& out);
    /// The drain limit of the whole gateway is over.
    void shut_down(base::Duration limit, base::Instant at, std::string& out);
    /// What was done for it threw an exception: it ends, as a fault of this gateway.
    void fault(std::string_view what, base::Instant at, std::string& out);
    /// The same without a word, when not even that could be said.
    void drop();
    void not_connected(net::ConnectFailure why, std::string_view detail, base::Instant at,
                       std::string& out);
    /// It was never passed on. `retry_after` absent: asking again is of no use.
    void refuse(int status, std::string message, std::optional<base::Duration> retry_after,
                base::Instant at, std::string& out);
    /// Time has passed: a heartbeat, or the end by one of the clocks.
    void on_time(base::Instant now, std::string& out);
    /// When it next wants to hear of time.
    std::optional<base::Instant> next_time(base::Instant now) const;

    bool over() const { return state_ == State::kOver; }
    const End& end() const { return *end_; }
    /// This attempt failed before anything of a response went on; it may be made at another
    /// upstream.
    bool wants_another() const { return state_ == State::kWantsAnother; }
    bool waiting() const { return clocks_.waiting(); }
    bool begun() const { return client_.begun(); }
    /// Of its first part.
    base::Duration queued(base::Instant now) const {
        return parts_.queued.value_or(clocks_.queued(now));
    }
    base::Duration age(base::Instant now) const { return now - clocks_.arrived(); }
    const answer::Record& record() const { return attempt_->record(); }
    std::size_t seams() const { return parts_.ended.size() - (between_parts() ? 1 : 0); }
    /// Tokens of prompt and answer so far: as reported, else an estimate and its events, each of
    /// which carries about one.
    std::int64_t used_tokens() const;
    /// One answer seen from here; `origin` is the start of the gateway, `end` absent when its
    /// client left.
    answer::Record as_record(base::Instant origin, base::Instant now,
                             const std::optional<End>& end) const;
    /// After over(): the client's connection may carry a next request.
    bool keep_alive() const { return client_.keep_alive(end_->whole); }
    /// After over(): so may the upstream's. Only a whole answer, by framing that leaves no doubt,
    /// is followed by another one.
    bool upstream_reusable() const { return upstream_reusable_ && end_->whole; }
    net::CloseKind close_kind() const { return client_.close_kind(end_->whole); }

    /// The client takes nothing: the upstream is not read meanwhile, and its silence is not
    /// counted.
    void hold(bool on, base::Instant at);
    std::size_t relayed() const { return client_.relayed(); }  ///< bytes of the body

private:
    enum class State {
        kOpen,          ///< it waits, or is under way
        kWantsAnother,  ///< the attempt failed, or died; the caller puts it back in the queue
        kOver,          ///< end_ says how
    };
    /// An answer that several servers write.
    struct Parts {
        struct Died {
            End end;
            std::string upstream, tail;
        };
        std::unique_ptr<Continuation> continuation;  ///< null: not wanted, or not possible here
        std::optional<Died> died;                    ///< until the next part begins
        std::optional<base::Duration> queued;        ///< of the first part
        std::vector<answer::Record> ended;           ///< before the one under way, or wanted
        std::string template_reply, next_request;
    };

    bool may_try_elsewhere() const {
        return attempt_->others() && retry_ && !begun() && tried_.size() < kMaxAttempts;
    }
    void want_another();
    void over_with(End end);
    void read_copy(std::string_view bytes);
    bool hold_reading();
    bool take_head(std::string& out);
    void begin_response(std::string& out);
    void begin_behind_heartbeats(std::string& out);
    void hold_end_back();
    void relay(std::string_view body, std::string& out);
    void finish(Stop stop, std::string detail, std::string& out);
    void fail_without_response(Stop stop, std::string detail, std::string& out);
    void fail_before_head(End end, int status, std::string& out, const wire::Headers& more = {});
    void finish_withheld(std::string& out);
    End judged(Stop stop, std::string detail) const;
    bool leaves_the_rest(Stop stop, const std::string& detail);
    void read_template(std::string_view bytes, std::string& out);
    std::string template_request() const;
    void declare_seam(std::string& out);
    std::string describe(Stop stop, std::string_view detail) const;
    AnswerNumbers numbers() const;
    wire::Headers own_headers() const;
    std::optional<base::Instant> next_heartbeat() const;
    const std::string& body() const { return large_body_ ? *large_body_ : request_.body; }
    base::Duration since_arrival() const { return now_ - clocks_.arrived(); }

    // What is asked
    net::ServiceRequest request_;
    std::size_t asked_bytes_;
    std::shared_ptr<const std::string>
        large_body_;  ///< once it was sent: it is held once, whoever else still sends it
    std::size_t continuation_bytes_ =
        0;                          ///< a copy of it, for as long as the answer may be continued
    net::MemoryBudget::Hold kept_;  ///< its body, then what is kept of the answer in reading
    std::string request_id_;
    Work work_;
    std::optional<base::Duration> total_, heartbeat_;
    bool retry_, own_keys_;
    bool reads_;  ///< a POST: its response is read for the facts of an answer
    std::optional<OutputLimit> limit_;

    // How it goes
    Clocks clocks_;
    base::Instant now_;
    State state_ = State::kOpen;
    ClientResponse client_;
    std::unique_ptr<Attempt> attempt_ = std::make_unique<Attempt>();  ///< the last one
    std::set<UpstreamId> tried_;
    std::string_view unread_;  ///< passed on, and not yet read for its facts
    bool lags_ = false;        ///< the client does
    bool upstream_reusable_ = false;
    Parts parts_;

    // How it ended
    std::optional<CutBy> cut_by_;
    std::optional<End> end_;
};

}  // namespace fullstop::gateway
