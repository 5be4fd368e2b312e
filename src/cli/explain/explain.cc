// Files are told apart by their content (wire/captures/capture.h); all answers of one call are of
// one moment and are judged together.
#include "cli/explain/explain.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <ostream>

#include "cli/input_file.h"
#include "cli/output.h"
#include "judge/verdict.h"
#include "report/explanation.h"
#include "wire/captures/capture.h"

namespace fullstop::cli {
namespace {

using answer::Record;

/// A thousand tokens are half a megabyte of events.
constexpr std::size_t kMaxCaptureBytes = 64 * 1024 * 1024;
constexpr std::size_t kMaxRequestBytes = 16 * 1024 * 1024;

struct ExplainFlags {
    std::vector<std::string> files;
    std::string request, baseline, json;
    bool quiet = false;
};

struct Saved {
    std::string file, bytes;
    std::vector<Record> records;
};

base::Result<std::string> bytes_of(const std::string& file, std::size_t most) {
    return read_input(file == "-" ? "/dev/stdin" : file, most, "saved answer",
                      "give the file that holds the response, or - for standard input");
}

/// By the first bytes of a file; "" when it is not packed.
std::string_view packed_by(std::string_view bytes) {
    if (bytes.starts_with("\x1f\x8b")) return "gzip";
    return bytes.starts_with("\x28\xb5\x2f\xfd") ? "zstd" : "";
}

/// By its head: a body that nobody unpacked holds no words to judge.
std::string_view packed(const Record& record) {
    constexpr std::array<std::string_view, 4> kCodings = {"gzip", "deflate", "br", "zstd"};
    const auto coding = record.headers.find("content-encoding");
    if (coding == record.headers.end() || !record.text.empty()) return {};
    const auto known = std::ranges::find_if(kCodings, [&](std::string_view one) {
        return coding->second.find(one) != std::string::npos;
    });
    return known == kCodings.end() ? std::string_view() : *known;
}

std::unexpected<base::Error> is_packed(const std::string& file, std::string_view coding) {
    return base::usage_error(fmt::format("{}: the body is packed ({})", file, coding),
                             "unpack it, or save it again with curl --compressed");
}

base::Result<Saved> read_saved(const std::string& file, const std::string& request) {
    auto bytes = bytes_of(file, kMaxCaptureBytes);
    if (!bytes) return std::unexpected(bytes.error());
    Saved saved{
        .file = file == "-" ? "standard input" : file, .bytes = std::move(*bytes), .records = {}};
    if (const auto coding = packed_by(saved.bytes); !coding.empty())
        return is_packed(saved.file, coding);
    auto records = wire::read_capture(saved.bytes, request);
    if (!records) {
        base::Error error = records.error();
        error.message = saved.file + ": " + error.message;
        return std::unexpected(error);
    }
    saved.records = std::move(*records);
    for (const Record& record : saved.records)
        if (const auto coding = packed(record); !coding.empty())
            return is_packed(saved.file, coding);
    return saved;
}

/// Names of several answers of one file; ids that the together-judgement can quote.
void name_answers(Saved& saved) {
    for (std::size_t i = 0; i < saved.records.size(); ++i) {
        std::string& id = saved.records[i].request.id;
        if (id.empty())
            id = saved.records.size() == 1 ? saved.file
                                           : fmt::format("answer {} of {}", i + 1, saved.file);
    }
}

base::Result<report::Explanations> explain(const ExplainFlags& flags) {
    std::string request;
    if (!flags.request.empty()) {
        auto text = bytes_of(flags.request, kMaxRequestBytes);
        if (!text) return std::unexpected(text.error());
        request = std::move(*text);
    }
    std::vector<Record> records, baselines;
    std::vector<std::pair<std::string, report::Place>> places;
    for (const std::string& file : flags.files) {
        auto saved = read_saved(file, request);
        if (!saved) return std::unexpected(saved.error());
        name_answers(*saved);
        for (Record& record : saved->records) {
            places.emplace_back(record.request.id, report::place_of(record, saved->bytes));
            records.push_back(std::move(record));
        }
    }
    if (!flags.baseline.empty()) {
        auto saved = read_saved(flags.baseline, request);
        if (!saved) return std::unexpected(saved.error());
        baselines = std::move(saved->records);
    }
    report::Explanations out;
    out.together = judge::judge_together(records, baselines);
    for (std::size_t i = 0; i < records.size(); ++i)
        out.answers.push_back({.file = places[i].first,
                               .record = std::move(records[i]),
                               .finding = out.together.findings[i],
                               .place = places[i].second});
    return out;
}

int exit_of(const report::Explanations& explanations) {
    bool open = false;
    for (const report::Explanation& one : explanations.answers) {
        if (one.finding.shortened.value_or(false)) return kExitShortened;
        open = open || !one.finding.shortened;
    }
    return open ? kExitInconclusive : kExitNotShortened;
}

int run_explain(const World& world, const ExplainFlags& flags) {
    const auto explanations = explain(flags);
    if (!explanations) return fail(world, explanations.error());
    if (explanations->answers.empty())
        return fail(world, {base::ErrorKind::kUsage, "no answer is in these files", ""});
    if (!flags.json.empty())
        if (auto written = write_document(world, flags.json, report::to_json(*explanations));
            !written)
            return fail(world, written.error());
    if (flags.json != "-")
        world.out << report::to_terminal(*explanations, wants_colour(world, flags.quiet));
    return exit_of(*explanations);
}

}  // namespace

Command add_explain(CLI::App& root, World& world) {
    auto flags = std::make_shared<ExplainFlags>();
    CLI::App* app = root.add_subcommand(
        "explain", "say why saved answers ended: no server, no load, only their bytes");
    app->add_option("FILE", flags->files,
                    "saved responses, told apart by their content: curl -i, curl --raw -i, HAR, "
                    "a bare body, or fullstop's own captures; - is standard input")
        ->required();
    app->add_option("--request", flags->request,
                    "the request's JSON: then a limit that was asked for can be told from a hidden "
                    "one")
        ->type_name("FILE");
    app->add_option("--baseline", flags->baseline,
                    "the same requests answered alone, in the same order")
        ->type_name("FILE");
    app->add_option("--json", flags->json, "write the explanation as JSON; - is standard output")
        ->type_name("FILE");
    app->add_flag("--quiet", flags->quiet, "no colour");
    app->footer(
        "Examples:\n"
        "  curl -isN URL -d @request.json | fullstop explain -          one answer as it came\n"
        "  fullstop explain answer.txt --request request.json           what was asked is known\n"
        "  fullstop explain 1.raw 2.raw 3.raw                           of one moment, together\n"
        "\n"
        "Saved with curl --raw, a response keeps the marks of its framing, and a cut body shows.\n"
        "Exit: 0 whole, 1 cut, 2 usage, 3 the bytes do not tell.");
    return {app, [&world, flags] { return run_explain(world, *flags); }};
}

}  // namespace fullstop::cli
