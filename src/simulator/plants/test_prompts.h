// The questions that planted and honest runs ask.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "answer/request.h"

namespace fullstop::simulator {

inline answer::Prompt prompt(std::string id, std::string text, answer::Check check) {
    answer::Prompt made;
    made.id = std::move(id);
    made.messages = {{"user", std::move(text)}};
    made.check = std::move(check);
    return made;
}

/// Eight kinds of answers, all checkable but one.
inline std::vector<answer::Prompt> eight_prompts() {
    answer::Check list, long_list, facts, planets, json, story, both, none;
    list.items = 6;
    long_list.items = 10;
    facts.contains = {"granite", "basalt", "limestone", "marble"};
    planets.contains = {"Mercury", "Venus", "Mars", "Jupiter", "Saturn"};
    json.json = true;
    json.contains = {"copper", "tin"};
    story.ends_with = "THE END";
    both.items = 5;
    both.contains = {"oak", "birch", "pine"};
    return {
        prompt("list", "Name six kinds of bridges, one a line, with a sentence each.", list),
        prompt("long-list", "List ten rules for a tidy workshop, numbered, each with its reason.",
               long_list),
        prompt("facts", "Explain how the four named rocks are made and where they are found.",
               facts),
        prompt("planets", "Describe the five planets that people knew before telescopes.", planets),
        prompt("json", "Give a JSON document about the two metals of bronze.", json),
        prompt("story", "Tell a story of a lighthouse and close it with THE END.", story),
        prompt("trees", "Number five trees of the north and what their wood is good for.", both),
        prompt("letter", "Write a letter to a neighbour about a fallen fence.", none)};
}

}  // namespace fullstop::simulator
