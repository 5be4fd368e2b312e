// One table of a TOML file, read key by key: each key is asked for with its type and its bounds,
// what is wrong is kept with its line, and what was never asked for is an error at the end. The
// first error is the one that is told.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace fullstop::cli {

struct TomlError {
    std::string file;
    std::optional<base::Error> first;
    std::set<std::string> asked;  ///< full names of all keys that were asked for
    void add(const toml::node& at, const std::string& key, const std::string& what,
             const std::string& hint = {});
};

class TomlTable {
public:
    TomlTable(const toml::table& table, std::string path, TomlError& error)
        : table_(table), path_(std::move(path)), error_(error) {}
    TomlTable(const TomlTable&) = delete;
    TomlTable& operator=(const TomlTable&) = delete;
    /// Unknown keys are told here.
    ~TomlTable();

    std::optional<std::string> text(const char* key);
    std::optional<std::vector<std::string>> texts(const char* key);
    std::optional<bool> boolean(const char* key);
    std::optional<std::int64_t> integer(const char* key, std::int64_t least,
                                        std::int64_t most = INT64_MAX);
    std::optional<double> number(const char* key, double least, double most);
    /// "90s", "10m", "500ms", or seconds as a number; `none` gives an inner nullopt. Zero is
    /// refused.
    std::optional<std::optional<base::Duration>> limit(const char* key);
    std::optional<base::Duration> duration(const char* key);
    void table(const char* key, const std::function<void(TomlTable&)>& read);
    void tables(const char* key, const std::function<void(TomlTable&)>& read);

    bool has(const char* key) const { return table_.contains(key); }
    void wrong(const std::string& what, const std::string& hint = {}) {
        error_.add(table_, path_, what, hint);
    }
    void wrong_value(const char* key, const std::string& what, const std::string& hint = {});

private:
    const toml::node* take(const char* key);
    std::string name(const std::string& key) const {
        return path_.empty() ? key : path_ + "." + key;
    }

    const toml::table& table_;
    std::string path_;
    TomlError& error_;
    std::set<std::string, std::less<>> asked_;
};

}  // namespace fullstop::cli
