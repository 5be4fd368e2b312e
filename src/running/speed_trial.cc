// One part: the users of one level together, then the next level. What fails is left out; a level
// without any answer ends it.
#include "running/speed_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "adapters/asio/client/host.h"
#include "adapters/asio/loop.h"
#include "net/limits.h"
#include "observe/observer.h"
#include "wire/answer_reader.h"

namespace fullstop::running {
namespace {

/// A level that takes longer is given up: deadlines of that size are of no use to anybody.
constexpr base::Duration kLongestLevel = std::chrono::minutes(3);
constexpr net::TimerId kLevelTimer = 0;

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

class Trial final : public net::Part {
public:
    Trial(const wire::ServerUrl& url, const wire::Headers& headers,
          const observe::Identity& identity, std::vector<int> users)
        : url_(url), headers_(headers), identity_(identity), users_(std::move(users)) {}

    void start(base::Instant now, net::Actions& out) override { begin_level(now, out); }
    void on(const net::Event& event, net::Actions& out) override;
    bool done() const override { return level_ >= users_.size() || !trouble.empty(); }

    std::vector<Speed> speeds;
    std::string trouble;

private:
    struct Answer {
        answer::Record record;
        std::unique_ptr<wire::AnswerReader> reader;
        base::Instant sent;
    };
    void begin_level(base::Instant now, net::Actions& out);
    void end_answer(net::ConnectionId id, wire::StreamEnd end, base::Instant now,
                    net::Actions& out);
    void end_level(base::Instant now, net::Actions& out);
    answer::Request request_of(int user) const;

    const wire::ServerUrl& url_;
    const wire::Headers& headers_;
    const observe::Identity& identity_;
    std::vector<int> users_;
    std::size_t level_ = 0;
    net::ConnectionId next_ = 1;
    std::map<net::ConnectionId, Answer> open_;
    std::vector<double> paces_, firsts_;
};

answer::Request Trial::request_of(int user) const {
    answer::Request request;
    request.id = fmt::format("speed-{}-{}", users_[level_], user);
    request.api = identity_.api;
    request.model = identity_.facts.model;
    request.messages = {
        {"user", fmt::format("Write a long story about a town with {} bridges.", user + 2)}};
    request.max_tokens = base::Tokens{kTrialTokens};
    request.temperature = 0;
    return request;
}

void Trial::begin_level(base::Instant now, net::Actions& out) {
    paces_.clear();
    firsts_.clear();
    for (int user = 0; user < users_[level_]; ++user) {
        Answer& answer = open_[next_];
        answer.record.request = request_of(user);
        answer.reader = std::make_unique<wire::AnswerReader>(answer.record);
        out.emplace_back(
            net::Connect{.id = next_++,
                         .endpoint = {.host = url_.host, .port = url_.port, .tls = url_.tls},
                         .timeout = net::kConnectTimeout});
    }
    out.emplace_back(net::SetTimer{.id = kLevelTimer, .at = now + kLongestLevel});
}

void Trial::on(const net::Event& event, net::Actions& out) {
    if (std::holds_alternative<net::Interrupted>(event.what)) {
        trouble = "interrupted";
    } else if (const auto* connected = std::get_if<net::Connected>(&event.what)) {
        Answer& answer = open_.at(connected->id);
        answer.sent = event.at;
        out.emplace_back(
            net::Send{connected->id, wire::request_text(answer.record.request, url_, headers_)});
    } else if (const auto* failed = std::get_if<net::ConnectFailed>(&event.what)) {
        trouble = "no connection: " + failed->text;
    } else if (const auto* received = std::get_if<net::Received>(&event.what)) {
        Answer& answer = open_.at(received->id);
        answer.reader->bytes(received->bytes, event.at - answer.sent, received->clock);
        if (!answer.reader->complete()) return;
        out.emplace_back(net::Close{.id = received->id});
        end_answer(received->id, {wire::StreamEnd::Kind::kClosedByUs}, event.at, out);
    } else if (const auto* closed = std::get_if<net::PeerClosed>(&event.what)) {
        end_answer(closed->id, {wire::StreamEnd::Kind::kFin}, event.at, out);
    } else if (std::holds_alternative<net::TimerFired>(event.what)) {
        trouble = fmt::format("{} answers of {} tokens took more than {:g} s", users_[level_],
                              kTrialTokens, base::to_seconds(kLongestLevel));
    }
}

void Trial::end_answer(net::ConnectionId id, wire::StreamEnd end, base::Instant now,
                       net::Actions& out) {
    auto node = open_.extract(id);  // the reader writes into the record where it is
    Answer& answer = node.mapped();
    answer.reader->end(end, now - answer.sent);
    const answer::Timeline& times = answer.record.timeline;
    const std::int64_t tokens = answer.record.output_tokens ? (*answer.record.output_tokens).count
                                                            : answer.record.text_events;
    if (times.first_token && times.last_token && tokens > 1 &&
        *times.last_token > *times.first_token) {
        paces_.push_back(static_cast<double>(tokens - 1) /
                         base::to_seconds(*times.last_token - *times.first_token));
        firsts_.push_back(base::to_seconds(*times.first_token));
    }
    if (open_.empty()) end_level(now, out);
}

void Trial::end_level(base::Instant now, net::Actions& out) {
    out.emplace_back(net::CancelTimer{kLevelTimer});
    if (paces_.empty()) {
        trouble = fmt::format("none of {} answers could be timed", users_[level_]);
        return;
    }
    speeds.push_back({.users = users_[level_],
                      .tokens_per_second = median(paces_),
                      .first_token_s = median(firsts_)});
    if (++level_ < users_.size()) begin_level(now, out);
}

}  // namespace

base::Result<std::vector<Speed>> measure_speed(const wire::ServerUrl& url,
                                               const wire::Headers& headers,
                                               const std::vector<int>& users) {
    adapters::asio::Loop loop;
    const adapters::asio::HostOptions options{
        .verify_tls = true, .ca_file = {}, .kernel_stamps = false, .signals = true};
    observe::Identity identity;
    {
        auto host = adapters::asio::Host::create(loop, options);
        if (!host) return std::unexpected(host.error());
        observe::Identify ask(url, headers, identity);
        (*host)->add(ask);
        (*host)->run_until_done();
    }
    if (!identity.reachable)
        return base::unreachable_error(fmt::format("{}: {}", url.text, identity.trouble),
                                       identity.hint);
    auto host = adapters::asio::Host::create(loop, options);
    if (!host) return std::unexpected(host.error());
    Trial trial(url, headers, identity, users);
    (*host)->add(trial);
    (*host)->run_until_done();
    if (!trial.trouble.empty())
        return base::unreachable_error(
            fmt::format("{}: the speed could not be measured: {}", url.text, trial.trouble),
            "give it with --tokens-per-second");
    return std::move(trial.speeds);
}

}  // namespace fullstop::running
