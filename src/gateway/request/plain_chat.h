// Whether a chat request asks for one answer of text and nothing else, and its last turn is not the
// model's: only then could another server write the rest of the answer (exchange/continuation.h).
#pragma once

#include <string_view>

#include "wire/json/json_walk.h"

namespace fullstop::gateway {

class PlainChat {
public:
    /// Every value of the body in its order; `member`: the member of the body that holds it.
    void hear(const wire::WalkedValue& value, std::string_view member);
    /// After the last value.
    bool plain() const {
        return is_list_ && last_is_turn_ && !last_is_models_ && !asks_more_ &&
               format_ != Format::kUntold;
    }

private:
    void hear_messages(const wire::WalkedValue& value);
    void hear_format(const wire::WalkedValue& value);

    enum class Format {
        kNone,    ///< `response_format` is no object, or absent
        kUntold,  ///< an object, and its type has not come
        kText,
    };
    Format format_ = Format::kNone;
    bool is_list_ = false;         ///< `messages`
    bool last_is_turn_ = false;    ///< its last element is an object
    bool last_is_models_ = false;  ///< and the role of that is the model's
    bool asks_more_ = false;
};

}  // namespace fullstop::gateway
