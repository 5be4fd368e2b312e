// Operating errors as values: a bad flag, a taken port, a file that is not a GGUF.
//
// What a measured server did wrong is never an Error: it is a fact in an answer::Record. A bug is
// an assertion (assert.h). Everything else that can go wrong returns Result<T>, with a message that
// names the cause and a hint that names the next step.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace fullstop::base {

/// What went wrong, seen from the user; main.cc maps each kind to one exit code of the contract.
enum class ErrorKind {
    kUsage,        ///< bad flag, file or configuration; nothing was sent (exit 2)
    kUnreachable,  ///< server unreachable, model not found, every request refused without load
                   ///< (exit 4)
    kInternal,     ///< an internal limit or a bug (exit 5)
};

struct Error {
    ErrorKind kind = ErrorKind::kInternal;
    std::string message;  ///< one sentence: what failed, with the name of the thing
    std::string hint;     ///< the next step; may be empty
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> usage_error(std::string message, std::string hint = {}) {
    return std::unexpected(Error{ErrorKind::kUsage, std::move(message), std::move(hint)});
}
inline std::unexpected<Error> unreachable_error(std::string message, std::string hint = {}) {
    return std::unexpected(Error{ErrorKind::kUnreachable, std::move(message), std::move(hint)});
}
inline std::unexpected<Error> internal_error(std::string message, std::string hint = {}) {
    return std::unexpected(Error{ErrorKind::kInternal, std::move(message), std::move(hint)});
}

}  // namespace fullstop::base
