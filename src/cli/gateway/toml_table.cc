// Types are checked strictly: "8" is no number, and 8 is no text. Only times may be either.
#include "cli/gateway/toml_table.h"

#include <fmt/format.h>

#include "cli/probe/probe_options.h"

namespace fullstop::cli {
namespace {

std::string listed(const std::set<std::string, std::less<>>& names) {
    std::string out;
    for (const auto& name : names) out += (out.empty() ? "" : ", ") + name;
    return out;
}

}  // namespace

void TomlError::add(const toml::node& at, const std::string& key, const std::string& what,
                    const std::string& hint) {
    if (first) return;
    const auto line = at.source().begin.line;
    first = base::Error{
        base::ErrorKind::kUsage,
        fmt::format("{}:{}: {}{}{}", file, line, key, key.empty() ? "" : ": ", what), hint};
}

TomlTable::~TomlTable() {
    for (const auto& [key, node] : table_) {
        const std::string_view word = key.str();
        if (!asked_.contains(word))
            error_.add(node, name(std::string(word)), "unknown key",
                       "known here: " + listed(asked_));
    }
}

const toml::node* TomlTable::take(const char* key) {
    asked_.insert(key);
    error_.asked.insert(name(key));
    return table_.get(key);
}

void TomlTable::wrong_value(const char* key, const std::string& what, const std::string& hint) {
    const toml::node* node = table_.get(key);
    error_.add(node != nullptr ? *node : table_, name(key), what, hint);
}

std::optional<std::string> TomlTable::text(const char* key) {
    const toml::node* node = take(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_string())
        return error_.add(*node, name(key), "wants a text in quotes"), std::nullopt;
    return node->value<std::string>();
}

std::optional<std::vector<std::string>> TomlTable::texts(const char* key) {
    const toml::node* node = take(key);
    if (node == nullptr) return std::nullopt;
    std::vector<std::string> out;
    const toml::array* array = node->as_array();
    if (array == nullptr)
        return error_.add(*node, name(key), "wants a list of texts, for example [\"a\", \"b\"]"),
               std::nullopt;
    for (const toml::node& each : *array) {
        if (!each.is_string())
            return error_.add(each, name(key), "wants texts in its list"), std::nullopt;
        out.push_back(each.value_or(std::string()));
    }
    return out;
}

std::optional<bool> TomlTable::boolean(const char* key) {
    const toml::node* node = take(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_boolean())
        return error_.add(*node, name(key), "wants true or false"), std::nullopt;
    return node->value<bool>();
}

std::optional<std::int64_t> TomlTable::integer(const char* key, std::int64_t least,
                                               std::int64_t most) {
    const toml::node* node = take(key);
    if (node == nullptr) return std::nullopt;
    const auto value = node->is_integer() ? node->value<std::int64_t>() : std::nullopt;
    if (value && *value >= least && *value <= most) return value;
    const std::string range = most == INT64_MAX ? fmt::format("of at least {}", least)
                                                : fmt::format("from {} to {}", least, most);
    error_.add(*node, name(key), fmt::format("wants a whole number {}", range));
    return std::nullopt;
}

std::optional<double> TomlTable::number(const char* key, double least, double most) {
    const toml::node* node = take(key);
    if (node == nullptr) return std::nullopt;
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (value && *value >= least && *value <= most) return value;
    error_.add(*node, name(key), fmt::format("wants a number from {:g} to {:g}", least, most));
    return std::nullopt;
}

std::optional<std::optional<base::Duration>> TomlTable::limit(const char* key) {
    const toml::node* node = table_.get(key);
    if (node != nullptr && node->is_string() && node->value_or(std::string()) == "none") {
        take(key);
        return std::optional<base::Duration>();
    }
    std::optional<std::optional<base::Duration>> out;
    if (const auto value = duration(key)) out.emplace(value);
    return out;
}

std::optional<base::Duration> TomlTable::duration(const char* key) {
    const toml::node* node = take(key);
    if (node == nullptr) return std::nullopt;
    std::string flags;
    if (node->is_string())
        flags = node->value_or(std::string());
    else if (node->is_number())
        flags = fmt::format("{}", node->value_or(0.0));
    const auto value = parse_duration(flags, key);
    if (value && *value > base::Duration::zero()) return *value;
    error_.add(*node, name(key), "wants a time above 0",
               "for example \"90s\", \"10m\" or \"500ms\"");
    return std::nullopt;
}

void TomlTable::table(const char* key, const std::function<void(TomlTable&)>& read) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    const toml::table* inner = node->as_table();
    if (inner == nullptr) return error_.add(*node, name(key), "wants a table");
    TomlTable reader(*inner, name(key), error_);
    read(reader);
}

void TomlTable::tables(const char* key, const std::function<void(TomlTable&)>& read) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr)
        return error_.add(*node, name(key), fmt::format("wants tables: [[{}]]", name(key)));
    for (const toml::node& each : *array) {
        const toml::table* inner = each.as_table();
        if (inner == nullptr)
            return error_.add(each, name(key), fmt::format("wants tables: [[{}]]", name(key)));
        TomlTable reader(*inner, name(key), error_);
        read(reader);
    }
}

}  // namespace fullstop::cli
