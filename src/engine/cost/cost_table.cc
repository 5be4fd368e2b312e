// Written by hand with a line a point, so that two tables can be compared by eye; read with
// Boost.JSON.
#include "engine/cost/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace fullstop::engine {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, CostModel::kClasses> kClassNames = {"1", "2-63", "64-"};

std::string quoted(std::string_view text) { return json::serialize(json::string(text)); }

/// A field of `object` that must be there and of the right kind, or what is wrong with it.
base::Result<std::string> text_of(const json::object& object, const char* field,
                                  std::string_view name) {
    const json::value* value = object.if_contains(field);
    if (value == nullptr || !value->is_string())
        return base::usage_error(fmt::format("{}: {} is a text", name, field));
    return std::string(value->get_string());
}

/// A field that is a number from `low`; `error` is set when it is none.
double number_of(const json::object& object, const char* field, double low, bool& wrong) {
    const json::value* found = object.if_contains(field);
    const double number = found != nullptr && found->is_number() ? found->to_number<double>() : -1;
    wrong = wrong || !(number >= low);
    return number;
}

std::int64_t count_of(const json::object& object, const char* field, std::int64_t low,
                      bool& wrong) {
    json::error_code inexact;
    const json::value* found = object.if_contains(field);
    const auto number =
        found != nullptr && found->is_number() ? found->to_number<std::int64_t>(inexact) : -1;
    wrong = wrong || inexact || number < low;
    return number;
}

std::optional<CostPoint> point_of(const json::value& value) {
    if (!value.is_object()) return std::nullopt;
    const json::object& object = value.get_object();
    bool wrong = false;
    const CostPoint point{.pass = {.rows = count_of(object, "rows", 0, wrong),
                                   .outputs = count_of(object, "outputs", 0, wrong),
                                   .row_kv = number_of(object, "row_kv", 0, wrong),
                                   .row_foreign = number_of(object, "row_foreign", 0, wrong)},
                          .ms = number_of(object, "ms", 0, wrong)};
    return wrong ? std::nullopt : std::optional(point);
}

base::Result<SwapCost> swap_of(const json::object& object, std::string_view name) {
    const json::value* swaps = object.if_contains("swaps");
    if (swaps == nullptr || !swaps->is_array())
        return base::usage_error(fmt::format("{}: swaps is a list", name));
    std::vector<SwapPoint> read;
    for (const json::value& value : swaps->get_array()) {
        bool wrong = !value.is_object();
        if (!wrong)
            read.push_back({.tokens = {count_of(value.get_object(), "tokens", 1, wrong)},
                            .out_ms = number_of(value.get_object(), "out_ms", 0, wrong),
                            .in_ms = number_of(value.get_object(), "in_ms", 0, wrong)});
        if (wrong)
            return base::usage_error(
                fmt::format("{}: swaps[{}] has the numbers tokens, out_ms and in_ms", name,
                            read.size() - (value.is_object() ? 1 : 0)));
    }
    return SwapCost(std::move(read));
}

base::Result<CostModel> model_of(const json::object& object, std::string_view name) {
    const json::value* points = object.if_contains("points");
    if (points == nullptr || !points->is_array())
        return base::usage_error(fmt::format("{}: points is a list", name));
    std::vector<CostPoint> read;
    for (const json::value& value : points->get_array()) {
        const auto point = point_of(value);
        if (!point)
            return base::usage_error(
                fmt::format("{}: points[{}] has the numbers rows, outputs, row_kv, row_foreign and "
                            "ms, none of them negative",
                            name, read.size()));
        read.push_back(*point);
    }
    auto model = CostModel::fit(std::move(read));
    if (!model) return base::usage_error(fmt::format("{}: {}", name, model.error().message));
    return model;
}

}  // namespace

std::string cost_json(const CostTable& table) {
    const CostKey& key = table.key;
    std::string out = fmt::format(
        "{{\"schema\": \"{}\", \"model\": {}, \"build\": {}, \"layout\": {}, \"kv_type\": {}, "
        "\"threads\": {},\n \"measured\": {},\n",
        kCostSchema, quoted(key.model), quoted(key.build), quoted(to_string(key.layout)),
        quoted(to_string(key.kv_type)), key.threads, quoted(table.measured));
    out += fmt::format(
        " \"kv_bytes_per_token\": {}, \"fit_error\": {:.4f}, \"fit_noise\": {:.4f}, "
        "\"step_error\": {},\n \"coefficients\": {{",
        table.kv_bytes_per_token.count, table.model.fit_error(), table.model.fit_noise(),
        table.step_error ? fmt::format("{:.4f}", *table.step_error) : "null");
    for (std::size_t i = 0; i < CostModel::kClasses; ++i) {
        const CostTerms& c = table.model.coefficients()[i];
        out += fmt::format(
            "{}\n  \"{}\": {{\"base_ms\": {:.6g}, \"row_ms\": {:.6g}, \"row_kv_ms\": {:.6g}, "
            "\"row_foreign_ms\": {:.6g}, \"output_ms\": {:.6g}}}",
            i == 0 ? "" : ",", kClassNames[i], c[0], c[1], c[2], c[3], c[4]);
    }
    out += "},\n \"points\": [";
    bool first = true;
    for (const CostPoint& point : table.model.points())
        out += fmt::format(
            "{}\n  {{\"rows\": {}, \"outputs\": {}, \"row_kv\": {}, \"row_foreign\": {}, \"ms\": "
            "{:.6f}}}",
            std::exchange(first, false) ? "" : ",", point.pass.rows, point.pass.outputs,
            point.pass.row_kv, point.pass.row_foreign, point.ms);
    out += "],\n \"swaps\": [";
    first = true;
    for (const SwapPoint& point : table.swap.points())
        out += fmt::format("{}\n  {{\"tokens\": {}, \"out_ms\": {:.6f}, \"in_ms\": {:.6f}}}",
                           std::exchange(first, false) ? "" : ",", point.tokens.count, point.out_ms,
                           point.in_ms);
    return out + "]}\n";
}

base::Result<CostTable> read_cost_table(std::string_view text, std::string_view name) {
    json::error_code unread;
    const json::value document = json::parse(json::string_view(text.data(), text.size()), unread);
    if (unread) return base::usage_error(fmt::format("{} is not JSON: {}", name, unread.message()));
    const json::value* schema =
        document.is_object() ? document.get_object().if_contains("schema") : nullptr;
    if (schema == nullptr || !schema->is_string() ||
        schema->get_string() != json::string_view(kCostSchema.data(), kCostSchema.size()))
        return base::usage_error(fmt::format("{} is not a {} document", name, kCostSchema),
                                 "'fullstop simulate --calibrate' writes one");
    const json::object& object = document.get_object();
    CostTable table;
    std::string layout, kv_type;
    const std::array<std::pair<const char*, std::string*>, 5> texts = {
        {{"model", &table.key.model},
         {"build", &table.key.build},
         {"layout", &layout},
         {"kv_type", &kv_type},
         {"measured", &table.measured}}};
    for (const auto& [field, out] : texts) {
        auto read = text_of(object, field, name);
        if (!read) return std::unexpected(read.error());
        *out = std::move(*read);
    }
    if (!kv_layout_of(layout))
        return base::usage_error(fmt::format("{}: layout is streams or unified", name));
    if (!kv_type_of(kv_type))
        return base::usage_error(fmt::format("{}: kv_type is q8_0 or f16", name));
    table.key.layout = *kv_layout_of(layout);
    table.key.kv_type = *kv_type_of(kv_type);
    bool wrong = false;
    table.key.threads =
        static_cast<int>(std::min<std::int64_t>(count_of(object, "threads", 1, wrong), INT32_MAX));
    if (wrong) return base::usage_error(fmt::format("{}: threads is a number from 1", name));
    table.kv_bytes_per_token = {count_of(object, "kv_bytes_per_token", 1, wrong)};
    if (wrong)
        return base::usage_error(fmt::format("{}: kv_bytes_per_token is a number from 1", name));
    if (const json::value* error = object.if_contains("step_error");
        error != nullptr && !error->is_null()) {
        table.step_error = number_of(object, "step_error", 0, wrong);
        if (wrong)
            return base::usage_error(
                fmt::format("{}: step_error is a number from 0, or null", name));
    }
    auto model = model_of(object, name);
    if (!model) return std::unexpected(model.error());
    table.model = std::move(*model);
    auto swap = swap_of(object, name);
    if (!swap) return std::unexpected(swap.error());
    table.swap = std::move(*swap);
    return table;
}

}  // namespace fullstop::engine
