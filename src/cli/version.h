// The version that documents and --version carry.
#pragma once

namespace fullstop::cli {

inline constexpr const char* kVersion = FULLSTOP_VERSION;
inline constexpr const char* kBuild = FULLSTOP_BUILD;  ///< compiler and build type

}  // namespace fullstop::cli
