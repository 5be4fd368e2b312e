// Mutates scripts and JSON where it hurts: numbers, members, paths and steps, with the words of
// words.dict. Every second time libFuzzer changes bytes as it likes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

std::uint32_t state = 1;
std::size_t below(std::size_t limit) {
    state = state * 1664525U + 1013904223U;
    return limit == 0 ? 0 : (state >> 8) % limit;
}

/// The words by the first part of their name; escapes are libFuzzer's: \\, \" and \xAB.
std::map<std::string, std::vector<std::string>> read_words() {
    std::map<std::string, std::vector<std::string>> out;
    std::ifstream file(FULLSTOP_FUZZ_WORDS);
    for (std::string line; std::getline(file, line);) {
        const std::size_t equals = line.find("=\"");
        if (line.starts_with('#') || equals == std::string::npos) continue;
        std::string word;
        for (std::size_t i = equals + 2; i + 1 < line.size(); ++i) {
            if (line[i] != '\\')
                word += line[i];
            else if (line[++i] == 'x')
                word += static_cast<char>(std::stoi(line.substr(i + 1, 2), nullptr, 16)), i += 2;
            else
                word += line[i];
        }
        out[line.substr(0, std::min(line.find_first_of("0123456789_="), equals))].push_back(word);
    }
    return out;
}

const std::string& word(const std::string& kind) {
    static const auto words = read_words();
    static const std::string none = "0";
    const auto found = words.find(kind);
    return found == words.end() ? none : found->second[below(found->second.size())];
}

std::string value() {
    switch (below(4)) {
        case 0: return word("text");
        case 1: return word("value");
        default: return word("number");
    }
}

/// Where a token of such characters begins and ends, somewhere; an empty one where there is none.
std::pair<std::size_t, std::size_t> some_token(const std::string& text,
                                               std::string_view characters) {
    std::vector<std::pair<std::size_t, std::size_t>> all;
    for (std::size_t at = text.find_first_of(characters);
         at != std::string::npos && all.size() < 400;) {
        const std::size_t end = std::min(text.find_first_not_of(characters, at), text.size());
        all.emplace_back(at, end);
        at = text.find_first_of(characters, end);
    }
    return all.empty() ? std::pair{text.size(), text.size()} : all[below(all.size())];
}

std::size_t some_place(const std::string& text, std::string_view what) {
    std::vector<std::size_t> all;
    for (std::size_t at = text.find(what); at != std::string::npos && all.size() < 400;
         at = text.find(what, at + 1))
        all.push_back(at);
    return all.empty() ? std::string::npos : all[below(all.size())];
}

/// Steps are what lies between two "\n%".
void change_steps(std::string& text) {
    const std::size_t at = some_place(text, "\n%"), other = some_place(text, "\n%");
    if (at == std::string::npos) return;
    const std::string step = text.substr(at, std::min(text.find("\n%", at + 1), text.size()) - at);
    switch (below(4)) {
        case 0: text.erase(at, step.size()); break;
        case 1: text.insert(other, step); break;
        case 2: text.insert(at, "\n%" + word("step")); break;
        default: text += step; break;
    }
}

/// A group of a pattern, again and again.
void repeat_group(std::string& text) {
    const std::size_t at = some_place(text, "("), end = text.find(')', std::min(at, text.size()));
    if (end == std::string::npos) return;
    const std::string group =
        text.substr(at, end + 1 + (text.find_first_of("*+?", end) == end + 1 ? 1 : 0) - at);
    for (std::size_t times = 1 + below(64); times > 0 && text.size() < 4000; --times)
        text.insert(at, group);
}

void change_json(std::string& text) {
    switch (below(7)) {
        case 6: repeat_group(text); break;
        case 0: {
            const std::size_t at = some_place(text, below(2) == 0 ? "_tokens\":" : "\":");
            if (at == std::string::npos) return;
            const std::size_t begin = text.find(':', at) + 1,
                              end = std::min(text.find_first_of(",}\n", begin), text.size());
            const std::string was = text.substr(at, end - at),
                              is = text.substr(at, begin - at) + word("number");
            // Half of the time all members of this name and value: sums overflow when several have
            // it.
            if (below(2) == 0)
                text.replace(at, was.size(), is);
            else
                for (std::size_t each = text.find(was), times = 0;
                     each != std::string::npos && times < 40;
                     each = text.find(was, each + is.size()), ++times)
                    text.replace(each, was.size(), is);
            break;
        }
        case 1: {
            const std::size_t at = some_place(text, "\":");
            if (at == std::string::npos) return;
            const std::size_t end = std::min(text.find_first_of(",}\n", at + 2), text.size());
            text.replace(at + 2, end - at - 2, value());
            break;
        }
        case 2:
        case 3: {
            const std::size_t at = some_place(text, below(2) == 0 ? "{" : ",");
            if (at == std::string::npos) return;
            text.insert(at + 1, "\"" + word("field") + "\":" + value() + ",");
            break;
        }
        case 4: {
            const std::size_t at = some_place(text, "\":");
            if (at == std::string::npos) return;
            const std::size_t levels = 1 + below(60);
            const std::size_t end = std::min(text.find_first_of(",}\n", at + 2), text.size());
            text.replace(at + 2, end - at - 2, std::string(levels, '[') + std::string(levels, ']'));
            break;
        }
        default: {
            const auto [at, end] = some_token(text, "abcdefghijklmnopqrstuvwxyz_");
            text.replace(at, end - at, word("field"));
            break;
        }
    }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
    state = seed;
    if (below(3) == 0) return LLVMFuzzerMutate(data, size, max_size);
    std::string text(reinterpret_cast<const char*>(data), size);
    for (std::size_t times = 1 + below(3); times > 0; --times) {
        switch (below(5)) {
            case 0: change_steps(text); break;
            case 1: {
                const std::size_t at = some_place(text, " /");
                if (at != std::string::npos)
                    text.replace(at + 1,
                                 std::min(text.find_first_of(" \n", at + 1), text.size()) - at - 1,
                                 word("path"));
                break;
            }
            default: change_json(text); break;
        }
    }
    const std::size_t out = std::min(text.size(), max_size);
    std::memcpy(data, text.data(), out);
    return out;
}
