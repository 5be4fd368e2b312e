// Assertions that stay on in release builds: a bug stops the program where it is, with its place
// and reason.
#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the program when `condition` is false. `why` says which promise was broken.
#define FULLSTOP_ASSERT(condition, why)                                                            \
    do {                                                                                           \
        if (!(condition)) [[unlikely]] {                                                           \
            std::fprintf(                                                                          \
                stderr,                                                                            \
                "fullstop: bug at %s:%d: %s (%s)\nPlease report this with the command you ran.\n", \
                __FILE_NAME__, __LINE__, why, #condition);                                         \
            std::abort();                                                                          \
        }                                                                                          \
    } while (false)
