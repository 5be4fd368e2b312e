// Whether JSON text, in whatever pieces it comes, stopped in its middle: brackets and strings are
// counted, nothing is kept. A text that is only a number or a word is never taken for open.
#pragma once

#include <cstdint>
#include <string_view>

namespace fullstop::gateway {

class JsonDepth {
public:
    void feed(std::string_view piece) {
        for (const char c : piece) {
            if (escaped_) {
                escaped_ = false;
            } else if (in_string_) {
                escaped_ = c == '\\';
                in_string_ = c != '"';
            } else if (c == '"') {
                in_string_ = true;
            } else if (c == '{' || c == '[') {
                ++depth_;
            } else if (c == '}' || c == ']') {
                --depth_;
            }
        }
    }
    bool open() const { return in_string_ || depth_ > 0; }

private:
    std::int64_t depth_ = 0;
    bool in_string_ = false, escaped_ = false;
};

}  // namespace fullstop::gateway
