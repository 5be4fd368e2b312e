// Reading of a JSON Schema node by node; internal to json_schema. A reference's target is read
// later, once, so that neither cycles nor long chains of references are recursion here.
#pragma once

#include <boost/json/object.hpp>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "schema/json_schema.h"
#include "schema/limits.h"

namespace fullstop::schema {

class SchemaReader {
public:
    explicit SchemaReader(const boost::json::value& root) : root_(root) {}
    std::expected<JsonSchema, std::string> read();

private:
    /// A schema that stands at `path`.
    struct Place {
        const boost::json::value* schema = nullptr;
        std::string path{};
    };
    SchemaNodeId add(const Place& place);
    SchemaNodeId target(const Place& place, std::string_view reference);
    SchemaNode node(const Place& place);
    SchemaNode typed(const Place& place, std::string_view type);
    std::vector<std::string_view> types_of(const Place& place, const boost::json::object& schema);
    void check_keywords(const Place& place, const boost::json::object& schema,
                        const std::vector<std::string_view>& types);

    SchemaNode alternatives(const Place& place, std::string_view key);
    SchemaNode literals(const Place& place, const boost::json::object& schema,
                        const std::vector<std::string_view>& types);
    SchemaNode object(const Place& place, const boost::json::object& schema);
    void read_others(const Place& place, const boost::json::object& schema, JsonObject& out);
    void read_required(const Place& place, const boost::json::object& schema, JsonObject& out);
    SchemaNode list(const Place& place, const boost::json::object& schema);
    SchemaNode text(const Place& place, const boost::json::object& schema);
    void read_text_pattern(const Place& place, const boost::json::value& pattern, JsonText& out);
    void count_rules(const Place& place, std::int64_t more);
    SchemaNode number(const Place& place, const boost::json::object& schema);
    SchemaNode whole_number(const Place& place, const boost::json::object& schema);
    std::optional<std::int64_t> count(const Place& place, const boost::json::object& schema,
                                      std::string_view key);
    std::optional<std::int64_t> bound(const Place& place, const boost::json::object& schema,
                                      std::string_view key, std::string_view exclusive,
                                      int inwards);
    /// The first error counts; what is read after it does not matter.
    void fail(const Place& place, std::string_view what);

    const boost::json::value& root_;
    JsonSchema out_{};
    std::map<const boost::json::value*, SchemaNodeId> targets_{};
    std::deque<std::pair<SchemaNodeId, Place>> waiting_{};  ///< targets that were not read yet
    std::size_t literals_ = 0, excluded_bytes_ = 0;
    std::int64_t repetitions_ = 0;
    std::size_t pattern_work_ = kMaxPatternWork;
    std::string wrong_{};
};

}  // namespace fullstop::schema
