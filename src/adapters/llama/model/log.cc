// The callback is global in libllama, so the state behind it is global here.
#include "adapters/llama/model/log.h"

#include <ggml.h>
#include <llama.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

#include "base/printable.h"

namespace fullstop::adapters::llama {
namespace {

/// Enough for every message of one failed load.
constexpr std::size_t kMaxCollected = 4096;

struct LogState {
    std::mutex mutex;
    bool collecting = false;
    bool last_was_error = false;
    std::string collected;
};
LogState& state() {
    static LogState the_state;
    return the_state;
}

void on_log(ggml_log_level level, const char* text, void*) {
    LogState& log = state();
    const std::scoped_lock lock(log.mutex);
    const bool error =
        level == GGML_LOG_LEVEL_ERROR || (level == GGML_LOG_LEVEL_CONT && log.last_was_error);
    log.last_was_error = error;
    if (!error) return;
    if (!log.collecting)
        std::fputs(base::printable_lines(text).c_str(), stderr);
    else if (log.collected.size() < kMaxCollected)
        log.collected += text;
}

/// libllama stops the process where it cannot go on, mostly for want of memory. Said in one line,
/// without the debugger that it would start; the exit code is that of an internal limit (5 in the
/// contract).
void on_abort(const char* message) {
    std::string_view words = message;
    words.remove_prefix(words.substr(0, words.find(':')).rfind('/') +
                        1);  // the folder of the machine that built it
    std::fprintf(stderr,
                 "fullstop: libllama cannot go on: %s\n  if memory is short, give fewer "
                 "--kv-tokens or a smaller model; if not, report this line and the model's "
                 "name\n",
                 base::printable(words).c_str());
    std::fflush(nullptr);
    std::_Exit(5);
}

}  // namespace

ErrorCollector::ErrorCollector() {
    {
        const std::scoped_lock lock(state().mutex);
        state().collecting = true;
        state().collected.clear();
    }
    llama_log_set(on_log, nullptr);
    ggml_set_abort_callback(on_abort);
}

ErrorCollector::~ErrorCollector() {
    const std::scoped_lock lock(state().mutex);
    state().collecting = false;
}

std::string ErrorCollector::text() const {
    const std::scoped_lock lock(state().mutex);
    std::string out;
    for (const char c : state().collected) {
        if (c != '\n')
            out += c;
        else if (!out.ends_with("; "))
            out += "; ";
    }
    while (out.ends_with("; ")) out.resize(out.size() - 2);
    return out;
}

}  // namespace fullstop::adapters::llama
