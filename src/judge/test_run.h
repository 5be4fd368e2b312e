// Whole runs with a planted cause, or with none, for tests: eight prompts, a baseline before and
// after, levels 2, 4 and 8, lengths from a seeded generator. The planting is a function that may
// spoil any answer above one user.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "answer/run.h"
#include "base/random.h"
#include "judge/test_record.h"

namespace fullstop::judge {

struct RunPlan {
    std::uint64_t seed = 1;
    int prompts = 8;
    int repeat = 2;
    std::vector<int> levels = {1, 2, 4, 8};
    double variance =
        0;  ///< sigma of the lognormal factor by which lengths are drawn anew at every level
    bool natural_variance_at_baseline = false;
    double slower = 1;  ///< factor per doubling of users on the gap between tokens
    std::vector<std::string> arms = {"deployed"};
    /// May change the record; called for levels above 1 (and for the baseline when `plant_alone`).
    std::function<void(RecordBuilder&, base::Random&)> plant = {};
    bool plant_alone = false;
};

inline std::string sentence(std::int64_t tokens) {
    std::string text;
    for (std::int64_t i = 0; i < tokens; ++i)
        text += i + 1 == tokens ? "end." : (i % 12 == 11 ? "word. " : "word ");
    return text;
}

class PlantedRun {
public:
    explicit PlantedRun(RunPlan plan) : plan_(std::move(plan)), random_(plan_.seed) {
        run_.url = "http://127.0.0.1:8080";
        run_.experiment.levels = plan_.levels;
        run_.experiment.repeat = plan_.repeat;
        for (int i = 0; i < plan_.prompts; ++i) {
            answer::Prompt prompt;
            prompt.id = "p" + std::to_string(i);
            run_.experiment.prompts.push_back(prompt);
            full_.push_back(40 + static_cast<std::int64_t>(random_.below(300)));
        }
        for (const std::string& arm : plan_.arms) {
            run_.arms.push_back({arm, arm == "control" ? "http://127.0.0.1:9090" : run_.url, ""});
            step(arm, "baseline_before", 1);
            for (const int level : plan_.levels)
                if (level > 1) step(arm, "level", level);
            step(arm, "baseline_after", 1);
        }
    }
    answer::Run& run() { return run_; }

private:
    void step(const std::string& arm, const std::string& phase, int concurrency) {
        std::vector<double> free(static_cast<std::size_t>(concurrency),
                                 clock_ms_);  // when each user's last answer ended
        for (int repeat = 0; repeat < plan_.repeat; ++repeat)
            for (int prompt = 0; prompt < plan_.prompts; ++prompt) {
                auto& user = *std::min_element(free.begin(), free.end());
                user =
                    one(arm, phase, concurrency, prompt, repeat, user) + 5 + random_.uniform() * 40;
            }
        clock_ms_ = *std::max_element(free.begin(), free.end()) + 1000;
    }

    double one(const std::string& arm, const std::string& phase, int concurrency, int prompt,
               int repeat, double sent) {
        const std::int64_t seed = 1 + repeat;
        const bool redraw = concurrency > 1 || plan_.natural_variance_at_baseline;
        double length = static_cast<double>(full_[static_cast<std::size_t>(prompt)] + 7 * repeat);
        if (redraw && plan_.variance > 0) length *= std::exp(plan_.variance * random_.normal());
        const std::int64_t tokens =
            std::clamp<std::int64_t>(static_cast<std::int64_t>(length), 3, 512);
        RecordBuilder builder(arm + "-" + phase + "-" + std::to_string(concurrency) + "-" +
                              std::to_string(prompt) + "-" + std::to_string(repeat));
        builder.asks("p" + std::to_string(prompt), seed)
            .at(concurrency, phase, arm)
            .prompt_tokens(60 + prompt);
        builder.says(sentence(tokens), tokens);
        if (tokens == 512) builder.reason("length");
        if (redraw && plan_.variance > 0)
            builder.edit().text =
                std::to_string(random_.next()) + " " + builder.edit().text;  // other words
        const double jitter = 1 + 0.05 * random_.normal();
        gap_ = 20 * jitter * std::pow(plan_.slower, std::log2(static_cast<double>(concurrency)));
        builder.timed(sent, 100 * jitter, gap_);
        if (plan_.plant && (concurrency > 1 || plan_.plant_alone)) plan_.plant(builder, random_);
        run_.records.push_back(builder.build());
        return base::to_ms(*run_.records.back().timeline.ended);
    }

    RunPlan plan_;
    base::Random random_;
    answer::Run run_;
    std::vector<std::int64_t> full_;
    double clock_ms_ = 0;
    double gap_ = 20;
};

}  // namespace fullstop::judge
