// By SQLSTATE (appendix A of PostgreSQL's manual); whatever is not here is shown in the database's
// own words.
#include "adapters/postgres/trouble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace fullstop::adapters::postgres {
namespace {

constexpr const char* kElsewhere =
    "name another database or a file with --store, or keep nothing with --store none";

std::string option(const Target& target, const char* key, const char* otherwise) {
    const auto found = target.options.find(key);
    return found == target.options.end() ? otherwise : found->second;
}

base::Error not_connected(const Failure& failure, const Target& target) {
    const auto refused = [&](std::string hint) {
        return base::Error{
            base::ErrorKind::kUsage,
            fmt::format("the store {} cannot be used: {}", target.name, failure.what()),
            std::move(hint)};
    };
    const std::string user = option(target, "user", "USER"),
                      database = option(target, "dbname", user.c_str());
    const bool no_password =
        std::string_view(failure.what()).find("no password supplied") != std::string_view::npos;
    if (failure.state == "28P01" || no_password)
        return refused(
            fmt::format("the password of {} belongs into PGPASSWORD or ~/.pgpass", user));
    if (failure.state == "28000")
        return refused("pg_hba.conf of the database says who may come from where");
    if (failure.state == "3D000")
        return refused(
            fmt::format("create it: createdb --encoding UTF8 --template template0 {}", database));
    return {base::ErrorKind::kUnreachable,
            fmt::format("the store {} cannot be reached: {}", target.name, failure.what()),
            "is PostgreSQL running there, and are host and port right?"};
}

}  // namespace

std::string one_line(std::string_view words) {
    std::string out;
    for (const char c : words) {
        const bool blank = c == '\n' || c == '\t' || c == ' ';
        if (!blank) out += c;
        if (blank && !out.empty() && out.back() != ' ') out += ' ';
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    return out;
}

Refusal read_refusal(std::string_view verbose) {
    Refusal refusal;
    std::string text(verbose.substr(0, verbose.find("\nLOCATION:")));
    // "FATAL:  28P01: password ..."; the first word is in the server's language.
    for (std::size_t at = text.find(":  "); at != std::string::npos;
         at = text.find(":  ", at + 3)) {
        const std::string state = text.substr(at + 3, 5);
        const auto is_code = [](unsigned char c) {
            return std::isdigit(c) != 0 || std::isupper(c) != 0;
        };
        if (state.size() != 5 || !std::ranges::all_of(state, is_code) ||
            text.compare(at + 8, 2, ": ") != 0)
            continue;
        refusal.state = state;
        text.erase(at + 3, 7);
        break;
    }
    refusal.words = one_line(text);
    return refusal;
}

base::Error explain(const Failure& failure, const Target& target, const char* doing) {
    const std::string_view state = failure.state;
    if (failure.lost &&
        (state.empty() || state.starts_with("28") || state == "3D000" || state.starts_with("57P")))
        return not_connected(failure, target);
    const auto error = [&](std::string message, std::string hint) {
        return base::Error{base::ErrorKind::kUsage, fmt::format("{} (while {})", message, doing),
                           std::move(hint)};
    };
    if (state == "25006")
        return error(
            fmt::format(
                "the store {} cannot be written: the database is read-only, as a standby is",
                target.name),
            kElsewhere);
    if (state == "42501")
        return error(
            fmt::format("the store {}: {}", target.name, failure.what()),
            fmt::format("as the database's owner: GRANT CREATE ON DATABASE {0} TO {1}; where the "
                        "tables are already there: GRANT USAGE ON SCHEMA fullstop TO "
                        "{1}; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA fullstop TO {1}",
                        option(target, "dbname", "DB"), option(target, "user", "USER")));
    if (state.starts_with("53"))
        return error(
            fmt::format("the store {} takes nothing more: {}", target.name, failure.what()),
            "make room on the database's disk, or raise its limit");
    return error(fmt::format("the store {}: {}", target.name, failure.what()), kElsewhere);
}

base::Error damaged(const Target& target, const std::string& detail) {
    return {base::ErrorKind::kUsage,
            fmt::format("the store {} is damaged: {}", target.name, detail),
            "the rows in question were changed by something else; other runs can still be read"};
}

bool is_the_records_fault(const Failure& failure) {
    // Data exception, constraint, program limit exceeded.
    return !failure.lost && (failure.state.starts_with("22") || failure.state.starts_with("23") ||
                             failure.state.starts_with("54"));
}

}  // namespace fullstop::adapters::postgres
