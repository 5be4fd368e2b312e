// Does judge say of each plant in tests/plants what is true of it, and no more surely than it may?
// Whole runs in virtual time, three seeds each, with the noise of real machines. Prints a row for
// each plant.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "judge/verdict.h"
#include "report/json/run_json.h"
#include "simulator/plants/test_plant_file.h"
#include "tests/support/source_dir.h"

namespace fullstop::simulator {
namespace {

constexpr std::uint64_t kSeeds[] = {11, 12, 13};

/// The run as its document: names, not types.
boost::json::object document_of(VirtualRun plan) {
    auto played = run_probe(std::move(plan));
    auto judgement = judge::judge(played.run);
    const auto text = report::to_json(report::make_document(played.run, std::move(judgement)));
    return boost::json::parse(text).as_object();
}

std::string word(const boost::json::object& verdict, std::string_view key) {
    const auto* found = verdict.if_contains(key);
    return found != nullptr && found->is_string() ? std::string(found->as_string()) : "-";
}

std::string load_of(const boost::json::object& verdict) {
    const auto* found = verdict.if_contains("load");
    return found != nullptr && found->is_object() ? word(found->as_object(), "value") : "-";
}

int from_of(const boost::json::object& verdict) {
    const auto* found = verdict.if_contains("from_concurrency");
    return found != nullptr && found->is_int64() ? static_cast<int>(found->as_int64()) : 0;
}

int rank(std::string_view confidence) {
    constexpr std::string_view kRising[] = {"unresolved", "weak", "strong", "proven"};
    return static_cast<int>(std::ranges::find(kRising, confidence) - kRising);
}

bool allowed(const auto& words, const auto& word) {
    return words.empty() || std::ranges::find(words, word) != words.end();
}

double number(const boost::json::value& place, std::string_view key) {
    const auto* found = place.as_object().if_contains(key);
    return found != nullptr && found->is_number() ? found->to_number<double>() : 1;
}

/// No verdict contradicts its own table, and no more answers are counted than there are.
std::string contradictions(const boost::json::object& document) {
    std::string all;
    int some = 0, of = 0;
    const auto headline = word(document.at("verdict").as_object(), "headline");
    if (const auto open = headline.find('('); open != std::string::npos)
        if (std::sscanf(headline.c_str() + open, "(%d of %d", &some, &of) == 2 && some > of)
            all += " counts";
    for (const auto& level : document.at("arms").as_array().at(0).at("levels").as_array()) {
        const auto verdict = word(level.as_object(), "verdict");
        const auto& length = level.at("paired_length");
        const bool good = verdict == "unaffected" || verdict == "latency_only";
        if (good && number(length, "high") < 0.7 && number(length, "p") < 0.001)
            all += fmt::format(" shorter@{}", number(level, "concurrency"));
        double parts = 0;
        for (const auto* kind : {"natural", "limited", "cut", "refused", "failed"})
            parts += number(level, kind);
        if (parts != number(level, "answers"))
            all += fmt::format(" sum@{}", number(level, "concurrency"));
    }
    return all;
}

/// What is not as the truth has it; empty when all is.
std::string wrong(const Truth& truth, const boost::json::object& said) {
    std::string all;
    const auto confidence = word(said, "confidence"), load = load_of(said);
    if (!allowed(truth.verdicts, word(said, "value"))) all += " verdict";
    if (!allowed(truth.causes, word(said, "cause"))) all += " cause";
    if (!allowed(truth.layers, word(said, "layer"))) all += " layer";
    if (!allowed(truth.from, from_of(said))) all += " from";
    if (!truth.at_least.empty() && rank(confidence) < rank(truth.at_least)) all += " unsure";
    if (!truth.at_most.empty() && rank(confidence) > rank(truth.at_most)) all += " overclaims";
    if (load != "-" && !allowed(truth.loads, load)) all += " load";
    return all;
}

TEST(PlantFiles, AreJudgedAsTheyAre) {
    const char* only = std::getenv("PLANT");  // one of them, by a part of its name
    int runs = 0, right = 0, known = 0;
    std::string mended, missed;
    for (const auto& path : plant_files()) {
        if (only != nullptr && path.string().find(only) == std::string::npos) continue;
        int wrong_here = 0;
        Truth truth;
        for (const auto seed : kSeeds) {
            auto plant = read_plant(path, seed);
            truth = plant.truth;
            const auto document = document_of(std::move(plant.run));
            if (const char* folder = std::getenv("PLANT_DOCUMENTS"))
                std::ofstream(std::string(folder) + "/" + plant.name + "-" + std::to_string(seed) +
                              ".json")
                    << document;
            const auto& said = document.at("verdict").as_object();
            const auto fault = wrong(truth, said) + contradictions(document);
            const auto row =
                fmt::format("{:<44} seed {} {:<15} {:<22} {:<10} {:<10} load {:<7} from {} {}{}\n",
                            plant.name, seed, word(said, "value"), word(said, "cause"),
                            word(said, "layer"), word(said, "confidence"), load_of(said),
                            from_of(said), fault.empty() ? "right" : "wrong:", fault);
            fmt::print("{}", row);
            if (!fault.empty()) fmt::print("    {}\n", word(said, "headline"));
            ++runs;
            right += fault.empty();
            wrong_here += !fault.empty();
            if (!fault.empty() && truth.known_miss.empty()) missed += row;
        }
        known += !truth.known_miss.empty() ? wrong_here : 0;
        if (!truth.known_miss.empty() && wrong_here == 0) mended += path.stem().string() + " ";
    }
    fmt::print("plant files: {} of {} runs right, {} known misses\n", right, runs, known);
    EXPECT_EQ(missed, "");
    EXPECT_EQ(mended, "") << "these are judged right now: take known_miss out of their files";
}

TEST(PlantFiles, TheSameSeedGivesTheSameBytesUnderNoise) {
    const auto path = tests::source_dir() / "tests/plants/quiet-cuts-of-six-in-ten.toml";
    const auto bytes = [&](std::uint64_t seed) {
        std::string all;
        for (const auto& record : run_probe(read_plant(path, seed).run).run.records)
            all += fmt::format("{} {} {}\n", record.request.id, record.text,
                               record.timeline.ended->count());
        return all;
    };
    EXPECT_EQ(bytes(1), bytes(1));
    EXPECT_NE(bytes(1), bytes(2));
}

TEST(PlantFiles, AWordThatNobodyKnowsIsAnError) {
    const auto path = std::filesystem::temp_directory_path() / "fullstop_unknown_word.toml";
    std::ofstream(path) << "about = 'x'\n[[server.faults]]\nwhen = 'arrival'\nshares = 0.5\n";
    try {
        read_plant(path, 1);
        ADD_FAILURE() << "it was read";
    } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("unknown key 'shares'"));
    }
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace fullstop::simulator
