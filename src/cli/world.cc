// Errors for people, and the rules about colour.
#include "cli/world.h"

#include <ostream>

namespace fullstop::cli {

int fail(const World& world, const base::Error& error) {
    world.err << "fullstop: " << error.message << '\n';
    if (!error.hint.empty()) world.err << "  " << error.hint << '\n';
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
