// Reads what is there and of the right type; anything else leaves the fact as it was, with its
// reason.
#include "observe/server_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "observe/limits.h"
#include "observe/observer.h"

namespace fullstop::observe {
namespace {

namespace json = boost::json;
using answer::Fact;
using answer::ServerFacts;
using base::Tokens;

/// JSON null when the text is none.
json::value parse(std::string_view text) {
    boost::system::error_code error;
    json::value value = json::parse(text, error);
    return error ? json::value() : value;
}

/// The member at the end of `path`, or null.
const json::value& at(const json::value& value, std::initializer_list<std::string_view> path) {
    static const json::value kNothing;
    const json::value* here = &value;
    for (const std::string_view name : path) {
        const auto* object = here->if_object();
        here = object ? object->if_contains(name) : nullptr;
        if (!here) return kNothing;
    }
    return *here;
}

std::optional<std::int64_t> whole(const json::value& value) {
    if (value.is_int64()) return value.get_int64();
    if (value.is_double() && std::abs(value.get_double()) < 1e15)
        return static_cast<std::int64_t>(value.get_double());
    return std::nullopt;
}

std::optional<double> number(const json::value& value) {
    if (value.is_int64()) return static_cast<double>(value.get_int64());
    if (value.is_uint64()) return static_cast<double>(value.get_uint64());
    if (value.is_double()) return value.get_double();
    return std::nullopt;
}

std::string text(const json::value& value) {
    return value.is_string() ? std::string(value.get_string()) : std::string();
}

void tokens(const json::value& value, const std::string& how, Fact<Tokens>& fact) {
    if (const auto count = whole(value); count && *count > 0)
        fact = Fact<Tokens>::reported(Tokens{*count}, how);
}

void counted(const json::value& value, const std::string& how, Fact<std::int64_t>& fact) {
    if (const auto count = whole(value); count && *count > 0)
        fact = Fact<std::int64_t>::reported(*count, how);
}

}  // namespace

bool is_json(std::string_view body) {
    const json::value value = parse(body);
    return value.is_object() || value.is_array();
}

bool is_props(std::string_view body) {
    const json::value value = parse(body);
    return at(value, {"default_generation_settings"}).is_object() &&
           !at(value, {"total_slots"}).is_null();
}

void read_props(std::string_view body, ServerFacts& facts) {
    const json::value value = parse(body);
    if (!at(value, {"default_generation_settings"}).is_object()) return;
    facts.name = "llama-server";
    facts.how = "/props has default_generation_settings and total_slots";
    if (const std::string build = text(at(value, {"build_info"})); !build.empty())
        facts.version = build;
    for (const char* name : {"model_alias", "model_path"})
        if (facts.model.empty()) facts.model = text(at(value, {name}));
    tokens(at(value, {"default_generation_settings", "n_ctx"}),
           "/props default_generation_settings.n_ctx", facts.window);
    counted(at(value, {"total_slots"}), "/props total_slots", facts.slots);
    const std::int64_t slots = facts.slots.value.value_or(0);
    if (slots == 1 && facts.window) {
        facts.pool = Fact<Tokens>::derived(*facts.window, "one slot: the cache is its window");
        facts.shared_pool = Fact<bool>::derived(false, "one slot: nobody to share with");
    } else if (slots > 1) {
        facts.shared_pool = Fact<bool>::unavailable(
            fmt::format("/props does not say whether the {0} slots share one cache of n_ctx (-kvu, "
                        "or -np left out) or each own n_ctx "
                        "(-np {0}); the error text of a cut answer does",
                        slots));
        facts.pool = Fact<Tokens>::unavailable(
            "n_ctx if the slots share the cache, n_ctx x slots if each owns its part; /props does "
            "not say which");
    }
    const json::value& settings = at(value, {"default_generation_settings"});
    const json::value& defaults =
        at(settings, {"params"}).is_object() ? at(settings, {"params"}) : settings;
    const auto predict =
        whole(at(defaults, {at(defaults, {"n_predict"}).is_null() ? "max_tokens" : "n_predict"}));
    if (predict && *predict > 0)
        facts.default_max_tokens = Fact<Tokens>::reported(Tokens{*predict}, "/props n_predict");
    if (predict && *predict < 0)
        facts.default_max_tokens = Fact<Tokens>::unavailable(
            "no default: until the window is full (/props n_predict is -1)");
    if (const auto limit = number(at(defaults, {"t_max_predict_ms"})); limit && *limit > 0)
        facts.output_deadline_ms = Fact<double>::reported(*limit, "/props t_max_predict_ms");
    facts.max_queue =
        Fact<std::int64_t>::unavailable("llama-server lets requests wait without a limit");
    facts.kv_bytes_per_token = Fact<base::Bytes>::unavailable(
        "llama-server tells it only in its log (KV buffer size / cells)");
}

void read_slots(std::string_view body, ServerFacts& facts) {
    const json::value value = parse(body);
    const auto* list = value.if_array();
    if (!list || list->empty()) return;
    std::int64_t count = 0;
    for (const json::value& slot : *list)
        if (whole(at(slot, {"n_ctx"})).value_or(0) > 0) ++count;
    if (count == 0) return;
    if (!facts.slots) facts.slots = Fact<std::int64_t>::reported(count, "/slots entries");
    if (!facts.window) tokens(at(list->front(), {"n_ctx"}), "/slots n_ctx", facts.window);
}

void read_ollama_ps(std::string_view body, ServerFacts& facts) {
    const json::value value = parse(body);
    const auto* models = at(value, {"models"}).if_array();
    if (!models) return;
    for (const json::value& model : *models) {
        if (!facts.model.empty() && text(at(model, {"name"})) != facts.model &&
            text(at(model, {"model"})) != facts.model)
            continue;
        tokens(at(model, {"context_length"}), "/api/ps context_length", facts.window);
        if (facts.window)
            facts.shared_pool = Fact<bool>::derived(
                false, "Ollama starts its runner with the window for each parallel request");
        return;
    }
}

void read_ollama_show(std::string_view body, ServerFacts& facts) {
    const json::value value = parse(body);
    if (!at(value, {"model_info"}).is_object()) return;
    const std::string parameters = text(at(value, {"parameters"}));
    const auto parameter = [&](std::string_view name) -> std::optional<std::int64_t> {
        for (std::size_t start = 0; start < parameters.size();) {
            const auto end = std::min(parameters.find('\n', start), parameters.size());
            const std::string_view line = std::string_view(parameters).substr(start, end - start);
            start = end + 1;
            if (!line.starts_with(name) || line.size() <= name.size() ||
                (line[name.size()] != ' ' && line[name.size()] != '\t'))
                continue;
            std::int64_t number = 0;
            const auto digits = line.find_first_of("-0123456789", name.size());
            if (digits == std::string_view::npos) continue;
            if (std::from_chars(line.data() + digits, line.data() + line.size(), number).ec ==
                std::errc())
                return number;
        }
        return std::nullopt;
    };
    if (const auto predict = parameter("num_predict"); predict && *predict > 0)
        facts.default_max_tokens =
            Fact<Tokens>::reported(Tokens{*predict}, "/api/show parameters num_predict");
    if (facts.window) return;  // what runs (/api/ps) outranks what the model file says
    if (const auto window = parameter("num_ctx"); window && *window > 0) {
        facts.window = Fact<Tokens>::reported(Tokens{*window}, "/api/show parameters num_ctx");
    } else {
        facts.window = Fact<Tokens>::unavailable(
            "the model is not loaded yet and sets no num_ctx: Ollama will choose by free VRAM "
            "(4096 below 23 GiB)");
    }
}

void read_models(std::string_view body, ServerFacts& facts, std::vector<std::string>& models) {
    const json::value value = parse(body);
    const auto* list = at(value, {"data"}).if_array();
    if (!list) list = at(value, {"models"}).if_array();
    if (!list) return;
    models.clear();
    for (const json::value& model : *list) {
        std::string id = text(at(model, {"id"}));
        if (id.empty()) id = text(at(model, {"name"}));
        if (!id.empty()) models.push_back(std::move(id));
    }
    if (list->empty()) return;
    const json::value& first = list->front();
    if (facts.model.empty() && !models.empty()) facts.model = models.front();
    tokens(at(first, {"max_model_len"}), "/v1/models max_model_len", facts.window);
    if (!facts.window) tokens(at(first, {"meta", "n_ctx"}), "/v1/models meta.n_ctx", facts.window);
    if (!facts.window)
        tokens(at(first, {"loaded_context_length"}), "/v1/models loaded_context_length",
               facts.window);
}

bool read_fullstop_status(std::string_view body, ServerFacts& facts) {
    const json::value value = parse(body);
    // A gateway speaks for itself alone: what stands behind it is asked through it.
    if (text(at(value, {"server"})) != "fullstop" || text(at(value, {"role"})) == "gateway")
        return false;
    facts.name = "fullstop";
    facts.version = text(at(value, {"version"}));
    facts.how = "/fullstop/status";
    if (const std::string model = text(at(value, {"model"})); !model.empty()) facts.model = model;
    tokens(at(value, {"window"}), "/fullstop/status window", facts.window);
    tokens(at(value, {"pool"}), "/fullstop/status pool", facts.pool);
    counted(at(value, {"slots"}), "/fullstop/status slots", facts.slots);
    counted(at(value, {"max_queue"}), "/fullstop/status max_queue", facts.max_queue);
    if (const auto& shared = at(value, {"shared_pool"}); shared.is_bool())
        facts.shared_pool = Fact<bool>::reported(shared.get_bool(), "/fullstop/status shared_pool");
    if (const auto bytes = whole(at(value, {"kv_bytes_per_token"})); bytes && *bytes > 0)
        facts.kv_bytes_per_token =
            Fact<base::Bytes>::reported(base::Bytes{*bytes}, "/fullstop/status kv_bytes_per_token");
    facts.default_max_tokens = Fact<Tokens>::unavailable("no default: until the window is full");
    tokens(at(value, {"default_max_tokens"}), "/fullstop/status default_max_tokens",
           facts.default_max_tokens);
    facts.output_deadline_ms =
        Fact<double>::unavailable("none set (/fullstop/status output_deadline_ms is null)");
    if (const auto limit = number(at(value, {"output_deadline_ms"})); limit && *limit > 0)
        facts.output_deadline_ms =
            Fact<double>::reported(*limit, "/fullstop/status output_deadline_ms");
    return true;
}

bool read_tgi_info(std::string_view body, ServerFacts& facts) {
    const json::value value = parse(body);
    if (at(value, {"max_total_tokens"}).is_null() || at(value, {"model_id"}).is_null())
        return false;
    facts.name = "tgi";
    facts.version = text(at(value, {"version"}));
    facts.how = "/info has model_id and max_total_tokens";
    if (facts.model.empty()) facts.model = text(at(value, {"model_id"}));
    tokens(at(value, {"max_total_tokens"}), "/info max_total_tokens", facts.window);
    tokens(at(value, {"max_batch_total_tokens"}), "/info max_batch_total_tokens", facts.pool);
    counted(at(value, {"max_concurrent_requests"}),
            "/info max_concurrent_requests: beyond it requests are refused", facts.max_queue);
    if (facts.pool)
        facts.shared_pool =
            Fact<bool>::derived(true, "one budget of max_batch_total_tokens for the whole batch");
    return true;
}

bool read_koboldcpp_version(std::string_view body, ServerFacts& facts) {
    const json::value value = parse(body);
    if (text(at(value, {"result"})) != "KoboldCpp") return false;
    facts.name = "koboldcpp";
    facts.version = text(at(value, {"version"}));
    facts.how = "/api/extra/version says KoboldCpp";
    return true;
}

bool read_koboldcpp_context(std::string_view body, ServerFacts& facts) {
    const json::value value = parse(body);
    if (whole(at(value, {"value"})).value_or(0) <= 0) return false;
    tokens(at(value, {"value"}), "/api/extra/true_max_context_length", facts.window);
    return true;
}

bool read_sglang_info(std::string_view body, ServerFacts& facts) {
    const json::value value = parse(body);
    if (at(value, {"max_total_num_tokens"}).is_null()) return false;
    facts.name = "sglang";
    facts.how = "/get_server_info has max_total_num_tokens";
    if (const std::string version = text(at(value, {"version"})); !version.empty())
        facts.version = version;
    tokens(at(value, {"max_total_num_tokens"}), "/get_server_info max_total_num_tokens",
           facts.pool);
    tokens(at(value, {"context_length"}), "/get_server_info context_length", facts.window);
    counted(at(value, {"max_running_requests"}), "/get_server_info max_running_requests",
            facts.slots);
    counted(at(value, {"max_queued_requests"}), "/get_server_info max_queued_requests",
            facts.max_queue);
    facts.shared_pool =
        Fact<bool>::derived(true, "paged KV cache: all requests take pages from one pool");
    return true;
}

std::string version_of(std::string_view body) { return text(at(parse(body), {"version"})); }

std::string owner_of(std::string_view models_json) {
    const json::value value = parse(models_json);
    const auto* list = at(value, {"data"}).if_array();
    return list && !list->empty() ? text(at(list->front(), {"owned_by"})) : std::string();
}

std::string message_of(std::string_view body) {
    const json::value value = parse(body);
    std::string message = text(at(value, {"error", "message"}));
    for (const char* name : {"error", "message", "detail"})
        if (message.empty()) message = text(at(value, {name}));
    if (message.empty()) message = std::string(body.substr(0, kMaxQuotedBytes));
    if (message.size() > kMaxQuotedBytes) message.resize(kMaxQuotedBytes);
    for (char& c : message)
        if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    return message;
}

void sample_slots(std::string_view body, answer::Sample& sample) {
    const json::value value = parse(body);
    const auto* list = value.if_array();
    if (!list || list->empty()) return;
    std::optional<double> running;
    double held = 0, in_use = 0;
    bool tells_tokens = false;
    for (const json::value& slot : *list) {
        const auto& busy = at(slot, {"is_processing"});
        if (busy.is_bool()) running = running.value_or(0) + (busy.get_bool() ? 1 : 0);
        if (const auto count = number(at(slot, {"n_prompt_tokens"}))) {
            tells_tokens = true;
            held += *count;
            if (busy.is_bool() && busy.get_bool()) in_use += *count;
        }
    }
    if (!sample.running) sample.running = running;
    if (!tells_tokens) return;
    // Idle slots keep their tokens cached and are purged on need: held is more than what running
    // answers need. Nor does a sum a little above one slot's n_ctx prove that the slots do not
    // share one cache: each counts its last token, which is in none.
    sample.counters["slots.tokens_held"] = held;
    sample.counters["slots.tokens_running"] = in_use;
}

void sample_fullstop_status(std::string_view body, answer::Sample& sample) {
    const json::value value = parse(body);
    const auto used = number(at(value, {"kv_tokens_used"})), pool = number(at(value, {"pool"}));
    if (used && pool && *pool > 0) sample.kv_used = *used / *pool;
    if (const auto running = number(at(value, {"running"}))) sample.running = running;
    if (const auto waiting = number(at(value, {"waiting"}))) sample.waiting = waiting;
    if (const auto reserved = number(at(value, {"kv_tokens_reserved"})))
        sample.counters["kv_tokens_reserved"] = *reserved;
}

void sample_ollama_ps(std::string_view body, answer::Sample& sample) {
    const json::value value = parse(body);
    const auto* models = at(value, {"models"}).if_array();
    if (!models) return;
    double vram = 0;
    for (const json::value& model : *models) vram += number(at(model, {"size_vram"})).value_or(0);
    sample.counters["size_vram"] = vram;
}

}  // namespace fullstop::observe
