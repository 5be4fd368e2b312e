// The floor of a scripted server: who waits, who prefills, who decodes, and the step that moves
// them all.
#include "simulator/server/scripted_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"
#include "simulator/server/answer_writer.h"
#include "simulator/server/asked.h"
#include "simulator/server/introspection.h"
#include "simulator/server/pace.h"

namespace fullstop::simulator {
namespace {

using State_ = Sequence::State;

struct Answer {
    Sequence sequence;
    AnswerWriter writer;
    std::string held = {};  ///< tokens of the event that is being filled
    bool held_reasoning = false;
    std::size_t room = 0;  ///< tokens that still go into it
};

std::string whole_response(std::string_view status, std::string_view content_type,
                           std::string_view body) {
    return fmt::format(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        status, content_type, body.size(), body);
}

}  // namespace

struct ScriptedServer::State final : Floor {
    State(ServerScript chosen, std::vector<std::unique_ptr<Plant>> planted)
        : plan(std::move(chosen)),
          plants(std::move(planted)),
          model_(plan.prompts, plan.seed, plan.lengths, plan.regex_samples),
          random_(plan.seed ^ 0x5CA1AB1E),
          pace(plan.noise, random_) {}

    ServerScript plan;
    std::vector<std::unique_ptr<Plant>> plants;
    ScriptedModel model_;
    base::Random random_;
    Pace pace;
    std::vector<std::unique_ptr<Answer>> answers;  ///< live, in order of arrival
    base::Instant now_{};
    std::optional<base::Instant> next_step;
    base::Instant down_until{};
    net::ServiceActions* out = nullptr;  ///< of the call that is running
    std::uint64_t arrivals = 0;
    std::int64_t preempted = 0, prompt_tokens = 0, output_tokens = 0;

    // Floor
    base::Instant now() const override { return now_; }
    const ServerScript& script() const override { return plan; }
    base::Random& random() override { return random_; }
    std::vector<Sequence*> live() override;
    int load() const override {
        return static_cast<int>(std::ranges::count_if(
            answers, [](const auto& answer) { return answer->sequence.live(); }));
    }
    void end(Sequence& sequence, const Ending& ending) override;
    void die(const Ending& ending, base::Instant until) override;
    void count_preemption() override { ++preempted; }
    void say(Sequence& sequence, std::string_view bytes) override;
    const ScriptedModel& model() const override { return model_; }

    int count(State_ state) const {
        return static_cast<int>(std::ranges::count_if(
            answers, [&](const auto& answer) { return answer->sequence.state == state; }));
    }
    Gauges gauges() const;
    void answer_about_itself(const net::ServiceRequest& request);
    void take_in(Dialect dialect, const net::ServiceRequest& request);
    Sequence understood(const Asked& asked, net::ConnectionId id);
    void settle();  ///< admit, forget the ended, say when to wake
    void ring_alarms();
    void finish_prefills();
    void step();
    void make_token(Answer& answer, int running);
    void deliver(Answer& answer, std::string_view token, bool reasoning);
    void flush(Answer& answer);
    Answer& owner_of(const Sequence& sequence);
    void vary(Sequence& sequence, int running);
    Totals totals(const Sequence& sequence) const;
};

std::vector<Sequence*> ScriptedServer::State::live() {
    std::vector<Sequence*> found;
    for (const auto& answer : answers)
        if (answer->sequence.live()) found.push_back(&answer->sequence);
    return found;
}

Gauges ScriptedServer::State::gauges() const {
    Gauges gauges{.running = count(State_::kPrefill) + count(State_::kDecoding),
                  .waiting = count(State_::kQueued)};
    for (const auto& answer : answers)
        if (answer->sequence.running()) gauges.tokens_held += answer->sequence.tokens_held();
    gauges.prompt_tokens = prompt_tokens;
    gauges.output_tokens = output_tokens;
    gauges.preemptions = preempted;
    return gauges;
}

// Ends
// -------------------------------------------------------------------------------------------------

Totals ScriptedServer::State::totals(const Sequence& sequence) const {
    return {
        .prompt_tokens = sequence.prompt_tokens,
        .output_tokens = static_cast<std::int64_t>(sequence.made),
        .reasoning_tokens = static_cast<std::int64_t>(std::min(sequence.made, sequence.thinking)),
        .prompt_ms = base::to_ms(sequence.ready - sequence.admitted),
        .predicted_ms = std::max(base::to_ms(now_ - sequence.ready), 0.0)};
}

void ScriptedServer::State::end(Sequence& sequence, const Ending& ending) {
    if (!sequence.live()) return;
    auto& owner = owner_of(sequence);
    flush(owner);
    auto chosen = ending;
    for (const auto& plant : plants) plant->ending(*this, sequence, chosen);
    const auto last = owner.writer.end(chosen, totals(sequence), sequence.headers);
    sequence.state = State_::kEnded;
    pace.end(now_, {sequence.id, last.bytes}, {sequence.id, last.close, false}, *out);
}

Answer& ScriptedServer::State::owner_of(const Sequence& sequence) {
    const auto owner = std::ranges::find_if(
        answers, [&](const auto& answer) { return &answer->sequence == &sequence; });
    FULLSTOP_ASSERT(owner != answers.end(), "a plant acts only on sequences of its floor");
    return **owner;
}

void ScriptedServer::State::say(Sequence& sequence, std::string_view bytes) {
    if (!sequence.live()) return;
    auto& owner = owner_of(sequence);
    flush(owner);
    if (auto event = owner.writer.verbatim(bytes, sequence.headers); !event.empty())
        out->push_back(net::ServiceSend{sequence.id, std::move(event)});
}

void ScriptedServer::State::die(const Ending& ending, base::Instant until) {
    for (auto* sequence : live()) end(*sequence, ending);
    down_until = until;
}

// Requests
// -------------------------------------------------------------------------------------------------

void ScriptedServer::State::answer_about_itself(const net::ServiceRequest& request) {
    const auto own = own_answer(request.target, plan, gauges());
    const auto text =
        own ? whole_response("200 OK", own->content_type, own->body)
            : whole_response(
                  "404 Not Found", "application/json",
                  R"({"error":{"code":404,"message":"File Not Found","type":"not_found_error"}})");
    out->push_back(net::ServiceSend{request.id, text});
    out->push_back(net::ServiceClose{request.id, net::CloseKind::kFin, true});
}

Sequence ScriptedServer::State::understood(const Asked& asked, net::ConnectionId id) {
    Sequence sequence;
    sequence.id = id;
    sequence.prompt = model_.recognise(asked.messages);
    sequence.seed = asked.seed;
    sequence.requested_max_tokens = asked.max_tokens;
    sequence.limit = asked.max_tokens;
    sequence.arrival_number = arrivals++;
    sequence.arrived = sequence.admitted = sequence.ready = now_;
    sequence.prompt_tokens = scripted_prompt_tokens(asked.messages);
    sequence.thinking = static_cast<std::size_t>(plan.thinking_tokens);
    auto thinking_draw = base::Random(plan.seed).fork(
        static_cast<std::uint64_t>(sequence.seed) * 31 + sequence.prompt);
    sequence.text = model_.thinking(sequence.thinking, thinking_draw);
    std::ranges::move(model_.alone(sequence.prompt, sequence.seed).tokens,
                      std::back_inserter(sequence.text.tokens));
    return sequence;
}

void ScriptedServer::State::take_in(Dialect dialect, const net::ServiceRequest& request) {
    pace.request_came(now_);
    const auto asked = read_asked(dialect, request.body);
    if (!asked || answers.size() >= kMaxSequences) {
        const auto text =
            asked
                ? whole_response(
                      "503 Service Unavailable", "application/json",
                      R"({"error":{"code":503,"message":"too many requests","type":"unavailable_error"}})")
                : whole_response(
                      "400 Bad Request", "application/json",
                      R"({"error":{"code":400,"message":"the body is not a JSON object","type":"invalid_request_error"}})");
        out->push_back(net::ServiceSend{request.id, text});
        out->push_back(net::ServiceClose{request.id, net::CloseKind::kFin, false});
        return;
    }
    EventNames names{.id = fmt::format("chatcmpl-{:08x}", arrivals),
                     .model = plan.model,
                     .fingerprint = "b9000-0000000",
                     .include_usage = asked->include_usage};
    auto& answer = *answers.emplace_back(std::make_unique<Answer>(Answer{
        understood(*asked, request.id),
        AnswerWriter(make_event_writer(dialect, plan, std::move(names)), plan, asked->stream)}));
    auto& sequence = answer.sequence;
    prompt_tokens += sequence.prompt_tokens;
    for (const auto& plant : plants)
        if (sequence.live()) plant->arrived(*this, sequence);
    // The window of one request is a limit like any other, announced only by llama-server's
    // `truncated`.
    if (const auto room = plan.window - sequence.prompt_tokens;
        !sequence.limit || *sequence.limit > room) {
        sequence.limit = std::max<std::int64_t>(room, 1);
        sequence.limit_end.truncated = true;
    }
}

// Time
// -------------------------------------------------------------------------------------------------

void ScriptedServer::State::ring_alarms() {
    for (auto* sequence : live()) {
        if (!sequence->live() || !sequence->alarm || *sequence->alarm > now_) continue;
        sequence->alarm.reset();
        for (const auto& plant : plants)
            if (sequence->live()) plant->alarm(*this, *sequence);
    }
}

void ScriptedServer::State::finish_prefills() {
    for (auto* sequence : live()) {
        if (sequence->state != State_::kPrefill || sequence->ready > now_) continue;
        sequence->state = State_::kDecoding;
        for (const auto& plant : plants)
            if (sequence->live()) plant->began(*this, *sequence);
    }
}

void ScriptedServer::State::step() {
    for (const auto& plant : plants) plant->before_step(*this);
    std::vector<Answer*> running;
    for (const auto& answer : answers)
        if (answer->sequence.state == State_::kDecoding && answer->sequence.paused_until <= now_)
            running.push_back(answer.get());
    if (plan.noise.any_order)
        for (std::size_t i = running.size(); i > 1; --i)
            std::swap(running[i - 1], running[random_.below(i)]);
    for (auto* answer : running)
        if (answer->sequence.live()) make_token(*answer, static_cast<int>(running.size()));
    const double factor = plan.timing.growth(static_cast<int>(running.size())) *
                          std::exp(plan.timing.jitter * random_.normal()) *
                          pace.slowness(now_, arrivals);
    next_step = now_ + base::Duration(static_cast<std::int64_t>(
                           static_cast<double>(plan.timing.itl.count()) * factor));
}

/// Decides once per answer whether another batch shape leads it elsewhere: not before it has shared
/// a batch, unless the server is not repeatable even alone.
void ScriptedServer::State::vary(Sequence& sequence, int running) {
    if (sequence.batch_seen || sequence.thinking > 0) return;
    if (running < 2 && plan.variance.alone == 0) return;
    sequence.batch_seen = true;
    if (!random_.chance(running > 1 ? plan.variance.at_load : plan.variance.alone)) return;
    const auto length = sequence.text.tokens.size();
    const auto at = sequence.made + random_.below(std::max<std::size_t>(
                                        length - std::min(length, sequence.made), 1));
    sequence.text =
        model_.diverged(sequence.prompt, sequence.seed, at, plan.variance.spread, random_);
}

void ScriptedServer::State::make_token(Answer& answer, int running) {
    auto& sequence = answer.sequence;
    vary(sequence, running);
    if (sequence.made >= sequence.text.tokens.size())
        return end(sequence, plan.tool_calls ? Ending{.reason = "tool_calls"} : natural_ending());
    const bool reasoning = sequence.made < sequence.thinking;
    const auto& token = sequence.text.tokens[sequence.made++];
    ++output_tokens;
    if (sequence.mute)
        ++sequence.lost;
    else
        deliver(answer, token, reasoning);
    for (const auto& plant : plants)
        if (sequence.live()) plant->made_token(*this, sequence);
    if (sequence.live() && sequence.limit &&
        static_cast<std::int64_t>(sequence.made) >= *sequence.limit)
        end(sequence, sequence.limit_end);
}

void ScriptedServer::State::deliver(Answer& answer, std::string_view token, bool reasoning) {
    if (!answer.held.empty() && answer.held_reasoning != reasoning) flush(answer);
    const auto most = static_cast<std::uint64_t>(plan.noise.most_tokens_an_event);
    if (answer.held.empty()) answer.room = most > 1 ? 1 + random_.below(most) : 1;
    answer.held += token;
    answer.held_reasoning = reasoning;
    if (--answer.room == 0) flush(answer);
}

void ScriptedServer::State::flush(Answer& answer) {
    if (answer.held.empty()) return;
    auto bytes = answer.writer.token(answer.held, answer.held_reasoning, answer.sequence.headers);
    answer.held.clear();
    if (!bytes.empty()) out->push_back(net::ServiceSend{answer.sequence.id, std::move(bytes)});
}

void ScriptedServer::State::settle() {
    std::erase_if(answers, [](const auto& answer) { return !answer->sequence.live(); });
    int running = count(State_::kPrefill) + count(State_::kDecoding);
    std::optional<base::Instant> wake;
    const auto also = [&](base::Instant at) { wake = wake ? std::min(*wake, at) : at; };
    bool decoding = false;
    for (const auto& answer : answers) {
        auto& sequence = answer->sequence;
        if (sequence.state == State_::kQueued && running < plan.slots) {
            sequence.state = State_::kPrefill;
            sequence.admitted = now_;
            const double share = pace.prefill_share(sequence.prompt);
            const auto prefill = plan.timing.prefill_per_token * sequence.prompt_tokens;
            sequence.ready =
                now_ + base::from_ms(base::to_ms(prefill) * share * pace.slowness(now_, arrivals));
            ++running;
        }
        if (sequence.alarm) also(*sequence.alarm);
        if (sequence.state == State_::kPrefill) also(sequence.ready);
        decoding = decoding || sequence.state == State_::kDecoding;
    }
    if (!decoding) next_step.reset();
    if (decoding) also(next_step.value_or(now_));
    if (const auto end = pace.next_end()) also(*end);
    if (wake) out->push_back(net::ServiceWake{std::max(*wake, now_)});
}

// The service
// -------------------------------------------------------------------------------------------------

ScriptedServer::ScriptedServer(ServerScript script, std::vector<std::unique_ptr<Plant>> plants)
    : state_(std::make_unique<State>(std::move(script), std::move(plants))) {}
ScriptedServer::~ScriptedServer() = default;

void ScriptedServer::request(base::Instant now, net::ServiceRequest request,
                             net::ServiceActions& out) {
    state_->now_ = now;
    state_->out = &out;
    if (!listening(now)) {  // a host that cannot refuse the connection
        out.push_back(net::ServiceClose{request.id, net::CloseKind::kRst, false});
        return;
    }
    if (const auto dialect = dialect_of(request.target); dialect && request.method == "POST")
        state_->take_in(*dialect, request);
    else
        state_->answer_about_itself(request);
    state_->settle();
}

void ScriptedServer::client_left(base::Instant now, net::ConnectionId id,
                                 net::ServiceActions& out) {
    state_->now_ = now;
    state_->out = &out;
    const auto found = std::ranges::find_if(
        state_->answers, [&](const auto& answer) { return answer->sequence.id == id; });
    if (found != state_->answers.end() && (*found)->sequence.live()) {
        (*found)->sequence.state = State_::kEnded;
        for (const auto& plant : state_->plants) plant->left(*state_, (*found)->sequence);
    }
    state_->settle();
}

void ScriptedServer::wake(base::Instant now, net::ServiceActions& out) {
    state_->now_ = now;
    state_->out = &out;
    state_->pace.send_late_ends(now, out);
    state_->ring_alarms();
    state_->finish_prefills();
    if (state_->count(State_::kDecoding) > 0 && (!state_->next_step || *state_->next_step <= now))
        state_->step();
    state_->settle();
}

bool ScriptedServer::listening(base::Instant now) const { return now >= state_->down_until; }
std::int64_t ScriptedServer::answers_begun() const {
    return static_cast<std::int64_t>(state_->arrivals);
}
std::int64_t ScriptedServer::preemptions() const { return state_->preempted; }

}  // namespace fullstop::simulator
