// A fuzzer's input as a script that people can read and write: steps that begin with '%' at the
// beginning of a line, a letter for what happens, a digit for whom it concerns, and text up to the
// next step. `{{1000*abc}}` in a text stands for so many "abc". With SHOW in the environment what
// clients get is shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fullstop::fuzz {

/// Of the text of all steps together, as large as a request can be.
inline constexpr std::size_t kMostText = std::size_t{8} << 20;

struct Step {
    char what = ' ';
    std::size_t who = 0;
    std::string text;
};

std::vector<Step> steps_of(std::string_view input);

/// "POST /v1/models\nname: value\n\nbody" as HTTP/1.1, with the fields that every request has.
std::string request_bytes(std::string_view text);
/// "HTTP/1.1 200 OK\nname: value", each line ended as HTTP does.
std::string head_bytes(std::string_view text);

/// The value of a digit or word behind `name=`; `otherwise` when it is not there.
long number_in(std::string_view text, std::string_view name, long otherwise);

}  // namespace fullstop::fuzz
