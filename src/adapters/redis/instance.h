// A name that no other gateway has, for what it asks of a common store.
#pragma once

#include <string>

namespace fullstop::adapters::redis {

/// 128 random bits in lower-case hex.
std::string random_instance();

}  // namespace fullstop::adapters::redis
