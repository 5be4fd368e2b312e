// Reads tests/plants/*.toml. It stands among the tests because only they and the command line know
// TOML.
#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>

#include "simulator/plants/fault.h"
#include "simulator/plants/scenario.h"
#include "simulator/plants/test_plant_file.h"
#include "simulator/plants/test_prompts.h"
#include "tests/support/source_dir.h"

namespace fullstop::simulator {
namespace {

/// A table whose every key must have been asked for in the end.
class Keys {
public:
    Keys(const toml::table* table, std::string place) : table_(table), place_(std::move(place)) {}

    void done() const {
        if (table_ == nullptr) return;
        for (const auto& [key, value] : *table_)
            if (!known_.contains(std::string(key.str())))
                throw std::runtime_error(fmt::format("{}: unknown key '{}'", place_, key.str()));
    }
    const toml::node* node(std::string_view key) {
        known_.emplace(key);
        return table_ == nullptr ? nullptr : table_->get(key);
    }
    Keys table(std::string_view key) {
        const auto* found = node(key);
        return {found == nullptr ? nullptr : found->as_table(), fmt::format("{}.{}", place_, key)};
    }
    template <class T>
    void read(std::string_view key, T& into) {
        const auto* found = node(key);
        if (found == nullptr) return;
        if constexpr (std::is_same_v<T, bool>) {
            into = need(found->value<bool>(), key);
        } else if constexpr (std::is_arithmetic_v<T>) {
            into = static_cast<T>(need(found->value<double>(), key));
        } else if constexpr (std::is_same_v<T, base::Duration>) {
            into = base::from_ms(1000 * need(found->value<double>(), key));
        } else {
            into = need(found->value<std::string>(), key);
        }
    }
    std::vector<std::string> words(std::string_view key) {
        std::vector<std::string> all;
        each(key,
             [&](const toml::node& item) { all.push_back(need(item.value<std::string>(), key)); });
        return all;
    }
    std::vector<double> numbers(std::string_view key) {
        std::vector<double> all;
        each(key, [&](const toml::node& item) { all.push_back(need(item.value<double>(), key)); });
        return all;
    }
    std::vector<std::vector<std::string>> rows(std::string_view key) {
        std::vector<std::vector<std::string>> all;
        each(key, [&](const toml::node& item) {
            auto& row = all.emplace_back();
            for (const auto& cell : *need(std::optional(item.as_array()), key))
                row.push_back(cell.is_string() ? **cell.as_string()
                                               : std::to_string(cell.value_or(std::int64_t{0})));
        });
        return all;
    }
    std::vector<Keys> tables(std::string_view key) {
        std::vector<Keys> all;
        each(key, [&](const toml::node& item) {
            all.emplace_back(item.as_table(), fmt::format("{}.{}[{}]", place_, key, all.size()));
        });
        return all;
    }
    template <class T>
    void choose(std::string_view key, const std::map<std::string_view, T>& words, T& into) {
        std::string word;
        read(key, word);
        if (word.empty()) return;
        const auto found = words.find(word);
        if (found == words.end())
            throw std::runtime_error(fmt::format("{}: '{}' is no {}", place_, word, key));
        into = found->second;
    }
    bool present() const { return table_ != nullptr; }

private:
    template <class T>
    T need(std::optional<T> value, std::string_view key) const {
        if (!value) throw std::runtime_error(fmt::format("{}: '{}' has another type", place_, key));
        return *value;
    }
    template <class Take>
    void each(std::string_view key, Take take) {
        const auto* found = node(key);
        if (found == nullptr) return;
        if (const auto* list = found->as_array())
            for (const auto& item : *list) take(item);
        else
            take(*found);
    }

    const toml::table* table_;
    std::string place_;
    std::set<std::string> known_;
};

const std::map<std::string_view, Plays> kPlays = {{"llama-server", Plays::kLlamaServer},
                                                  {"vllm", Plays::kVllm},
                                                  {"ollama", Plays::kOllama},
                                                  {"tabby", Plays::kTabby},
                                                  {"sglang", Plays::kSglang},
                                                  {"llama-cpp-python", Plays::kLlamaCppPython},
                                                  {"localai", Plays::kLocalAi},
                                                  {"litellm", Plays::kLiteLlm},
                                                  {"tgi", Plays::kTgi},
                                                  {"unknown", Plays::kUnknown}};
const std::map<std::string_view, Fault::When> kWhen = {
    {"arrival", Fault::When::kArrival},
    {"begin", Fault::When::kBegin},
    {"token", Fault::When::kToken},
    {"time", Fault::When::kTime},
    {"silence", Fault::When::kSilence},
    {"together", Fault::When::kTogether},
    {"pool", Fault::When::kPool},
    {"other arrives", Fault::When::kOtherArrives},
    {"other leaves", Fault::When::kOtherLeaves},
    {"ending", Fault::When::kEnding}};
const std::map<std::string_view, Fault::Does> kDoes = {
    {"end", Fault::Does::kEnd},       {"stall", Fault::Does::kStall},
    {"lose", Fault::Does::kLose},     {"mix", Fault::Does::kMix},
    {"garble", Fault::Does::kGarble}, {"cap", Fault::Does::kCap},
    {"think", Fault::Does::kThink},   {"run away", Fault::Does::kRunAway},
    {"die", Fault::Does::kDie}};
const std::map<std::string_view, BodyEnd> kBody = {{"last chunk", BodyEnd::kLastChunk},
                                                   {"fin", BodyEnd::kFin},
                                                   {"fin inside chunk", BodyEnd::kFinInsideChunk},
                                                   {"reset", BodyEnd::kReset}};

Ending read_ending(Keys keys) {
    Ending ending;
    if (!keys.present()) return ending;
    const auto word = [&](std::string_view key, std::optional<std::string>& into) {
        std::string text;
        keys.read(key, text);
        if (!text.empty()) into = text;
    };
    word("reason", ending.reason);
    word("eos_reason", ending.eos_reason);
    word("stop_reason", ending.stop_reason);
    word("verbatim", ending.verbatim);
    if (std::string event; keys.read("event", event), !event.empty())
        ending.verbatim = event + "\n\n";
    if (bool empty = false; keys.read("empty", empty), empty) ending.verbatim = "";
    answer::ServerError error;
    int status = 0;
    keys.read("status", status);
    keys.read("type", error.type);
    keys.read("text", error.text);
    if (status > 0) error.status = status;
    if (status > 0 || !error.text.empty()) ending.error = error;
    ending.terminator = ending.usage = ending.reason.has_value();
    keys.read("done", ending.terminator);
    keys.read("usage", ending.usage);
    keys.read("in_band", ending.error_always_in_band);
    keys.read("html", ending.html_error);
    keys.read("opening", ending.opening);
    keys.read("nameless_model", ending.nameless_model);
    keys.choose("body", kBody, ending.body);
    keys.done();
    return ending;
}

Fault read_fault(Keys keys) {
    Fault fault;
    keys.choose("when", kWhen, fault.when);
    keys.choose("does", kDoes, fault.does);
    keys.read("from", fault.from);
    keys.read("to", fault.to);
    keys.read("share", fault.share);
    keys.read("once", fault.once);
    fault.prompts = keys.words("prompts");
    keys.read("longer", fault.longer);
    keys.read("per_minute", fault.per_minute);
    keys.read("at_sentence", fault.at_sentence);
    keys.read("token", fault.token);
    keys.read("tokens", fault.tokens);
    keys.read("words", fault.words);
    keys.read("steps", fault.steps);
    keys.read("after_s", fault.after);
    keys.read("pause_s", fault.pause);
    keys.read("loading_s", fault.loading);
    keys.read("only_reason", fault.only_reason);
    for (const auto& [key, text] :
         {std::pair("says", &fault.says), std::pair("each_second", &fault.each_second)}) {
        keys.read(key, *text);
        if (!text->empty()) *text += "\n\n";
    }
    if (const auto place = keys.numbers("place"); !place.empty())
        fault.place = {place.front(), place.back()};
    for (const auto& row : keys.rows("caps"))
        fault.caps.emplace_back(std::stoi(row.at(0)), std::stoll(row.at(1)));
    fault.ending = read_ending(keys.table("ending"));
    fault.refusal = read_ending(keys.table("refusal"));
    keys.done();
    return fault;
}

void read_headers(Keys& keys, ServerScript& script) {
    for (const auto& row : keys.rows("headers")) script.headers.emplace_back(row.at(0), row.at(1));
}

std::vector<Fault> read_server(Keys keys, ServerScript& script) {
    keys.choose("plays", kPlays, script.plays);
    keys.read("slots", script.slots);
    keys.read("window", script.window);
    if (std::int64_t pool = 0; keys.read("pool", pool), pool > 0) script.pool = pool;
    if (const auto lengths = keys.numbers("lengths"); !lengths.empty()) {
        script.lengths.shortest = static_cast<int>(lengths.front());
        script.lengths.longest = static_cast<int>(lengths.back());
    }
    keys.read("long_share", script.lengths.long_share);
    keys.read("open_share", script.lengths.open_share);
    keys.read("itl_s", script.timing.itl);
    keys.read("itl_growth", script.timing.itl_growth);
    keys.read("varies", script.variance.at_load);
    keys.read("varies_alone", script.variance.alone);
    keys.read("thinking", script.thinking_tokens);
    keys.read("usage", script.tells.usage);
    keys.read("timings", script.tells.timings);
    keys.read("props", script.tells.props);
    keys.read("tool_calls", script.tool_calls);
    read_headers(keys, script);
    std::vector<Fault> faults;
    for (auto& fault : keys.tables("faults")) faults.push_back(read_fault(std::move(fault)));
    keys.done();
    return faults;
}

void read_noise(Keys keys, ServerScript& script) {
    auto& noise = script.noise;
    noise.end_jitter = std::chrono::milliseconds(40);
    noise.any_order = true;
    noise.most_tokens_an_event = 4;
    keys.read("end_jitter_s", noise.end_jitter);
    keys.read("tokens_an_event", noise.most_tokens_an_event);
    keys.read("cold", noise.cold);
    keys.read("drift_per_minute", noise.drift_per_minute);
    keys.read("hiccups", noise.hiccups);
    keys.read("cached_prefill", noise.cached_prefill);
    keys.done();
}

void read_run(Keys keys, VirtualRun& run) {
    keys.choose("api",
                {{"openai-chat", answer::Api::kOpenAiChat},
                 {"ollama", answer::Api::kOllama},
                 {"llama-server", answer::Api::kLlamaServer}},
                run.api);
    keys.read("stream", run.experiment.stream);
    keys.read("repeat", run.experiment.repeat);
    keys.read("stagger_s", run.experiment.stagger);
    if (const auto levels = keys.numbers("levels"); !levels.empty())
        run.experiment.levels.assign(levels.begin(), levels.end());
    keys.read("budget_s", run.experiment.budget);
    std::int64_t most = 512;
    keys.read("max_tokens", most);
    run.experiment.max_tokens = base::Tokens{most};
    if (most == 0) run.experiment.max_tokens.reset();
    if (base::Duration idle{}; keys.read("client_idle_s", idle), idle > base::Duration::zero())
        run.experiment.client_idle = idle;
    if (base::Duration most_time{};
        keys.read("client_deadline_s", most_time), most_time > base::Duration::zero())
        run.experiment.client_deadline = most_time;
    keys.done();
}

void read_gateway(Keys keys, VirtualRun& run, const std::vector<Fault>& behind) {
    if (!keys.present()) return;
    bool control = true, rewrites = false;
    keys.read("control", control);
    keys.read("rewrites", rewrites);
    if (control) {
        run.control.emplace();
        run.control->script = run.deployed.script;
        for (const auto& each : behind) run.control->plants.push_back(fault(each));
    }
    read_headers(keys, run.deployed.script);
    for (auto& each : keys.tables("faults"))
        run.deployed.plants.push_back(fault(read_fault(std::move(each))));
    if (rewrites) run.deployed.plants.push_back(rewrite_ends());
    keys.done();
}

Truth read_truth(Keys keys) {
    Truth truth;
    truth.verdicts = keys.words("verdict");
    truth.causes = keys.words("cause");
    truth.layers = keys.words("layer");
    truth.loads = keys.words("load");
    for (const auto level : keys.numbers("from")) truth.from.push_back(static_cast<int>(level));
    keys.read("confidence_at_least", truth.at_least);
    keys.read("confidence_at_most", truth.at_most);
    keys.read("known_miss", truth.known_miss);
    keys.done();
    return truth;
}

/// Answers that are all one JSON document, as the arguments of tool calls are.
std::vector<answer::Prompt> json_prompts() {
    auto prompts = eight_prompts();
    for (auto& each : prompts) {
        const auto facts = each.check.contains;
        each.check = {};
        each.check.json = true;
        each.check.contains = facts;
    }
    return prompts;
}

}  // namespace

PlantFile read_plant(const std::filesystem::path& path, std::uint64_t seed) {
    const auto file = toml::parse_file(path.string());
    Keys keys(&file, path.filename().string());
    keys.node("about");
    keys.node("source");
    PlantFile plant{
        .name = path.stem().string(), .truth = read_truth(keys.table("truth")), .run = {}};
    auto server = keys.table("server");
    bool json = false;
    server.read("tool_calls", json);
    plant.run = honest_run(json ? json_prompts() : eight_prompts(), seed);
    auto& script = plant.run.deployed.script;
    script.lengths.open_share = 0.2;
    read_noise(keys.table("noise"), script);
    read_run(keys.table("run"), plant.run);
    const auto faults = read_server(std::move(server), script);
    for (const auto& each : faults) plant.run.deployed.plants.push_back(fault(each));
    read_gateway(keys.table("gateway"), plant.run, faults);
    keys.done();
    return plant;
}

std::vector<std::filesystem::path> plant_files() {
    std::vector<std::filesystem::path> files;
    for (const auto& entry :
         std::filesystem::directory_iterator(tests::source_dir() / "tests/plants"))
        if (entry.path().extension() == ".toml") files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

}  // namespace fullstop::simulator
