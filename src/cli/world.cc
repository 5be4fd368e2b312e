// Errors for people, and the rules about colour.
#include "cli/world.h"

#include <ostream>

#include "base/printable.h"

namespace fullstop::cli {

std::string message_of(const base::Error& error) {
    std::string out = base::printable(error.message);
    if (error.hint.empty()) return out;
    std::string_view hint = error.hint;
    while (hint.ends_with('\n')) hint.remove_suffix(1);
    for (const char c : "\n" + base::printable_lines(hint))
        out.append(1, c).append(c == '\n' ? "  " : "");
    return out;
}

int fail(const World& world, const base::Error& error) {
    world.err << "fullstop: " << message_of(error) << '\n';
    switch (error.kind) {
        case base::ErrorKind::kUsage: return kExitUsage;
        case base::ErrorKind::kUnreachable: return kExitCouldNotMeasure;
        case base::ErrorKind::kInternal: return kExitInternal;
    }
    return kExitInternal;
}

bool wants_colour(const World& world, bool quiet) {
    const auto no_color = world.env("NO_COLOR");
    return world.out_is_terminal && !quiet && !(no_color && !no_color->empty());
}

}  // namespace fullstop::cli
