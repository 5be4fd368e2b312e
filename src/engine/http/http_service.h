// The HTTP surface of `fullstop serve` (contract section 6): requests become commands, engine
// events become bytes.
//
// Sans-IO and without a thread of its own: commands leave through a function, events come in
// through deliver(). The engine may live on another thread; what crosses are values. Every answer
// ends with its true reason: `[DONE]` and the last chunk only follow an honest end, everything else
// is an error object and a body that stays open-ended.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/backend.h"
#include "engine/command.h"
#include "engine/http/metrics.h"
#include "engine/openai/openai_request.h"
#include "engine/openai/openai_response.h"
#include "engine/scheduling/admission.h"
#include "net/service.h"
#include "serving/access.h"
#include "serving/reply.h"
#include "wire/http/request_text.h"

namespace fullstop::engine {

struct ServiceOptions {
    std::string version;
    base::Duration drain =
        std::chrono::seconds(30);              ///< how long running answers may go on after drain()
    std::size_t max_queue = kDefaultMaxQueue;  ///< for /fullstop/status; the engine enforces it
    AdmissionMode admission = AdmissionMode::kReserve;  ///< for /fullstop/status
    SloPolicy slo_policy = SloPolicy::kIgnore;          ///< for /fullstop/status,
    std::optional<base::Duration> ttft_target = {};     ///< as well
    serving::Access access = {};                        ///< who may ask
    std::uint64_t entropy = 0;    ///< for request ids and for seeds that were not given
    base::Instant started;        ///< the same moment on both clocks,
    base::WallTime started_wall;  ///< for the dates that OpenAI's interface shows
};

class HttpService final : public net::Service {
public:
    HttpService(ModelFacts facts, ServiceOptions options, std::function<void(Command)> send);

    /// Who may not ask is told so before its body is read.
    bool head(base::Instant now, const net::ServiceRequest& request,
              net::ServiceActions& out) override;
    void request(base::Instant now, net::ServiceRequest request, net::ServiceActions& out) override;
    void client_left(base::Instant now, net::ConnectionId id, net::ServiceActions& out) override;
    /// The drain limit was reached, or a stream was silent for kHeartbeat.
    void wake(base::Instant now, net::ServiceActions& out) override;

    /// What the engine did since the last call, and how it stands now.
    void deliver(const EngineEvents& events, const Occupancy& occupancy, net::ServiceActions& out);
    /// No new answers from now on (503); those accepted go on until the drain limit.
    void drain(base::Instant now, net::ServiceActions& out);
    /// Accepted and not ended.
    std::size_t open_answers() const { return live_.size() + shown_to_.size(); }

private:
    /// Whose request it is and how it is answered.
    using Asker = serving::Asker;
    struct Page {
        std::string_view type;
        std::string body;
    };
    /// One accepted request whose client is still there. Its key is connection, request and
    /// sequence id in one.
    struct Live {
        AnswerNames names;
        Asker asker;
        bool stream = false, include_usage = false;
        bool head_sent = false, role_sent = false;
        std::optional<OnDeadline> on_deadline = {};
        base::Instant last_sent{};  ///< of a stream whose head was sent
        // Collected when not streaming:
        std::string text;
        std::vector<ShownToken> tokens = {};
        std::int64_t characters = 0;  ///< shown so far
    };

    Asker asker_of(const net::ServiceRequest& request);
    void take(base::Instant now, const net::ServiceRequest& request, net::ServiceActions& out);
    std::optional<Page> page_at(std::string_view path) const;
    /// Absent: it was refused.
    std::optional<CompletionRequest> understood(Route route, std::string_view body,
                                                const Asker& asker, net::ServiceActions& out) const;
    void completion(base::Instant now, Route route, std::string_view body, Asker asker,
                    net::ServiceActions& out);
    void show_prompt(std::string_view body, Asker asker, net::ServiceActions& out);
    void on(const Refused& event, net::ServiceActions& out);
    void on(const Admitted& event, net::ServiceActions& out);
    void on(const Produced& event, net::ServiceActions& out);
    void on(const Ended& event, net::ServiceActions& out);
    void on(const PromptShown& event, net::ServiceActions& out);
    void show(net::ConnectionId id, Live& live, std::string_view text,
              std::span<const ShownToken> tokens, net::ServiceActions& out) const;
    void finish(net::ConnectionId id, const Live& live, const AnswerEnd& end,
                net::ServiceActions& out) const;
    void fail(net::ConnectionId id, const Live& live, const AnswerEnd& end, const ErrorWords& words,
              std::optional<base::Duration> retry, net::ServiceActions& out) const;
    void wake_by(base::Instant at, net::ServiceActions& out);
    std::int64_t unix_seconds(base::Instant now) const;

    ModelFacts facts_;
    ServiceOptions options_;
    std::function<void(Command)> send_;
    base::Random random_;
    std::map<net::ConnectionId, Live> live_;
    std::map<net::ConnectionId, Asker> shown_to_;  ///< who waits to see a prompt
    Metrics metrics_;
    Occupancy occupancy_;
    std::optional<base::Instant> drained_by_;  ///< since drain(): when running answers are ended
    std::optional<base::Instant> wake_;        ///< that was asked for
};

}  // namespace fullstop::engine
