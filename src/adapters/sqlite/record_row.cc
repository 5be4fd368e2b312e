// JSON for the named fields, little-endian integers for the two long lists of times.
#include "adapters/sqlite/record_row.h"

#include "adapters/sqlite/encoding.h"
#include "adapters/sqlite/fields.h"

namespace fullstop::adapters::sqlite {
namespace {

void append(std::string& blob, std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) blob.push_back(static_cast<char>(value >> shift & 0xFF));
}
std::uint64_t integer_at(std::string_view blob, std::size_t offset) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) value |= static_cast<std::uint64_t>(static_cast<unsigned char>(blob[offset + i])) << (8 * i);
    return value;
}
base::Duration time_at(std::string_view blob, std::size_t offset) { return base::Duration(static_cast<std::int64_t>(integer_at(blob, offset))); }

}  // namespace

RecordRow to_row(const answer::Record& record) {
    RecordRow row{.recorded = to_text(record), .gaps = {}, .arrivals = {}};
    row.gaps.reserve(record.timeline.gaps.size() * 8);
    for (const base::Duration gap : record.timeline.gaps) append(row.gaps, static_cast<std::uint64_t>(gap.count()));
    row.arrivals.reserve(record.capture.arrivals.size() * 16);
    for (const auto& arrival : record.capture.arrivals) {
        append(row.arrivals, static_cast<std::uint64_t>(arrival.at.count()));
        append(row.arrivals, arrival.end);
    }
    return row;
}

void from_row(const RecordRow& row, answer::Record& record) {
    from_text(row.recorded, record);
    expect(row.gaps.size() % 8 == 0 && row.arrivals.size() % 16 == 0, "whole times");
    for (std::size_t i = 0; i < row.gaps.size(); i += 8) record.timeline.gaps.push_back(time_at(row.gaps, i));
    for (std::size_t i = 0; i < row.arrivals.size(); i += 16)
        record.capture.arrivals.push_back({.at = time_at(row.arrivals, i), .end = integer_at(row.arrivals, i + 8)});
}

}  // namespace fullstop::adapters::sqlite
