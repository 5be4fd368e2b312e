// The built-in prompts: what a complete answer holds is known for each, so that a cut shows in its
// meaning and not only in its length. Lists, facts, JSON, code, a tale and a low-entropy
// continuation that numeric noise hardly moves.
//
// Each shows the wanted shape with a short worked example in front: without one, the built-in 135M
// model answers a third of them with a single line. Examples stay short, because prompt tokens take
// room in the cache that is measured.
#include "probe/schedule.h"

namespace fullstop::probe {
namespace {

struct Example {
    const char* question;
    const char* answer;
};

answer::Prompt prompt(std::string id, std::optional<Example> example, const char* question,
                      answer::Check check, std::vector<std::string> tags) {
    answer::Prompt out{.id = std::move(id),
                       .messages = {},
                       .max_tokens = std::nullopt,
                       .check = std::move(check),
                       .tags = std::move(tags)};
    if (example) {
        out.messages.push_back({"user", example->question});
        out.messages.push_back({"assistant", example->answer});
    }
    out.messages.push_back({"user", question});
    return out;
}

answer::Check contains(std::vector<std::string> facts) {
    answer::Check check;
    check.contains = std::move(facts);
    return check;
}

answer::Prompt capital() {
    return prompt("capital",
                  Example{"What is the capital of Italy, and which river flows through it?",
                          "The capital of Italy is Rome. The river Tiber flows through it."},
                  "What is the capital of France, and which river flows through it?",
                  contains({"Paris", "Seine"}), {"short", "facts"});
}

answer::Prompt planets() {
    answer::Check check =
        contains({"Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"});
    check.items = 8;
    return prompt(
        "planets",
        Example{"List the four seasons as a numbered list. Write one sentence about each.",
                "1. Spring: Plants begin to bloom.\n2. Summer: The days are long and warm.\n3. "
                "Autumn: The leaves fall from the trees.\n4. Winter: It is cold and "
                "often snows."},
        "List the eight planets of the solar system as a numbered list, from Mercury to Neptune. "
        "Write one sentence about each.",
        std::move(check), {"list", "facts"});
}

answer::Prompt count() {
    return prompt("count", Example{"Count from 1 to 5, separated by commas.", "1, 2, 3, 4, 5"},
                  "Count from 1 to 100, separated by commas.",
                  contains({"11", "22", "33", "44", "55", "66", "77", "88", "99", "100"}),
                  {"low_entropy"});
}

answer::Prompt json() {
    answer::Check check = contains({"name", "country", "river", "population", "sights"});
    check.json = true;
    return prompt(
        "json",
        Example{
            "Describe Rome as a JSON object with the keys name, country, river, population and "
            "sights.",
            R"({"name": "Rome", "country": "Italy", "river": "Tiber", "population": 2800000, "sights": ["Colosseum", "Pantheon"]})"},
        "Describe Paris as a JSON object with the keys name, country, river, population and "
        "sights. Give five sights.",
        std::move(check), {"json"});
}

answer::Prompt code() {
    answer::Check check = contains({"def", "return"});
    check.regex = "```[^`]*def [^`]*```";
    return prompt(
        "code",
        Example{"Write a Python function that squares a number, in a code block, and explain it.",
                "```python\ndef square(n):\n    return n * n\n```\n\nThe function multiplies the "
                "number by itself."},
        "Write a Python function that checks whether a number is prime, in a code block, and "
        "explain it.",
        std::move(check), {"code"});
}

answer::Prompt bread() {
    answer::Check check;
    check.items = 10;
    return prompt("bread",
                  Example{"Explain in four numbered steps how to make tea.",
                          "1. Boil: Bring fresh water to a boil.\n2. Prepare: Put a tea bag into a "
                          "clean cup.\n3. Steep: Pour the water over it and wait four minutes.\n"
                          "4. Serve: Take out the tea bag and add milk."},
                  "Explain in ten numbered steps how to bake a loaf of bread.", std::move(check),
                  {"list"});
}

answer::Prompt water() {
    return prompt("water", std::nullopt,
                  "Explain the water cycle to a student. Cover evaporation, condensation, "
                  "precipitation and collection, with one short paragraph for each.",
                  contains({"evaporation", "condensation", "precipitation", "collection"}),
                  {"prose", "facts"});
}

answer::Prompt tale() {
    return prompt("tale", std::nullopt,
                  "Write a short fairy tale about a fox who learns to share. Finish it with the "
                  "words: The End.",
                  contains({"fox", "The End"}), {"prose", "long"});
}

}  // namespace

std::vector<answer::Prompt> builtin_prompts() {
    return {capital(), tale(), planets(), json(), bread(), code(), count(), water()};
}

}  // namespace fullstop::probe
