// Written by hand with a line a point, so that two tables can be compared by eye; read with Boost.JSON.
#include "engine/cost_table.h"

#include <fmt/format.h>

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
base::Result<std::string> text_of(const json::object& object, const char* field, std::string_view name) {
    const json::value* value = object.if_contains(field);
    if (value == nullptr || !value->is_string()) return base::usage_error(fmt::format("{}: {} is a text", name, field));
    return std::string(value->get_string());
}

std::optional<CostPoint> point_of(const json::value& value) {
    if (!value.is_object()) return std::nullopt;
    const json::object& object = value.get_object();
    json::error_code error;
    const auto number = [&](const char* field) {
        const json::value* found = object.if_contains(field);
        if (found == nullptr || !found->is_number()) {
            error = json::make_error_code(json::error::not_number);
            return 0.0;
        }
        return found->to_number<double>();
    };
    const auto count = [&](const char* field) {
        json::error_code inexact;
        const json::value* found = object.if_contains(field);
        const auto read = found == nullptr || !found->is_number() ? -1 : found->to_number<std::int64_t>(inexact);
        if (inexact || read < 0) error = json::make_error_code(json::error::not_exact);
        return read;
    };
    CostPoint point{.pass = {.rows = count("rows"), .outputs = count("outputs"), .row_kv = number("row_kv"), .row_foreign = number("row_foreign")},
                    .ms = number("ms")};
    if (error || point.pass.row_kv < 0 || point.pass.row_foreign < 0) return std::nullopt;
    return point;
}

base::Result<CostModel> model_of(const json::object& object, std::string_view name) {
    const json::value* points = object.if_contains("points");
    if (points == nullptr || !points->is_array()) return base::usage_error(fmt::format("{}: points is a list", name));
    std::vector<CostPoint> read;
    for (const json::value& value : points->get_array()) {
        const auto point = point_of(value);
        if (!point)
            return base::usage_error(
                fmt::format("{}: points[{}] has the numbers rows, outputs, row_kv, row_foreign and ms, none of them negative", name, read.size()));
        read.push_back(*point);
    }
    auto model = CostModel::fit(std::move(read));
    if (!model) return base::usage_error(fmt::format("{}: {}", name, model.error().message));
    return model;
}

}  // namespace

std::string cost_json(const CostTable& table) {
    const CostKey& key = table.key;
    std::string out =
        fmt::format("{{\"schema\": \"{}\", \"model\": {}, \"build\": {}, \"layout\": {}, \"kv_type\": {}, \"threads\": {},\n \"measured\": {},\n", kCostSchema,
                    quoted(key.model), quoted(key.build), quoted(key.layout), quoted(key.kv_type), key.threads, quoted(table.measured));
    out += fmt::format(" \"fit_error\": {:.4f}, \"fit_noise\": {:.4f},\n \"coefficients\": {{", table.model.fit_error(), table.model.fit_noise());
    for (std::size_t i = 0; i < CostModel::kClasses; ++i) {
        const CostTerms& c = table.model.coefficients()[i];
        out +=
            fmt::format("{}\n  \"{}\": {{\"base_ms\": {:.6g}, \"row_ms\": {:.6g}, \"row_kv_ms\": {:.6g}, \"row_foreign_ms\": {:.6g}, \"output_ms\": {:.6g}}}",
                        i == 0 ? "" : ",", kClassNames[i], c[0], c[1], c[2], c[3], c[4]);
    }
    out += "},\n \"points\": [";
    bool first = true;
    for (const CostPoint& point : table.model.points())
        out += fmt::format("{}\n  {{\"rows\": {}, \"outputs\": {}, \"row_kv\": {}, \"row_foreign\": {}, \"ms\": {:.6f}}}",
                           std::exchange(first, false) ? "" : ",", point.pass.rows, point.pass.outputs, point.pass.row_kv, point.pass.row_foreign, point.ms);
    return out + "]}\n";
}

base::Result<CostTable> read_cost_table(std::string_view text, std::string_view name) {
    json::error_code error;
    const json::value document = json::parse(json::string_view(text.data(), text.size()), error);
    if (error) return base::usage_error(fmt::format("{} is not JSON: {}", name, error.message()));
    const json::value* schema = document.is_object() ? document.get_object().if_contains("schema") : nullptr;
    if (schema == nullptr || !schema->is_string() || schema->get_string() != json::string_view(kCostSchema.data(), kCostSchema.size()))
        return base::usage_error(fmt::format("{} is not a {} document", name, kCostSchema), "'fullstop simulate --calibrate' writes one");
    const json::object& object = document.get_object();
    CostTable table;
    const std::array<std::pair<const char*, std::string*>, 5> texts = {{{"model", &table.key.model},
                                                                        {"build", &table.key.build},
                                                                        {"layout", &table.key.layout},
                                                                        {"kv_type", &table.key.kv_type},
                                                                        {"measured", &table.measured}}};
    for (const auto& [field, out] : texts) {
        auto read = text_of(object, field, name);
        if (!read) return std::unexpected(read.error());
        *out = std::move(*read);
    }
    if (table.key.layout != "streams" && table.key.layout != "unified") return base::usage_error(fmt::format("{}: layout is streams or unified", name));
    const json::value* threads = object.if_contains("threads");
    if (threads == nullptr || !threads->is_int64() || threads->get_int64() < 1 || threads->get_int64() > 1024)
        return base::usage_error(fmt::format("{}: threads is a number from 1 to 1024", name));
    table.key.threads = static_cast<int>(threads->get_int64());
    auto model = model_of(object, name);
    if (!model) return std::unexpected(model.error());
    table.model = std::move(*model);
    return table;
}

}  // namespace fullstop::engine
